// SPDX-License-Identifier: Apache-2.0

package providers

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
	"github.com/serin-dev/serin/analysis/source/sourcetest"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/sampling/resolve"
)

// sharing is an operator that tenants can't have call anything by an address, with a
// Secret in its own namespace and one of the tenant.
func sharing(t *testing.T) Providers {
	t.Helper()
	own, tenants := allKeys("127.0.0.1"), allKeys("127.0.0.1")
	own.Namespace = "serin"
	tenants.Data = map[string][]byte{}
	for key := range own.Data {
		tenants.Data[key] = []byte("tenant")
	}
	p := providers(own, tenants)
	p.Shared = p.Caller
	hosts, err := egress.ParseHosts([]string{"nowhere.example"})
	if err != nil {
		t.Fatal(err)
	}
	p.Caller = &fetch.Caller{HTTP: egress.NewClient(egress.Policy{Only: egress.Destinations{Hosts: hosts}}, egress.Options{Timeout: time.Second}), Timeout: time.Second}
	return p
}

// sharedAt has a metric of every kind measured at a ClusterMetricProvider, whatever
// address the metric itself has.
func sharedAt(address string) map[v1alpha1.ProviderType]resolve.Metric {
	list := map[v1alpha1.ProviderType]resolve.Metric{}
	for kind, p := range at("http://attacker.example") {
		if kind == v1alpha1.ProviderWeb {
			continue
		}
		p.ProviderRef = &v1alpha1.MetricProviderReference{Name: "shared"}
		m := metric(p)
		m.Shared = &v1alpha1.ClusterMetricProviderSpec{Type: kind, Address: v1alpha1.URL(address), CredentialsRef: &v1alpha1.CredentialsReference{Name: "api"}}
		list[kind] = m
	}
	return list
}

func TestASharedProviderIsAskedWithItsOwnCredentials(t *testing.T) {
	var sent atomic.Value
	address := sourcetest.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		sent.Store(fmt.Sprint(r.Header, user, password))
	})
	for kind, m := range sharedAt(address) {
		sent.Store("")
		measurer, err := sharing(t).Build(m)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = measurer.Measure(t.Context(), sourcetest.Now) // the answer is none
		got := sent.Load().(string)
		if !strings.Contains(got, "s3cret") || strings.Contains(got, "tenant") {
			t.Errorf("%s was asked with %q", kind, got)
		}
	}
}

func TestATenantHasNoUseOfTheSecretOfASharedProvider(t *testing.T) {
	var reached atomic.Int64
	address := sourcetest.Serve(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	// The tenant's own Secret is the one that its own metric takes.
	for kind, p := range at(address) {
		measurer, err := sharing(t).Build(metric(p))
		if err != nil {
			t.Fatal(err)
		}
		s, err := measurer.Measure(t.Context(), sourcetest.Now)
		sourcetest.WantMissing(t, s, err, source.Refused)
		_ = kind
	}
	// Without the annotation not even a cluster admin's mistake sends it elsewhere.
	for kind, m := range sharedAt(address) {
		p := sharing(t)
		secret := &corev1.Secret{}
		secret.Namespace, secret.Name = "serin", "api"
		if err := p.Writer.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		measurer, err := p.Build(m)
		if err != nil {
			t.Fatal(err)
		}
		s, err := measurer.Measure(t.Context(), sourcetest.Now)
		sourcetest.WantMissing(t, s, err, source.Credentials)
		if want := "the Secret api does not exist; create it"; err.Error() != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("reached %d times", n)
	}
}

func TestQueriesToASharedPrometheusAreConfined(t *testing.T) {
	var asked string
	address := sourcetest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.FormValue("query")
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
	})
	for _, test := range []struct {
		label   string
		trusted bool
		want    string
	}{
		{"", false, `up{namespace="shop",x="web-canary"}`},
		{"exported_namespace", false, `up{exported_namespace="shop",x="web-canary"}`},
		{"exported_namespace", true, `up{x="web-canary"}`},
	} {
		m := sharedAt(address)[v1alpha1.ProviderPrometheus]
		m.Shared.NamespaceLabel, m.Trusted = test.label, test.trusted
		measurer, err := sharing(t).Build(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := measurer.Measure(t.Context(), sourcetest.Now); err != nil || asked != test.want {
			t.Errorf("asked %s, want %s: %v", asked, test.want, err)
		}
	}
}

func TestASharedProviderThatCantBeAskedIsAMistake(t *testing.T) {
	m := sharedAt("http://p")[v1alpha1.ProviderPrometheus]
	unknown := m
	unknown.Shared = nil
	other := m
	other.Shared = &v1alpha1.ClusterMetricProviderSpec{Type: v1alpha1.ProviderGraphite}
	none := sharing(t)
	none.Shared = nil
	for name, test := range map[string]struct {
		p    Providers
		m    resolve.Metric
		want string
	}{
		"it was not looked up": {sharing(t), unknown, "providerRef: names no ClusterMetricProvider of this type"},
		"another type":         {sharing(t), other, "providerRef: names no ClusterMetricProvider of this type"},
		"no operator for it":   {none, m, "providerRef: this operator uses no ClusterMetricProviders"},
	} {
		if _, err := test.p.Build(test.m); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSystemsWithAnAddressForEverybodyNeedNone(t *testing.T) {
	for kind, want := range map[v1alpha1.ProviderType]string{
		v1alpha1.ProviderDatadog: "api.datadoghq.com", v1alpha1.ProviderNewRelic: "api.newrelic.com", v1alpha1.ProviderCloudWatch: "monitoring.eu-central-1.amazonaws.com",
	} {
		m := sharedAt("")[kind]
		measurer, err := sharing(t).Build(m)
		if err != nil {
			t.Fatal(err)
		}
		// The Secret names another host: the message tells which one was meant.
		s, err := measurer.Measure(t.Context(), sourcetest.Now)
		sourcetest.WantMissing(t, s, err, source.Credentials)
		if !strings.Contains(err.Error(), "may not be sent to "+want+";") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
