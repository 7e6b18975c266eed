// SPDX-License-Identifier: Apache-2.0

package argo

// knownInRollout are fields of a Rollout that have no equivalent, with what to do.
var knownInRollout = map[string]string{
	"spec.analysis":    "Serin keeps one AnalysisResult for each Rollout, and spec.historyLimit ended releases",
	"spec.restartAt":   "restart pods with kubectl rollout restart: the new template is released by the steps",
	"spec.workloadRef": "the Deployment itself runs the pods",

	"spec.strategy.canary.abortScaleDownDelaySeconds":                        noDelay,
	"spec.strategy.canary.analysis":                                          runsOnly,
	"spec.strategy.canary.antiAffinity":                                      affinity,
	"spec.strategy.canary.canaryMetadata":                                    metadata,
	"spec.strategy.canary.stableMetadata":                                    metadata,
	"spec.strategy.canary.dynamicStableScale":                                "stable stays at full size until the promotion, so that a rollback needs no pods first: plan for the pods of both versions",
	"spec.strategy.canary.maxSurge":                                          surge,
	"spec.strategy.canary.maxUnavailable":                                    surge,
	"spec.strategy.canary.minPodsPerReplicaSet":                              "write canaryReplicas in the steps whose share of pods is too small",
	"spec.strategy.canary.pingPong":                                          "Serin makes two Services for the versions itself: delete ping and pong after the migration",
	"spec.strategy.canary.replicaProgressThreshold":                          "a step waits until all pods that it asks for are available",
	"spec.strategy.canary.scaleDownDelayRevisionLimit":                       noDelay,
	"spec.strategy.canary.scaleDownDelaySeconds":                             noDelay,
	"spec.strategy.canary.steps[].analysis":                                  runsOnly,
	"spec.strategy.canary.steps[].experiment":                                "Serin compares canary and stable in each step. For a baseline of new pods, run a Job as a metric; the step is left out",
	"spec.strategy.canary.steps[].plugin":                                    "call what the plugin does as a hook (spec.hooks, BeforeStep), or run it as a Job (spec.analysis.metrics); the step is left out",
	"spec.strategy.canary.steps[].replicaProgressThreshold":                  "a step waits until all pods that it asks for are available",
	"spec.strategy.canary.steps[].setCanaryScale":                            "give replicas, weight or matchTrafficWeight",
	"spec.strategy.canary.steps[].setHeaderRoute":                            "requests that match come before those by weight: move it before the first setWeight above 0",
	"spec.strategy.canary.steps[].setMirrorRoute":                            "all requests are mirrored, or none",
	"spec.strategy.canary.trafficRouting.alb":                                "the operator's default router shares the traffic: Serin's proxies behind the Service, while the Ingress stays as it is. Target groups of the type ip send to the endpoints of that Service; remove the annotations for actions",
	"spec.strategy.canary.trafficRouting.ambassador":                         noRouter,
	"spec.strategy.canary.trafficRouting.apisix":                             noRouter,
	"spec.strategy.canary.trafficRouting.appMesh":                            noRouter,
	"spec.strategy.canary.trafficRouting.traefik":                            noRouter + ". Traefik serves the Gateway API too: router gatewayAPI",
	"spec.strategy.canary.trafficRouting.managedRoutes":                      "Serin finds the routes that it wrote by itself",
	"spec.strategy.canary.trafficRouting.nginx.additionalIngressAnnotations": ingressOnly,
	"spec.strategy.canary.trafficRouting.nginx.annotationPrefix":             ingressOnly,
	"spec.strategy.canary.trafficRouting.nginx.canaryIngressAnnotations":     ingressOnly,
	"spec.strategy.canary.trafficRouting.plugins":                            "Serin has no plugins",
	"spec.strategy.canary.trafficRouting.plugin":                             "Serin has no plugins",

	"spec.strategy.blueGreen.abortScaleDownDelaySeconds":  noDelay,
	"spec.strategy.blueGreen.activeMetadata":              metadata,
	"spec.strategy.blueGreen.antiAffinity":                affinity,
	"spec.strategy.blueGreen.maxUnavailable":              surge,
	"spec.strategy.blueGreen.postPromotionAnalysis":       runsOnly,
	"spec.strategy.blueGreen.prePromotionAnalysis":        runsOnly,
	"spec.strategy.blueGreen.previewMetadata":             metadata,
	"spec.strategy.blueGreen.previewReplicaCount":         "the preview has all pods: what is tested is what gets the traffic",
	"spec.strategy.blueGreen.scaleDownDelayRevisionLimit": noDelay,
}

const (
	affinity    = "write it in the pod template: spread the pods of each version by topologySpreadConstraints with matchLabelKeys [pod-template-hash]"
	ingressOnly = "there is no Ingress for the canary. For requests with a header, write a step with matches"
	metadata    = "pods keep the labels and annotations of their template: the very pods that were tested become stable. Find the version by the label pod-template-hash"
	noDelay     = "pods are removed when no request reaches them any more: nothing needs to be set"
	noRouter    = "the operator's default router shares the traffic: Serin's proxies behind the Service. Have the route send to that Service only"
	runsOnly    = "concerns AnalysisRuns, which Serin does not have"
	surge       = "the canary's pods come beside those of stable, by the weight: nothing rolls at the promotion"
)

// knownInTemplate are fields of a template that have no equivalent.
var knownInTemplate = map[string]string{
	"spec.dryRun":                                       "write dryRun: true in the metric",
	"spec.measurementRetention":                         runsOnly,
	"spec.templates":                                    "a template has no templates in it: name each of them in spec.analysis.templateRefs of the Rollout",
	"spec.metrics[].consecutiveErrorLimit":              "missing data never ends a release: the step waits for it",
	"spec.metrics[].consecutiveSuccessLimit":            "write minSamples: a step needs that many measurements, and a failure in between restarts nothing",
	"spec.metrics[].inconclusiveLimit":                  "missing data never ends a release: the step waits for it",
	"spec.metrics[].initialDelay":                       "measurements begin with the step; a hold that is longer gives the version time",
	"spec.metrics[].provider.prometheus.authentication": "write credentialsRef: a Secret with the key token, which is sent as a bearer token",
	"spec.metrics[].provider.prometheus.headers":        "write credentialsRef for a bearer token; other headers are not sent",
	"spec.metrics[].provider.prometheus.insecure":       "certificates are always verified: give the operator the certificate of your authority",
	"spec.metrics[].provider.prometheus.rangeQuery":     "write range, with over, step and reduce",
	"spec.metrics[].provider.prometheus.timeout":        tenSeconds,
	"spec.metrics[].provider.web.authentication":        "write a header with an argument from a Secret",
	"spec.metrics[].provider.web.body":                  "Serin calls with GET",
	"spec.metrics[].provider.web.insecure":              "certificates are always verified: give the operator the certificate of your authority",
	"spec.metrics[].provider.web.jsonBody":              "Serin calls with GET",
	"spec.metrics[].provider.web.timeoutSeconds":        tenSeconds,
	"spec.metrics[].provider.datadog.apiVersion":        "Serin asks the API of version 1",
	"spec.metrics[].provider.datadog.aggregator":        "Serin takes the newest point of the query: aggregate in the query",
	"spec.metrics[].provider.datadog.formula":           "Serin takes one query",
	"spec.metrics[].provider.datadog.queries":           "Serin takes one query",
}

const tenSeconds = "an answer may take 10 seconds"
