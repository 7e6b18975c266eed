// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"strings"
	"testing"
)

// resources is the discovery of one version with one namespaced kind.
func resources(version, plural, kind string) string {
	return fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[{"name":%q,"namespaced":true,"kind":%q,"verbs":["get","list"]}]}`, version, plural, kind)
}

func group(name, version string) string {
	v := fmt.Sprintf(`{"groupVersion":"%s/%s","version":%q}`, name, version, version)
	return fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, name, v, v)
}

func TestInitPlansForTheTrafficThatIsMeasured(t *testing.T) {
	s := newMetricsServer(t, map[string]string{
		"/api":                                `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":                               `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + group("apps", "v1") + "," + group("serin.dev", "v1alpha1") + `]}`,
		"/api/v1":                             resources("v1", "services", "Service"),
		"/apis/apps/v1":                       resources("apps/v1", "deployments", "Deployment"),
		"/apis/serin.dev/v1alpha1":            resources("serin.dev/v1alpha1", "rollouts", "Rollout"),
		"/namespaces/foobar/services/website": metricsItem("Service", "website", fromAll, 59940, 60, ""),
		"/apis/serin.dev/v1alpha1/namespaces/foobar/rollouts": `{"kind":"RolloutList","apiVersion":"serin.dev/v1alpha1","metadata":{},"items":[]}`,
		"/api/v1/namespaces/foobar/services": `{"kind":"ServiceList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"website","namespace":"foobar"},
"spec":{"selector":{"app":"website"},"ports":[{"name":"http","port":80,"targetPort":8080}]}}]}`,
		"/apis/apps/v1/namespaces/foobar/deployments/website": `{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"website","namespace":"foobar"},
"spec":{"replicas":10,"template":{"metadata":{"labels":{"app":"website"}}}}}`,
	})
	status, out, errs := s.traffic(t, "rollout init deployment/website")
	for _, want := range []string{
		"# Measured: the Service website receives 2000 requests/s, of which 0.1 % fail.\n", "namespace: foobar\n",
		"    # Detects a canary that fails 0.32pp more often than stable: 1 of 10 pods, about 12000 requests to the canary.\n    - {weight: 5, hold: 2m}\n",
	} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("exit status %d, %s; %q is missing in:\n%s", status, errs, want, out)
		}
	}
}
