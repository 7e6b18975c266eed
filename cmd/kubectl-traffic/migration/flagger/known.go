// SPDX-License-Identifier: Apache-2.0

package flagger

// known are fields of a Canary that have no equivalent, with what to do.
var known = map[string]string{
	"spec.metricsServer":                     "write the address of the Prometheus in each metric",
	"spec.revertOnDeletion":                  "deleting the Rollout always restores the Service and hands the Deployment back",
	"spec.autoscalerRef":                     "an autoscaler of the Deployment goes on working: there is no copy of it for a second Deployment",
	"spec.service.primary":                   "Serin makes the Services of the versions from the root Service",
	"spec.service.canary":                    "Serin makes the Services of the versions from the root Service",
	"spec.service.delegation":                "write the VirtualService by hand and name it in routeRefs",
	"spec.service.mirror":                    "write mirror in a step",
	"spec.service.meshName":                  noMesh,
	"spec.service.backends":                  noMesh,
	"spec.service.backendTimeout":            routeOnly,
	"spec.service.corsPolicy":                routeOnly,
	"spec.service.gateways":                  routeOnly,
	"spec.service.gatewayRefs":               routeOnly,
	"spec.service.headers":                   routeOnly,
	"spec.service.hosts":                     routeOnly,
	"spec.service.match":                     routeOnly,
	"spec.service.retries":                   routeOnly,
	"spec.service.rewrite":                   routeOnly,
	"spec.service.timeout":                   routeOnly,
	"spec.service.trafficPolicy":             routeOnly,
	"spec.analysis.canaryReadyThreshold":     allReady,
	"spec.analysis.primaryReadyThreshold":    allReady,
	"spec.analysis.maxWeight":                "stepWeights say the weights",
	"spec.analysis.stepWeight":               "stepWeights say the weights",
	"spec.analysis.mirrorWeight":             "mirror is not true",
	"spec.analysis.stepWeightPromotion":      "the promotion moves all traffic at once, when the new version has all pods: nothing rolls after it",
	"spec.analysis.webhooks[].disableTLS":    "certificates are always verified: give the operator the certificate of your authority",
	"spec.analysis.webhooks[].muteAlert":     "notifications choose events, not hooks",
	"spec.analysis.webhooks[].retries":       "a hook is called until it answers",
	"spec.analysis.metrics[].thresholdRange": "the built-in metrics have the one limit that is written",
}

const (
	allReady  = "a step waits until all pods that it asks for are available"
	noMesh    = "App Mesh has no router in Serin: its proxies behind the Service share the traffic"
	routeOnly = "belongs to the route: write it there"
)

// knownInTemplate are fields of a MetricTemplate that have no equivalent.
var knownInTemplate = map[string]string{
	"spec.provider.headers":            "only a bearer token is sent: write credentialsRef",
	"spec.provider.insecureSkipVerify": "certificates are always verified: give the operator the certificate of your authority",
	"spec.provider.region":             "belongs to CloudWatch",
}
