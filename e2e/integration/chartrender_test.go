// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/e2e/tools"
)

// helm runs helm on the chart and returns what it says.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), helmPath(t), args...).CombinedOutput()
	return string(out), err
}

// helmPath is where the program helm is.
func helmPath(t *testing.T) string {
	t.Helper()
	return toolPath(t, tools.Helm)
}

// toolPath is where the program of a tool that has one is.
func toolPath(t *testing.T, tool tools.Tool) string {
	t.Helper()
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := checkout.Builder(os.Stderr).Build(t.Context(), tool)
	if err != nil {
		t.Fatal(err)
	}
	return programs.Path(tool.Programs[0])
}

// ownProfile are values for a Prometheus that is read by a profile in a ConfigMap.
const ownProfile = "metrics.source=prometheus,metrics.prometheus.address=https://p:9090,metrics.prometheus.profileConfigMap.name=mine"

func TestTheChart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "charts", "serin")
	for name, test := range map[string]struct {
		args        []string
		has, hasNot string
		fails       bool
	}{
		"has no complaint from helm lint": {args: []string{"lint", "--strict", dir}, has: "0 chart(s) failed"},
		"has the policy where the cluster serves it": {
			args: []string{"template", release, dir, "--api-versions", policyAPI}, has: "kind: MutatingAdmissionPolicyBinding",
		},
		"has no policy elsewhere": {
			args: []string{"template", release, dir}, has: "kind: Deployment", hasNot: "kind: MutatingAdmissionPolicy",
		},
		"has policies of v1beta1 where these are served": {
			args: []string{"template", release, dir, "--api-versions", "admissionregistration.k8s.io/v1beta1/MutatingAdmissionPolicy"},
			has:  "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingAdmissionPolicyBinding", hasNot: "WebhookConfiguration",
		},
		"has webhooks where there are no policies": {
			args: []string{"template", release, dir}, has: "kind: MutatingWebhookConfiguration", hasNot: "mutatingadmissionpolicies",
		},
		"refuses a mode that does not exist": {args: []string{"template", release, dir, "--set", "admission.mode=webhooks"}, fails: true, has: "mode"},
		"refuses a certificate of one's own that nothing makes known": {
			args: []string{"template", release, dir, "--set", "admission.webhook.certificate.secretName=mine"}, fails: true, has: "caBundle",
		},
		"has no policy where it is not wanted": {
			args:   []string{"template", release, dir, "--api-versions", policyAPI, "--set", "holdPolicy.enabled=false"},
			hasNot: guardName,
		},
		"has the policy on decisions where they can't be signed": {
			args: []string{"template", release, dir}, has: "policyName: " + decisionsPolicy, hasNot: signingPolicy,
		},
		"signs decisions where the cluster can": {
			args: []string{"template", release, dir, "--api-versions", policyAPI}, has: "policyName: " + signingPolicy,
		},
		"has no policy on decisions where it is not wanted": {
			args:   []string{"template", release, dir, "--api-versions", policyAPI, "--set", "decisionPolicy.enabled=false"},
			hasNot: "policyName: " + release + "-deci",
		},
		"names the policies on decisions after the release": {
			args: []string{"template", "second", dir, "--api-versions", policyAPI}, has: "policyName: second-serin-decided-by", hasNot: "name: " + decisionsPolicy,
		},
		"leaves a mesh's definitions alone": {
			args: []string{"template", release, dir, "--set", "crds.smi=false"}, has: "name: rollouts.serin.dev", hasNot: "name: trafficsplits.split",
		},
		"keeps definitions when it is uninstalled": {
			args: []string{"template", release, dir, "--show-only", "templates/crds.yaml"}, has: "helm.sh/resource-policy: keep",
		},
		"lets hooks reach the networks that are named": {
			args: []string{"template", release, dir, "--set", "outbound.allowedCIDRs={10.0.0.7/32,fd00::/64}"},
			has:  "            - --outbound-allowed-cidrs=10.0.0.7/32\n            - --outbound-allowed-cidrs=fd00::/64\n",
		},
		"lets hooks reach no special network by itself": {
			args: []string{"template", release, dir}, has: "--node-addresses=$(NODE_ADDRESSES)", hasNot: "--outbound-allowed-cidrs",
		},
		"refuses an address that is no network": {
			args: []string{"template", release, dir, "--set", "outbound.allowedCIDRs={10.0.0.7}"}, fails: true, has: "allowedCIDRs",
		},
		"refuses a value that does not exist":  {args: []string{"template", release, dir, "--set", "replica=1"}, fails: true, has: "replica"},
		"refuses a router that does not exist": {args: []string{"template", release, dir, "--set", "defaultRouter=ngin"}, fails: true, has: "defaultRouter"},
		"has one manager without a budget": {
			args: []string{"template", release, dir, "--set", "replicas=1,metrics.replicas=1"}, hasNot: "PodDisruptionBudget",
		},
		"has an APIService without an authority, which the servers write": {
			args: []string{"template", release, dir}, has: "name: v1alpha1.metrics.smi-spec.io", hasNot: "\n  caBundle",
		},
		"makes no key and no certificate": {
			args: []string{"template", release, dir, "--show-only", "templates/metricscertificate.yaml"}, has: "type: Opaque", hasNot: "\ndata:",
		},
		"has no Secret beside a certificate that is provided": {
			args: []string{"template", release, dir, "--api-versions", policyAPI, "--set", "metrics.certificate.secretName=mine,metrics.certificate.caBundle=QUJD"},
			has:  "caBundle: QUJD", hasNot: "kind: Secret\n",
		},
		"takes the authority from cert-manager": {
			args: []string{"template", release, dir, "--set", `metrics.certificate.secretName=mine,metrics.certificate.apiServiceAnnotations.cert-manager\.io/inject-ca-from=a/b`},
			has:  "cert-manager.io/inject-ca-from: a/b",
		},
		"has no metrics servers where they are not wanted": {
			args: []string{"template", release, dir, "--set", "metrics.enabled=false"}, has: "kind: Deployment", hasNot: "name: serin-metrics\n",
		},
		"measures by Serin's own proxies": {args: []string{"template", release, dir}, has: "- --source=scrape\n", hasNot: "--prometheus"},
		"reads a Prometheus": {
			args: []string{"template", release, dir, "--set", "metrics.source=prometheus,metrics.prometheus.address=http://p:9090,metrics.prometheus.profile=linkerd"},
			has:  "- --prometheus-address=http://p:9090\n            - --prometheus-profile=linkerd\n", hasNot: "volumeMounts",
		},
		"refuses a Prometheus without an address": {
			args: []string{"template", release, dir, "--set", "metrics.source=prometheus"}, fails: true, has: "metrics.prometheus.address",
		},
		"reads a Prometheus by a profile of one's own": {
			args: []string{"template", release, dir, "--set", ownProfile},
			has:  "- --prometheus-profile-file=/prometheus/profile/profile.yaml\n", hasNot: "--prometheus-profile=",
		},
		"mounts one key of the profile": {
			args: []string{"template", release, dir, "--set", ownProfile},
			has:  "        - name: prometheus-profile\n          configMap: {name: mine, items: [{key: profile.yaml, path: profile.yaml}]}\n", hasNot: "prometheus-token",
		},
		"shows a token to a Prometheus": {
			args: []string{"template", release, dir, "--set", ownProfile + ",metrics.prometheus.tokenSecret.name=monitoring,metrics.prometheus.tokenSecret.key=bearer"},
			has:  "        - name: prometheus-token\n          secret: {secretName: monitoring, defaultMode: 0440, items: [{key: bearer, path: bearer}]}\n",
		},
		"verifies a Prometheus": {
			args: []string{"template", release, dir, "--set", ownProfile + ",metrics.prometheus.caSecret.name=monitoring,metrics.certificate.secretName=tls,metrics.certificate.caBundle=QUJD"},
			has: "            - {name: certificate, mountPath: /certificate, readOnly: true}\n            - {name: prometheus-ca, mountPath: /prometheus/ca, readOnly: true}\n" +
				"            - {name: prometheus-profile, mountPath: /prometheus/profile, readOnly: true}\n",
		},
		"mounts nothing of a Prometheus that is not read": {
			args: []string{"template", release, dir, "--set", "metrics.prometheus.tokenSecret.name=monitoring"}, has: "- --source=scrape\n", hasNot: "volumeMounts",
		},
		"refuses two profiles": {
			args: []string{"template", release, dir, "--set", ownProfile + ",metrics.prometheus.profile=linkerd"}, fails: true, has: "give it or profileConfigMap, not both",
		},
		"refuses no profile at all": {
			args:  []string{"template", release, dir, "--set", "metrics.source=prometheus,metrics.prometheus.address=http://p:9090"},
			fails: true, has: "or profileConfigMap with one of your own",
		},
		"refuses a key that is a path": {
			args: []string{"template", release, dir, "--set", ownProfile + ",metrics.prometheus.tokenSecret.key=../token"}, fails: true, has: "tokenSecret",
		},
		"refuses a source that does not exist":               {args: []string{"template", release, dir, "--set", "metrics.source=guess"}, fails: true, has: "source"},
		"refuses a certificate's option that does not exist": {args: []string{"template", release, dir, "--set", "metrics.certificate.secret=a"}, fails: true, has: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := helm(t, test.args...)
			if (err != nil) != test.fails {
				t.Fatalf("error %v\n%s", err, out)
			}
			if !strings.Contains(out, test.has) || test.hasNot != "" && strings.Contains(out, test.hasNot) {
				t.Errorf("want %q and not %q in:\n%s", test.has, test.hasNot, out)
			}
		})
	}
}

