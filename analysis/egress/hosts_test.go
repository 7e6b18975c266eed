// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func parsed(t *testing.T, list ...string) Hosts {
	t.Helper()
	hosts, err := ParseHosts(list)
	if err != nil {
		t.Fatal(err)
	}
	return hosts
}

func TestWhichURLsAPatternIsFor(t *testing.T) {
	for _, test := range []struct {
		pattern, address string
		want             bool
	}{
		{"example.org", "https://example.org/x", true},
		{"example.org", "https://EXAMPLE.org.:8443/x", true},
		{"Example.org.", "https://example.org", true},
		{"example.org", "https://www.example.org", false},
		{"example.org", "https://example.org.attacker.example", false},
		{"example.org", "https://attacker.example/example.org", false},
		{"example.org", "https://attacker.example?example.org", false},
		{"example.org", "https://attacker.example#example.org", false},
		{"example.org", "https://notexample.org", false},
		{"*.example.org", "https://www.example.org", true},
		{"*.example.org", "https://a.b.example.org", true},
		{"*.example.org", "https://example.org", false},
		{"*.example.org", "https://.example.org", false},
		{"*.example.org", "https://notexample.org", false},
		{"example.org:8443", "https://example.org:8443", true},
		{"example.org:8443", "https://example.org", false},
		{"example.org:443", "https://example.org", true},
		{"example.org:80", "http://example.org", true},
		{"10.0.0.7", "http://10.0.0.7:9090", true},
		{"10.0.0.7", "http://[::ffff:10.0.0.7]:9090", true},
		{"10.0.0.7:9090", "http://10.0.0.7:9091", false},
		{"[fd00::7]:9090", "http://[fd00:0::7]:9090", true},
		{"fd00::7", "http://[fd00::7]:9090", true},
		{"prometheus.monitoring", "http://prometheus.monitoring:9090", true},
		{"prometheus.monitoring", "http://prometheus.monitoring.svc:9090", false}, // a tenant may own the namespace of that name
	} {
		u, err := url.Parse(test.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := parsed(t, test.pattern).Match(u); got != test.want {
			t.Errorf("%s for %s: %v", test.pattern, test.address, got)
		}
	}
}

func TestWhichURLsHaveTheSameHost(t *testing.T) {
	for b, want := range map[string]bool{
		"https://EXAMPLE.org:443/x?y": true, "https://example.org.": true,
		"http://example.org": false, "https://example.org:8443": false, "https://example.com": false, "https://[": false,
	} {
		if SameHost("https://example.org", b) != want || SameHost(b, "https://example.org") != want {
			t.Errorf("%s: want %v", b, want)
		}
	}
}

func TestPatternsThatAreNone(t *testing.T) {
	for _, text := range []string{"", "*", "*.", "https://example.org", "example.org/x", "exa*mple.org", "a b", "*.*.org", "[fd00::7", "[10]", "example.org:", "example.org:x", "exämple.org", ".", strings.Repeat("a.", 200) + "a"} {
		if _, err := ParseHosts([]string{text}); err == nil || !strings.Contains(err.Error(), "write for example") || len(err.Error()) > 200 {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheListsOfTheOperator(t *testing.T) {
	networks := func(list ...string) (parsed []netip.Prefix) {
		for _, text := range list {
			parsed = append(parsed, netip.MustParsePrefix(text))
		}
		return parsed
	}
	for name, test := range map[string]struct {
		policy        Policy
		host, address string
		want          string
	}{
		"no list":                         {Policy{}, "example.org", "10.0.0.1:80", ""},
		"a denied host":                   {Policy{Denied: Destinations{Hosts: parsed(t, "prometheus.monitoring")}}, "prometheus.monitoring", "", "leads to prometheus.monitoring, which outbound.deniedHosts of the operator's installation refuses"},
		"a denied Service by longer name": {Policy{Denied: Destinations{Hosts: parsed(t, "prometheus.monitoring")}}, "prometheus.monitoring.svc.cluster.local.", "", "outbound.deniedHosts"},
		"a denied Service by .svc":        {Policy{Denied: Destinations{Hosts: parsed(t, "*.monitoring")}}, "prometheus.monitoring.svc", "", "outbound.deniedHosts"},
		"a denied Service by short name":  {Policy{Denied: Destinations{Hosts: parsed(t, "prometheus.monitoring.svc.cluster.local")}}, "prometheus.monitoring", "", "outbound.deniedHosts"},
		"denied by .svc, shorter":         {Policy{Denied: Destinations{Hosts: parsed(t, "prometheus.monitoring.svc")}}, "Prometheus.Monitoring.", "", "outbound.deniedHosts"},
		"denied by .svc, longer":          {Policy{Denied: Destinations{Hosts: parsed(t, "*.monitoring.svc:9090")}}, "prometheus.monitoring.svc.cluster.local:9090", "", "outbound.deniedHosts"},
		"a Service that is not denied":    {Policy{Denied: Destinations{Hosts: parsed(t, "prometheus.monitoring.svc")}}, "prometheus.default.svc", "", ""},
		"all Services denied":             {Policy{Denied: Destinations{Hosts: parsed(t, "*.svc.cluster.local")}}, "a.b.svc.cluster.local", "", "outbound.deniedHosts"},
		"all Services, and another host":  {Policy{Denied: Destinations{Hosts: parsed(t, "*.svc.cluster.local", "*.svc")}}, "www.example.org", "", ""},
		"a denied network":                {Policy{Denied: Destinations{Networks: networks("10.0.0.0/24")}}, "example.org", "10.0.0.1:80", "leads to 10.0.0.1, which outbound.deniedCIDRs of the operator's installation refuses"},
		"a denied network inside IPv6":    {Policy{Denied: Destinations{Networks: networks("10.0.0.0/24")}}, "example.org", "[64:ff9b::10.0.0.1]:80", "outbound.deniedCIDRs"},
		"denied wins over allowed":        {Policy{Allowed: networks("10.0.0.1/32"), Denied: Destinations{Networks: networks("10.0.0.0/24")}}, "example.org", "10.0.0.1:80", "outbound.deniedCIDRs"},
		"only another host":               {Policy{Only: Destinations{Hosts: parsed(t, "*.example.com")}}, "example.org", "", "leads to example.org, which outbound.onlyHosts or outbound.onlyCIDRs of the operator's installation does not name"},
		"only that host":                  {Policy{Only: Destinations{Hosts: parsed(t, "*.example.org")}}, "www.example.org", "10.0.0.1:80", ""},
		"only that host, and loopback":    {Policy{Only: Destinations{Hosts: parsed(t, "*.example.org")}}, "www.example.org", "127.0.0.1:80", "a loopback address"},
		"only another network":            {Policy{Only: Destinations{Networks: networks("10.1.0.0/16")}}, "example.org", "10.0.0.1:80", "leads to 10.0.0.1, which outbound.only"},
		"only that network":               {Policy{Only: Destinations{Networks: networks("10.0.0.0/16")}}, "example.org", "10.0.0.1:80", ""},
		"only the host or the network":    {Policy{Only: Destinations{Hosts: parsed(t, "example.org"), Networks: networks("10.1.0.0/16")}}, "example.org", "10.0.0.1:80", ""},
		"only the network or the host":    {Policy{Only: Destinations{Hosts: parsed(t, "example.org"), Networks: networks("10.0.0.0/16")}}, "example.com", "10.0.0.1:80", ""},
		"a port of proxies":               {Policy{Ports: map[uint16]string{15020: "where proxies are read"}}, "example.org", "10.0.0.1:15020", "leads to 10.0.0.1, port 15020, where proxies are read, which is refused unless the operator is installed with outbound.allowedCIDRs for it"},
		"another port":                    {Policy{Ports: map[uint16]string{15020: "where proxies are read"}}, "example.org", "10.0.0.1:15021", ""},
		"a port of proxies, but allowed":  {Policy{Allowed: networks("10.0.0.1/32"), Ports: map[uint16]string{15020: "where proxies are read"}}, "example.org", "10.0.0.1:15020", ""},
		"a long name":                     {Policy{Only: Destinations{Hosts: parsed(t, "a")}}, strings.Repeat("a.", 120) + "a", "", "outbound.only"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &url.URL{Scheme: "http", Host: test.host}
			err := test.policy.checkHost(u)
			if err == nil && test.address != "" {
				host, port := Host(u)
				err = test.policy.Check(t.Context(), netip.MustParseAddrPort(test.address), test.policy.named(host, port))
			}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (!IsRefused(err) || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 230):
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzAHostThatIsMatchedIsTheOneThatIsCalled(f *testing.F) {
	for _, text := range []string{"http://example.org", "http://EXAMPLE.org.", "http://a.example.org:80/@x", "http://exämple.org", "http://x\\.example.org", "http://[::ffff:10.0.0.7%25x]"} {
		f.Add(text)
	}
	hosts, err := ParseHosts([]string{"example.org", "*.example.org", "10.0.0.7"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil || checkURL(u) != nil || !hosts.Match(u) {
			return
		}
		name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		a, err := netip.ParseAddr(name)
		if err == nil && a.Unmap().WithZone("").String() == "10.0.0.7" {
			return
		}
		if name != "example.org" && !strings.HasSuffix(name, ".example.org") {
			t.Errorf("%q is matched", text)
		}
	})
}
