// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"
)

var (
	root = filepath.Join("..", "..")
	dir  = filepath.Join(root, "charts", "serin")
	// operatorKinds are what a cluster with the Prometheus Operator serves.
	operatorKinds = []string{"monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PrometheusRule"}
)

// scraped are values by which a Prometheus reads the proxies.
const scraped = "networkPolicy: {metricsFrom: [{podSelector: {matchLabels: {app: prometheus}}}]}"

// render is what helm install would apply, its hooks after it.
func render(t *testing.T, values string, serves ...string) (string, error) {
	t.Helper()
	return renderIn(t, "serin-system", values, serves...)
}

// renderIn renders a release called serin in a namespace.
func renderIn(t *testing.T, namespace, values string, serves ...string) (string, error) {
	t.Helper()
	loaded, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace, install.APIVersions = "serin", namespace, serves
	if install.KubeVersion, err = common.ParseKubeVersion("v1.36.0"); err != nil {
		t.Fatal(err)
	}
	rendered, err := install.RunWithContext(t.Context(), loaded, given)
	if err != nil {
		return "", err
	}
	r := rendered.(*helmrelease.Release)
	var text strings.Builder
	text.WriteString(r.Manifest)
	for _, h := range r.Hooks {
		text.WriteString("---\n# Hook " + h.Path + "\n" + h.Manifest + "\n")
	}
	return text.String(), nil
}

// objects are the objects of a kind, by name.
func objects(t *testing.T, text, kind string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatalf("%v:\n%s", err, document)
		}
		if o.Kind == kind {
			found[o.Metadata.Name] = document
		}
	}
	return found
}