// restricted is a namespace whose pods have to keep to the strictest of
// Kubernetes' own standards, with a service account. That it is enforced is tried.
func restricted(t *testing.T, account string) *scene {
	t.Helper()
	s := newScene(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","pod-security.kubernetes.io/enforce-version":"latest"}}}`)
	if err := admin.Patch(t.Context(), ns, client.RawPatch(types.MergePatchType, label)); err != nil {
		t.Fatal(err)
	}
	s.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}})
	plain := corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "c", Image: "example.invalid/c"}}}
	if err := s.admits(plain); !apierrors.IsForbidden(err) {
		t.Fatalf("a pod without any restriction: error %v, want it refused", err)
	}
	return s
}

// admits asks whether a pod would be admitted.
func (s *scene) admits(spec corev1.PodSpec) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: s.namespace}, Spec: spec}
	return admin.Create(s.Context(), pod, client.DryRunAll)
}

func TestTheChartsPodsMayRunWherePodSecurityIsRestricted(t *testing.T) {
	t.Parallel()
	s := restricted(t, release)
	s.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: metricsService}})
	s.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: release + "-dashboard"}})
	tried := 0
	for _, u := range chart {
		if u.GetKind() != "Deployment" {
			continue
		}
		d := &appsv1.Deployment{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d); err != nil {
			t.Fatal(err)
		}
		if err := s.admits(d.Spec.Template.Spec); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
		tried++
	}
	if tried != 3 {
		t.Errorf("the chart has %d Deployments, want the manager, the metrics servers and the dashboard", tried)
	}
}
