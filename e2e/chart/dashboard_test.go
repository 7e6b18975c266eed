// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

const pageURL = "url: 'https://serin.example.org/tools/'"

// dashboardOf is the Deployment of the dashboard with more values of it.
func dashboardOf(t *testing.T, values string) (appsv1.Deployment, string) {
	t.Helper()
	text, err := render(t, "dashboard: {enabled: true, "+pageURL+values+"}\nnetworkPolicy: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte(objects(t, text, "Deployment")["serin-dashboard"]), &d); err != nil || len(d.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("the Deployment: %v\n%s", err, text)
	}
	return d, text
}

func TestTheDashboardIsOffByDefault(t *testing.T) {
	t.Parallel()
	text, err := render(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "component: dashboard") {
		t.Error("something of the dashboard is rendered")
	}
}

func TestTheDashboardHasNoCredentialsAndNoRights(t *testing.T) {
	t.Parallel()
	d, text := dashboardOf(t, "")
	pod := d.Spec.Template.Spec
	if pod.ServiceAccountName != "serin-dashboard" || pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		t.Errorf("the pod has a token of %s", pod.ServiceAccountName)
	}
	var account corev1.ServiceAccount
	if err := yaml.UnmarshalStrict([]byte(objects(t, text, "ServiceAccount")["serin-dashboard"]), &account); err != nil || account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Errorf("its ServiceAccount mounts a token: %v", err)
	}
	for _, kind := range []string{"RoleBinding", "ClusterRoleBinding"} {
		bindings := objects(t, text, kind)
		if len(bindings) == 0 {
			t.Errorf("the chart has no %s to look at", kind)
		}
		for name, binding := range bindings {
			if strings.Contains(binding, "name: serin-dashboard") || strings.Contains(binding, "system:serviceaccounts") {
				t.Errorf("the %s %s is one of the dashboard", kind, name)
			}
		}
	}
	for _, v := range pod.Volumes {
		if v.Projected != nil || v.Secret != nil {
			t.Errorf("the volume %s may have credentials", v.Name)
		}
	}
	security := pod.Containers[0].SecurityContext
	if !*security.ReadOnlyRootFilesystem || *security.AllowPrivilegeEscalation || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("the container: %+v", security)
	}
}