func TestEachToggle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		// kind and object are where it shows.
		kind, object string
		// has is in the object with the values, and not without.
		has string
	}{
		"tolerations":               {"tolerations: [{key: a, operator: Exists}]", "Deployment", "serin-manager", "tolerations:"},
		"tolerations of both":       {"tolerations: [{key: a, operator: Exists}]", "Deployment", "serin-metrics", "tolerations:"},
		"tolerations of the second": {"metrics: {tolerations: [{key: a, operator: Exists}]}", "Deployment", "serin-metrics", "tolerations:"},
		"node selector":             {"nodeSelector: {disk: ssd}", "Deployment", "serin-manager", "nodeSelector:\n        disk: ssd"},
		"node selector of both":     {"nodeSelector: {disk: ssd}", "Deployment", "serin-metrics", "nodeSelector:\n        disk: ssd"},
		"other node selector":       {"nodeSelector: {disk: hdd}\nmetrics: {nodeSelector: {disk: ssd}}", "Deployment", "serin-metrics", "nodeSelector:\n        disk: ssd"},
		"affinity":                  {"affinity: {nodeAffinity: {}}", "Deployment", "serin-manager", "nodeAffinity: {}"},
		"affinity of the second":    {"metrics: {affinity: {nodeAffinity: {}}}", "Deployment", "serin-metrics", "nodeAffinity: {}"},
		"priority":                  {"priorityClassName: high", "Deployment", "serin-manager", "priorityClassName: high"},
		"other priority":            {"priorityClassName: high\nmetrics: {priorityClassName: low}", "Deployment", "serin-metrics", "priorityClassName: low"},
		"spread":                    {"topologySpreadConstraints: [{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]", "Deployment", "serin-manager", "- labelSelector:\n            matchLabels:\n              app.kubernetes.io/component: manager\n              app.kubernetes.io/instance: serin\n              app.kubernetes.io/name: serin\n          maxSkew: 2\n          topologyKey: zone"},
		"spread of the second":      {"metrics: {topologySpreadConstraints: [{maxSkew: 3, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]}", "Deployment", "serin-metrics", "topologyKey: rack"},
		"labels":                    {"deploymentLabels: {team: a}", "Deployment", "serin-manager", "team: a"},
		"annotations":               {"deploymentAnnotations: {team: a}", "Deployment", "serin-manager", "annotations:\n    team: a"},
		"labels of pods":            {"podLabels: {team: a}", "Deployment", "serin-manager", "        team: a"},
		"labels of the second":      {"metrics: {podLabels: {team: b}}", "Deployment", "serin-metrics", "        team: b"},
		"annotations of the second": {"metrics: {podAnnotations: {team: b}}", "Deployment", "serin-metrics", "        team: b"},
		"account":                   {"serviceAccountAnnotations: {role: a}", "ServiceAccount", "serin", "annotations:\n    role: a"},
		"annotations of a Service":  {"metrics: {serviceAnnotations: {team: a}}", "Service", "serin-metrics", "annotations:\n    team: a"},
		"labels of a Service":       {"metrics: {serviceLabels: {team: a}}", "Service", "serin-metrics", "    team: a"},
		"environment":               {"extraEnv: [{name: A, value: b}]", "Deployment", "serin-manager", "- name: A\n              value: b"},
		"environment of the second": {"metrics: {extraEnv: [{name: A, value: b}]}", "Deployment", "serin-metrics", "- name: A\n              value: b"},
		"volume":                    {"extraVolumes: [{name: a, emptyDir: {}}]", "Deployment", "serin-manager", "volumes:\n        - emptyDir: {}\n          name: a"},
		"mount":                     {"extraVolumeMounts: [{name: a, mountPath: /a}]", "Deployment", "serin-manager", "volumeMounts:\n            - mountPath: /a\n              name: a"},
		"volume of the second":      {"metrics: {extraVolumes: [{name: a, emptyDir: {}}]}", "Deployment", "serin-metrics", "volumes:\n        - emptyDir: {}\n          name: a"},
		"mount of the second":       {"metrics: {extraVolumeMounts: [{name: a, mountPath: /a}]}", "Deployment", "serin-metrics", "- mountPath: /a"},
		"authorities":               {"caBundle: {configMap: ca}", "Deployment", "serin-manager", "configMap: {name: ca, items: [{key: ca.crt, path: ca.crt}]}"},
		"authorities, read":         {"caBundle: {configMap: ca}", "Deployment", "serin-metrics", "- name: SSL_CERT_DIR\n              value: /ca-bundle"},
		"authorities, mounted":      {"caBundle: {secret: ca}", "Deployment", "serin-metrics", "- {name: ca-bundle, mountPath: /ca-bundle, readOnly: true}"},
		"network policy":            {"networkPolicy: {enabled: true}", "NetworkPolicy", "serin-manager", "policyTypes: [Ingress, Egress]"},
		"egress of the second":      {"networkPolicy: {enabled: true}", "NetworkPolicy", "serin-metrics", "policyTypes: [Ingress, Egress]"},
		"API server":                {"networkPolicy: {enabled: true, apiServer: {cidrs: [10.0.0.1/32]}}", "NetworkPolicy", "serin-manager", `- ipBlock: {cidr: "10.0.0.1/32"}`},
		"port of a Prometheus":      {"networkPolicy: {enabled: true}\nmetrics: {source: prometheus, prometheus: {address: 'https://p.example:9443', profile: istio}}", "NetworkPolicy", "serin-metrics", "{port: 9443, protocol: TCP}"},
		"usual port":                {"networkPolicy: {enabled: true}\nmetrics: {source: prometheus, prometheus: {address: 'http://p.example', profile: istio}}", "NetworkPolicy", "serin-metrics", "{port: 80, protocol: TCP}"},
		"traces":                    {"tracing: {enabled: true, endpoint: 'http://c.example:4317'}", "Deployment", "serin-manager", "- --tracing\n"},
		"receiver of traces":        {"tracing: {enabled: true, endpoint: 'http://c.example:4317'}", "Deployment", "serin-manager", "- name: OTEL_EXPORTER_OTLP_ENDPOINT\n              value: \"http://c.example:4317\"\n            - name: OTEL_EXPORTER_OTLP_PROTOCOL\n              value: grpc\n            - name: OTEL_TRACES_SAMPLER\n              value: parentbased_traceidratio\n            - name: OTEL_TRACES_SAMPLER_ARG\n              value: \"1\"\n"},
		"traces by HTTP":            {"tracing: {enabled: true, endpoint: 'https://c.example/otlp', protocol: http/protobuf}", "Deployment", "serin-manager", "value: http/protobuf\n"},
		"share of traces":           {"tracing: {enabled: true, endpoint: 'http://c.example:4317', samplingRatio: 0.05}", "Deployment", "serin-manager", "value: \"0.05\"\n"},
		"headers of traces":         {"tracing: {enabled: true, endpoint: 'http://c.example:4317', headersSecret: {name: a}}", "Deployment", "serin-manager", "- name: OTEL_EXPORTER_OTLP_HEADERS\n              valueFrom: {secretKeyRef: {name: a, key: headers}}\n"},
		"authority of the receiver": {"tracing: {enabled: true, endpoint: 'https://c.example:4317', caSecret: {name: a}}", "Deployment", "serin-manager", "- name: OTEL_EXPORTER_OTLP_CERTIFICATE\n              value: /tracing-ca/ca.crt\n"},
		"its mount":                 {"tracing: {enabled: true, endpoint: 'https://c.example:4317', caSecret: {name: a}}", "Deployment", "serin-manager", "- {name: tracing-ca, mountPath: /tracing-ca, readOnly: true}\n"},
		"its volume":                {"tracing: {enabled: true, endpoint: 'https://c.example:4317', caSecret: {name: a, key: ca}}", "Deployment", "serin-manager", "- name: tracing-ca\n          secret: {secretName: a, defaultMode: 0444, items: [{key: ca, path: ca}]}\n"},
		"egress of traces":          {"tracing: {enabled: true, endpoint: 'http://c.example:4317'}\nnetworkPolicy: {enabled: true}", "NetworkPolicy", "serin-manager", "- {port: 4317, protocol: TCP}\n    # Hooks"},
		"its usual port":            {"tracing: {enabled: true, endpoint: 'http://c.example/otlp', protocol: http/protobuf}\nnetworkPolicy: {enabled: true}", "NetworkPolicy", "serin-manager", "# The receiver of traces.\n    - ports:\n        - {port: 80, protocol: TCP}\n"},
		"its usual port by gRPC":    {"tracing: {enabled: true, endpoint: 'http://c.example'}\nnetworkPolicy: {enabled: true}", "NetworkPolicy", "serin-manager", "# The receiver of traces.\n    - ports:\n        - {port: 443, protocol: TCP}\n"},
		"pods of the receiver":      {"tracing: {enabled: true, endpoint: 'http://c.example:4317'}\nnetworkPolicy: {enabled: true, tracing: {to: [{podSelector: {matchLabels: {app: collector}}}]}}", "NetworkPolicy", "serin-manager", "- {port: 4317, protocol: TCP}\n      to:\n        - podSelector:\n            matchLabels:\n              app: collector\n"},
		"who scrapes":               {"networkPolicy: {enabled: true, metricsFrom: [{podSelector: {matchLabels: {app: prometheus}}}]}", "NetworkPolicy", "serin-manager", "app: prometheus"},
		"more egress":               {"networkPolicy: {enabled: true, extraEgress: [{ports: [{port: 4317}]}]}", "NetworkPolicy", "serin-manager", "port: 4317"},
		"webhooks let through":      {"admission: {mode: webhook, webhook: {failurePolicy: Ignore, timeoutSeconds: 3}}", "MutatingWebhookConfiguration", "serin-webhooks", "failurePolicy: Ignore\n    timeoutSeconds: 3"},
		"webhooks' certificate":     {"admission: {mode: webhook, webhook: {certificate: {secretName: mine, caBundle: QUJD}}}", "MutatingWebhookConfiguration", "serin-webhooks", "caBundle: QUJD"},
		"cert-manager":              {"admission: {mode: webhook, webhook: {certificate: {secretName: mine, annotations: {cert-manager.io/inject-ca-from: a/b}}}}", "MutatingWebhookConfiguration", "serin-webhooks", "cert-manager.io/inject-ca-from: a/b"},
		"certificate, mounted":      {"admission: {mode: webhook, webhook: {certificate: {secretName: mine, caBundle: QUJD}}}", "Deployment", "serin-manager", "secret: {secretName: mine, defaultMode: 0440}"},
		"policies of v1beta1":       {"admission: {mode: policies-v1beta1}", "MutatingAdmissionPolicy", "serin-hold-deployments", "apiVersion: admissionregistration.k8s.io/v1beta1"},
		"policies of v1":            {"admission: {mode: policies}", "MutatingAdmissionPolicy", "serin-hold-deployments", "apiVersion: admissionregistration.k8s.io/v1"},
		"port of the webhooks":      {"networkPolicy: {enabled: true}\nadmission: {mode: webhook}", "NetworkPolicy", "serin-manager", "{port: 9443, protocol: TCP}"},
		"pod monitor":               {"monitoring: {secure: {enabled: false}, podMonitor: {enabled: true}}\nnetworkPolicy: {proxies: {enabled: false}}", "PodMonitor", "serin-manager", "- {port: metrics, interval: 30s, honorLabels: true}"},
		"pod monitor of proxies":    {"monitoring: {podMonitor: {enabled: true}, labels: {release: p}, interval: 15s, tokenSecret: {name: a}}\n" + scraped, "PodMonitor", "serin-proxies", "release: p"},
		"pod monitor with a token":  {"monitoring: {podMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped, "PodMonitor", "serin-metrics", "credentials: {name: a, key: token}"},
		"service monitor":           {"monitoring: {secure: {enabled: false}, serviceMonitor: {enabled: true}}\n" + scraped, "ServiceMonitor", "serin-manager", "- {port: metrics, interval: 30s, honorLabels: true}"},
		"service to scrape":         {"monitoring: {serviceMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped, "Service", "serin-manager", "clusterIP: None"},
		"pods of proxies": {
			"proxy: {priorityClassName: edge, nodeSelector: {pool: edge}, tolerations: [{key: edge, operator: Exists}], podAnnotations: {a.b/c: 'd \"e\"'}}",
			"Deployment", "serin-manager", `--proxy-pods={\"annotations\":{\"a.b/c\":\"d \\\"e\\\"\"},\"nodeSelector\":{\"pool\":\"edge\"}`,
		},
		"no autoscaling of proxies": {"proxy: {autoscaling: {enabled: false}}", "Deployment", "serin-manager", "--proxy-autoscaling=false"},
		"more proxies than scaled":  {"proxy: {replicas: 20}", "Deployment", "serin-manager", "--proxy-max-replicas=20"},
		"service monitor, proxies":  {"monitoring: {serviceMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped, "PodMonitor", "serin-proxies", "podTargetLabels: [serin.dev/proxy]"},
		"service monitor, token":    {"monitoring: {serviceMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped, "ServiceMonitor", "serin-metrics", "serverName: serin-metrics.serin-system.svc"},
		"metrics for every client":  {"monitoring: {secure: {enabled: false}}", "Deployment", "serin-manager", "- --metrics-bind-address=:8080\n            - --health"},
		"certificate of metrics":    {"monitoring: {secure: {certificateSecret: tls}}", "Deployment", "serin-manager", "- --metrics-secure\n            - --metrics-cert-dir=/metrics-certificate\n"},
		"mounted":                   {"monitoring: {secure: {certificateSecret: tls}}", "Deployment", "serin-manager", "secret: {secretName: tls, defaultMode: 0444, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}"},
		"secure monitor":            {"monitoring: {secure: {certificateSecret: tls}, serviceMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped, "ServiceMonitor", "serin-manager", "secret: {name: tls, key: ca.crt}"},
		"secure monitor's token":    {"monitoring: {podMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped, "PodMonitor", "serin-manager", "credentials: {name: a, key: token}"},
		"port of proxies":           {"networkPolicy: {proxies: {namespaces: [shop]}}", "Deployment", "serin-manager", "- --restrict-proxy-readers=shop\n"},
		"port of proxies, scraped":  {"networkPolicy: {metricsFrom: [{podSelector: {matchLabels: {app: prometheus}}}]}", "Deployment", "serin-manager", `{\"podSelector\":{\"matchLabels\":{\"app\":\"prometheus\"}}}]`},
		"API server of proxies":     {"networkPolicy: {apiServer: {cidrs: [10.0.0.1/32], ports: [6443]}}", "Deployment", "serin-manager", "- --api-server-network=10.0.0.1/32\n            - --api-server-port=6443\n            - --default"},
		"rules":                     {"monitoring: {prometheusRule: {enabled: true, labels: {release: p}}}", "PrometheusRule", "serin", "release: p"},
		"page of the rules":         {"monitoring: {prometheusRule: {enabled: true, runbookURL: 'https://wiki.example/serin'}}", "PrometheusRule", "serin", "runbook_url: https://wiki.example/serin#serindown"},
		"dashboard":                 {"monitoring: {dashboard: {enabled: true}}", "ConfigMap", "serin-dashboard", `grafana_dashboard: "1"`},
		"folder of the dashboard":   {"monitoring: {dashboard: {enabled: true, annotations: {grafana_folder: Serin}, namespace: grafana}}", "ConfigMap", "serin-dashboard", "namespace: grafana"},
		"check":                     {"metrics: {enabled: false}", "Pod", "serin-check", "- --deployment=serin-manager\n        - --hold\n      resources:"},
		"check without a policy":    {"holdPolicy: {enabled: false}", "Pod", "serin-check", "- --deployment=serin-metrics\n      resources:"},
		"uninstall of a tenant":     {"watchNamespaces: [shop]", "Job", "serin-uninstall", "- --watch-namespace=shop"},
		"its rights":                {"watchNamespaces: [shop]", "Role", "serin-system-serin-uninstall", "namespace: shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			with, err := render(t, test.values, operatorKinds...)
			if err != nil {
				t.Fatal(err)
			}
			if got := objects(t, with, test.kind)[test.object]; !strings.Contains(got, test.has) {
				t.Errorf("%s %s lacks %q:\n%s", test.kind, test.object, test.has, got)
			}
			without, err := render(t, "", operatorKinds...)
			if err != nil {
				t.Fatal(err)
			}
			if got := objects(t, without, test.kind)[test.object]; strings.Contains(got, test.has) {
				t.Errorf("%s %s has %q without the value:\n%s", test.kind, test.object, test.has, got)
			}
		})
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ values, want string }{
		"quantity":                   {"resources: {limits: {memory: 12Q}}", "'/resources/limits/memory': '12Q' does not match pattern"},
		"negative quantity":          {"proxy: {resources: {requests: {cpu: -1}}}", "'/proxy/resources/requests/cpu': minimum: got -1, want 0"},
		"quantity of the second":     {"metrics: {resources: {requests: {cpu: much}}}", "'/metrics/resources/requests/cpu': 'much' does not match pattern"},
		"address without a length":   {"outbound: {allowedCIDRs: [10.0.0.7]}", "'/outbound/allowedCIDRs/0': '10.0.0.7' does not match pattern"},
		"address too large":          {"outbound: {allowedCIDRs: [10.0.0.256/32]}", `outbound.allowedCIDRs: "10.0.0.256/32" is not a network; write for example 10.0.0.7/32 or fd00::/64`},
		"denied address too large":   {"outbound: {deniedCIDRs: [10.0.0.256/32]}", `outbound.deniedCIDRs: "10.0.0.256/32" is not a network`},
		"more than IPv4, mapped":     {"outbound: {deniedCIDRs: ['::ffff:10.0.0.0/95']}", `outbound.deniedCIDRs: "::ffff:10.0.0.0/95" is an IPv4 address in a wider IPv6 network; write it as IPv4, such as 10.0.0.0/8`},
		"host with a scheme":         {"outbound: {onlyHosts: ['https://example.org']}", "'/outbound/onlyHosts/0': 'https://example.org' does not match pattern"},
		"every host":                 {"outbound: {deniedHosts: ['*']}", "'/outbound/deniedHosts/0': '*' does not match pattern"},
		"length too large":           {"networkPolicy: {apiServer: {cidrs: [10.0.0.0/33]}}", `networkPolicy.apiServer.cidrs: "10.0.0.0/33" is not a network`},
		"length of IPv6 too large":   {"networkPolicy: {outbound: {cidrs: ['fd00::/129']}}", `networkPolicy.outbound.cidrs: "fd00::/129" is not a network`},
		"port":                       {"networkPolicy: {dnsPorts: [70000]}", "'/networkPolicy/dnsPorts/0': maximum: got 70,000, want 65,535"},
		"no objects of the cluster":  {"clusterObjects: {enabled: false}", "clusterObjects.enabled: can be false only with watchNamespaces"},
		"Secrets of others":          {"watchNamespaces: [shop]\nconfiguration: {secretNamespaces: [bank]}", `configuration.secretNamespaces: watchNamespaces lacks "bank"`},
		"ConfigMaps of others":       {"watchNamespaces: [shop]\nconfiguration: {namespaces: [bank]}", `configuration.namespaces: watchNamespaces lacks "bank"`},
		"monitors without a token":   {"monitoring: {podMonitor: {enabled: true}}\n" + scraped, "name a Secret with one whose account is bound to the ClusterRole serin-metrics-reader, or set monitoring.secure.enabled to false"},
		"services, without a token":  {"monitoring: {serviceMonitor: {enabled: true}}\n" + scraped, "monitoring.tokenSecret.name: the manager gives its metrics only to clients that may get /metrics, so its monitor needs a token"},
		"monitors that are kept out": {"monitoring: {podMonitor: {enabled: true}, tokenSecret: {name: a}}", "networkPolicy.metricsFrom: proxies are read by Serin alone, so their monitor would get nothing; name the pods of your Prometheus, or set networkPolicy.proxies.enabled to false"},
		"services, kept out":         {"monitoring: {secure: {enabled: false}, serviceMonitor: {enabled: true}}", "networkPolicy.metricsFrom: proxies are read by Serin alone"},
		"secure at times":            {"monitoring: {secure: {enabled: maybe}}", "'/monitoring/secure/enabled': value must be one of"},
		"secure without a right":     {"{watchNamespaces: [shop], clusterObjects: {enabled: false}, monitoring: {secure: {enabled: true}}}", "monitoring.secure.enabled: needs clusterObjects.enabled"},
		"traces without a receiver":  {"tracing: {enabled: true}", "tracing.endpoint: give the URL of an OTLP receiver, such as http://collector.monitoring:4317"},
		"receiver without a scheme":  {"tracing: {enabled: true, endpoint: 'collector:4317'}", "'/tracing/endpoint': 'collector:4317' does not match pattern"},
		"receiver with a password":   {"tracing: {enabled: true, endpoint: 'https://a:b@collector'}", "'/tracing/endpoint': 'https://a:b@collector' does not match pattern"},
		"path by gRPC":               {"tracing: {enabled: true, endpoint: 'https://collector/otlp'}", `tracing.endpoint: "https://collector/otlp" has a path, which gRPC does not use`},
		"more traces than all":       {"tracing: {samplingRatio: 1.5}", "'/tracing/samplingRatio': maximum: got 1.5, want 1"},
		"fewer traces than none":     {"tracing: {samplingRatio: -0.1}", "'/tracing/samplingRatio': minimum: got -0.1, want 0"},
		"protocol of traces":         {"tracing: {protocol: http/json}", "'/tracing/protocol': value must be one of 'grpc', 'http/protobuf'"},
		"two bundles":                {"caBundle: {configMap: a, secret: b}", "caBundle: give configMap or secret, not both"},
		"two monitors":               {"monitoring: {podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}", "monitoring: enable podMonitor or serviceMonitor, not both"},
		"fewer than the least":       {"proxy: {replicas: 5, autoscaling: {enabled: true, maxReplicas: 3}}", "proxy.autoscaling.maxReplicas: 3 is less than proxy.replicas, which is 5"},
		"authority without a cert":   {"metrics: {certificate: {caBundle: QUJD}}", "give secretName too, or leave both out"},
		"autoscaling without a CPU":  {"proxy: {autoscaling: {enabled: true}, resources: {requests: {cpu: null}}}", "give proxy.resources.requests.cpu too"},
		"autoscaling at times":       {"proxy: {autoscaling: {enabled: maybe}}", "'/proxy/autoscaling/enabled': value must be one of"},
		"no pod monitors":            {"monitoring: {podMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped, "monitoring.podMonitor.enabled: the cluster has no kind monitoring.coreos.com/v1/PodMonitor; install"},
		"no rules":                   {"monitoring: {prometheusRule: {enabled: true}}", "monitoring.prometheusRule.enabled: the cluster has no kind"},
		"spread without a key":       {"topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]", "missing property 'topologyKey'"},
		"mount of no path":           {"extraVolumeMounts: [{name: a, mountPath: a}]", "'/extraVolumeMounts/0/mountPath': 'a' does not match pattern"},
		"unknown value":              {"networkPolicy: {enable: true}", "additional properties 'enable' not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := render(t, test.values); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestTheListsOfDestinationsAreFlags(t *testing.T) {
	t.Parallel()
	objects, err := render(t, "outbound: {onlyHosts: [example.org, '*.monitoring:9090'], onlyCIDRs: [10.0.0.0/8], deniedHosts: [prometheus.monitoring], deniedCIDRs: ['fd00::/64']}")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--outbound-only-hosts=example.org", "--outbound-only-hosts=*.monitoring:9090", "--outbound-only-cidrs=10.0.0.0/8", "--outbound-denied-hosts=prometheus.monitoring", "--outbound-denied-cidrs=fd00::/64"} {
		if !strings.Contains(objects, want) {
			t.Errorf("no %s", want)
		}
	}
}

func TestNetworksThatAreTaken(t *testing.T) {
	t.Parallel()
	for _, cidr := range []string{"10.0.0.7/32", "0.0.0.0/0", "255.255.255.255/0", "::/0", "fd00::/64", "::1/128", "2001:db8:1:2:3:4:5:6/128", "::ffff:10.0.0.0/104", "0:0:0:0:0:ffff:a00:7/128", "ffff::/16", "64:ff9b::ffff:0:0/32"} {
		if _, err := render(t, "outbound: {allowedCIDRs: ['"+cidr+"']}"); err != nil {
			t.Errorf("%s: %v", cidr, err)
		}
	}
}

// A monitor that does not honour labels takes the namespace of a series for that of the pod
// that serves it, so that all alerts and panels would name the operator's namespace.
func TestTheNamespaceOfASeriesIsNotThatOfItsPod(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"pods":        "monitoring: {secure: {enabled: false}, podMonitor: {enabled: true}}\n" + scraped,
		"services":    "monitoring: {secure: {enabled: false}, serviceMonitor: {enabled: true}}\n" + scraped,
		"secure pods": "monitoring: {podMonitor: {enabled: true}, tokenSecret: {name: a}}\n" + scraped,
	} {
		text, err := render(t, values, operatorKinds...)
		if err != nil {
			t.Fatal(err)
		}
		of := objects(t, text, "PodMonitor")["serin-manager"] + objects(t, text, "ServiceMonitor")["serin-manager"]
		var monitor struct {
			Spec struct {
				Pods     []struct{ HonorLabels bool } `json:"podMetricsEndpoints"`
				Services []struct{ HonorLabels bool } `json:"endpoints"`
			}
		}
		if err := yaml.Unmarshal([]byte(of), &monitor); err != nil {
			t.Fatal(err)
		}
		endpoints := slices.Concat(monitor.Spec.Pods, monitor.Spec.Services)
		if len(endpoints) != 1 || !endpoints[0].HonorLabels {
			t.Errorf("%s: %+v", name, endpoints)
		}
	}
}