func TestFlagsOfTheDashboard(t *testing.T) {
	t.Parallel()
	const oidc = ", tokenLogin: false, oidc: {issuerURL: 'https://sso.example.org:8443/realm', clientID: 'a, b', name: 'My SSO', scopes: [openid, groups], clientSecret: {name: sso}}"
	for name, test := range map[string]struct {
		values    string
		has, not  []string
		mounts    []string
		scheme    corev1.URIScheme
		servedBy  string
		reachable string
	}{
		"as it comes": {
			"",
			[]string{"dashboard", "--url=https://serin.example.org/tools/", "--read-only=true", "--token-login=true", "--default-namespace=default", "--session-duration=12h", "--api-server-ca-file=/api-server/ca.crt"},
			[]string{"oidc", "tls", "forwarded", "keys", "cluster-name"},
			[]string{"/api-server"},
			corev1.URISchemeHTTP, "http 80", "",
		},
		"with a provider": {
			oidc,
			[]string{"--oidc-issuer-url=https://sso.example.org:8443/realm", "--oidc-client-id=a, b", "--oidc-scopes=openid,groups", "--oidc-name=My SSO", "--oidc-client-secret-file=/oidc/client-secret", "--token-login=false"},
			nil,
			[]string{"/api-server", "/oidc"},
			corev1.URISchemeHTTP, "http 80", "8443",
		},
		"with more": {
			", readOnly: false, trustForwardedHost: true, clusterName: 'prod \"eu\"', defaultNamespace: shop, session: {keysSecret: {name: s}, duration: 1h}, tls: {secretName: cert}",
			[]string{"--read-only=false", "--trust-forwarded-host", `--cluster-name=prod "eu"`, "--default-namespace=shop", "--session-keys-file=/session/keys", "--session-duration=1h", "--tls-cert-file=/certificate/tls.crt", "--tls-private-key-file=/certificate/tls.key"},
			nil,
			[]string{"/api-server", "/session", "/certificate"},
			corev1.URISchemeHTTPS, "https 443", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, text := dashboardOf(t, test.values)
			c := d.Spec.Template.Spec.Containers[0]
			for _, arg := range test.has {
				if !slices.Contains(c.Args, arg) {
					t.Errorf("%s is missing in %q", arg, c.Args)
				}
			}
			for _, part := range test.not {
				if strings.Contains(strings.Join(c.Args, " "), part) {
					t.Errorf("%s is in %q", part, c.Args)
				}
			}
			var mounts []string
			for _, m := range c.VolumeMounts {
				mounts = append(mounts, m.MountPath)
			}
			if !slices.Equal(mounts, test.mounts) || len(d.Spec.Template.Spec.Volumes) != len(mounts) {
				t.Errorf("mounts %q", mounts)
			}
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if probe.HTTPGet.Scheme != test.scheme || probe.HTTPGet.Path != "/healthz" {
					t.Errorf("probe: %+v", probe.HTTPGet)
				}
			}
			var service corev1.Service
			if err := yaml.UnmarshalStrict([]byte(objects(t, text, "Service")["serin-dashboard"]), &service); err != nil {
				t.Fatal(err)
			}
			if p := service.Spec.Ports[0]; test.servedBy != map[int32]string{80: p.Name + " 80", 443: p.Name + " 443"}[p.Port] {
				t.Errorf("port: %+v", p)
			}
			policy := objects(t, text, "NetworkPolicy")["serin-dashboard"]
			if strings.Contains(policy, "15020") || !strings.Contains(policy, "port: "+test.reachable) {
				t.Errorf("egress:\n%s", policy)
			}
		})
	}
}

func TestWhoReachesTheDashboard(t *testing.T) {
	t.Parallel()
	_, text := dashboardOf(t, ", allowedFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress}}}]")
	var policy networkingv1.NetworkPolicy
	if err := yaml.UnmarshalStrict([]byte(objects(t, text, "NetworkPolicy")["serin-dashboard"]), &policy); err != nil {
		t.Fatal(err)
	}
	if in := policy.Spec.Ingress; len(in) != 1 || len(in[0].From) != 1 || in[0].From[0].NamespaceSelector == nil || in[0].Ports[0].Port.IntValue() != 8080 {
		t.Errorf("ingress: %+v", in)
	}
	if len(policy.Spec.Egress) != 2 {
		t.Errorf("egress: %+v", policy.Spec.Egress)
	}
}

func TestValuesOfTheDashboardThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ values, want string }{
		"no URL":            {"", "dashboard.url: give the URL"},
		"URL without TLS":   {"url: 'http://serin.example.org/'", "'/dashboard/url': 'http://serin.example.org/' does not match pattern"},
		"no login":          {pageURL + ", tokenLogin: false", "dashboard: no user could log in"},
		"no client":         {pageURL + ", oidc: {issuerURL: 'https://sso.example.org'}", "dashboard.oidc.clientID: give the client"},
		"issuer in clear":   {pageURL + ", oidc: {issuerURL: 'http://sso.example.org'}", "'/dashboard/oidc/issuerURL': 'http://sso.example.org' does not match pattern"},
		"two in one scope":  {pageURL + ", oidc: {scopes: ['openid groups']}", "'/dashboard/oidc/scopes/0': 'openid groups' does not match pattern"},
		"unknown":           {pageURL + ", ingress: {}", "additional properties 'ingress' not allowed"},
		"duration of words": {pageURL + ", session: {duration: long}", "'/dashboard/session/duration'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := render(t, "dashboard: {enabled: true, "+test.values+"}"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
