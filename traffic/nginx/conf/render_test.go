// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/config/golden"
	"github.com/serin-dev/serin/traffic"
)

func testOptions() Options {
	return Options{
		Dir: DefaultDir, StreamModule: "/usr/lib/nginx/modules/ngx_stream_module.so",
		Workers: 2, Connections: 10240, Memory: 512 * mib, OpenFiles: 20480, IPv6: true,
	}
}

func testSplit(ports ...traffic.Port) traffic.Split {
	return traffic.Split{
		NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"},
		Generation:     7, Root: "web", Ports: ports,
	}
}

func testPort(target int32, protocol traffic.Protocol, destinations ...traffic.Destination) traffic.Port {
	return traffic.Port{Number: 80, TargetNumber: target, Protocol: protocol, Destinations: destinations}
}

func testDestination(service string, weight int32) traffic.Destination {
	address := map[string]string{"web-stable": "10.0.0.1", "web-canary": "10.0.0.2"}[service]
	if address == "" {
		address = "fd00::3"
	}
	return traffic.Destination{Service: service, Address: address, Port: 80, Weight: weight}
}

// limitedSplit is the specification's example of an A/B test, with more conditions.
func limitedSplit() traffic.Split {
	stable := testDestination("web-stable", 0)
	port := testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 0), testDestination("web-canary", 100))
	port.Default = &stable
	split := testSplit(port)
	split.Limited = true
	split.Matches = []traffic.Match{
		{Group: "ab-test", Name: "firefox-users", Headers: []traffic.Header{{Name: "user-agent", Regex: ".*Firefox.*"}}},
		{Group: "ab-test", Name: "api", Methods: []string{"GET", "HEAD"}, Path: `/api/v\d+(/|$)`, Headers: []traffic.Header{
			{Name: "x-user", Regex: `^(?i:alice|"bob"; \}|\$\{x\})$`}, {Name: "x-beta", Regex: "[^0]"},
		}},
		{Group: "others", Name: "all"},
	}
	return split
}

// mirroredSplit sends copies to a backend that gets no other requests.
func mirroredSplit() traffic.Split {
	canary := testDestination("web-canary", 0)
	port := testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 100), canary)
	port.Mirror = &canary
	split := testSplit(port)
	split.Mirror = &traffic.Mirror{Service: "web-canary", Percent: 10}
	return split
}

// stickySplit limits what comes back to what matches.
func stickySplit() traffic.Split {
	split := limitedSplit()
	split.Matches = split.Matches[:1]
	split.Sticky = &traffic.Sticky{Cookie: "version", MaxAge: 3600}
	return split
}

// portsSplit has weights of its own on each of its ports, from nothing to all.
func portsSplit() traffic.Split {
	port := func(number int32, protocol traffic.Protocol, stable, canary int32) traffic.Port {
		p := testPort(number, protocol, testDestination("web-stable", stable), testDestination("web-canary", canary))
		p.Number = number
		for i := range p.Destinations {
			p.Destinations[i].Port = number
		}
		return p
	}
	split := testSplit(
		port(80, traffic.ProtocolHTTP, 100, 0), port(8080, traffic.ProtocolHTTP, 90, 10), port(9000, traffic.ProtocolHTTP2, 0, 100),
		port(443, traffic.ProtocolTCP, 0, 100), port(5432, traffic.ProtocolTCP, 3, 1), port(6379, traffic.ProtocolTCP, 100, 0),
		port(53, traffic.ProtocolUDP, 1, 1),
	)
	split.PortWeights = true
	return split
}

func TestRenderGolden(t *testing.T) {
	for name, split := range map[string]traffic.Split{
		"http":     testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 95), testDestination("web-canary", 5))),
		"limited":  limitedSplit(),
		"sticky":   stickySplit(),
		"mirrored": mirroredSplit(),
		"tcp":      testSplit(testPort(5432, traffic.ProtocolTCP, testDestination("web-stable", 2), testDestination("web-canary", 1), testDestination("web-extra", 0))),
		"http2":    testSplit(testPort(8080, traffic.ProtocolHTTP2, testDestination("web-stable", 95), testDestination("web-canary", 5))),
		"dns": testSplit(
			testPort(53, traffic.ProtocolTCP, testDestination("web-stable", 1)),
			testPort(53, traffic.ProtocolUDP, testDestination("web-stable", 1), testDestination("web-canary", 1)),
		),
		"ports":    portsSplit(),
		"unserved": testSplit(testPort(8080, traffic.ProtocolHTTP), testPort(5432, traffic.ProtocolTCP)),
		"one-ipv6": testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-extra", 1))),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Render(split, testOptions())
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".conf")
			golden.Check(t, file, string(got.Config))
			checkStatuses(t, string(got.Config))
		})
	}
}

var (
	namedLocation = regexp.MustCompile(`(?ms)^        location (@\S+) \{\n(.*?)^        \}`)
	errorPage     = regexp.MustCompile(`error_page \d+ (= )?(@\S+);`)
)

// checkStatuses checks that each named location which passes requests on is reached with "=". Without
// it, nginx gives the answer of a backend the status of the error that led there.
func checkStatuses(t *testing.T, config string) {
	t.Helper()
	passes := map[string]bool{}
	for _, l := range namedLocation.FindAllStringSubmatch(config, -1) {
		passes[l[1]] = passes[l[1]] || strings.Contains(l[2], "_pass ")
	}
	for _, e := range errorPage.FindAllStringSubmatch(config, -1) {
		if passes[e[2]] && e[1] == "" {
			t.Errorf("%q keeps the status of the error, also when a backend answers", e[0])
		}
	}
}

func render(t *testing.T, split traffic.Split) Rendering {
	t.Helper()
	r, err := Render(split, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHTTPWeightsAreNotInTheConfiguration(t *testing.T) {
	split := func(stable, canary int32) traffic.Split {
		return testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", stable), testDestination("web-canary", canary)))
	}
	before, after := render(t, split(100, 0)), render(t, split(95, 5))
	if diff := cmp.Diff(before.Config, after.Config); diff != "" || before.Key != after.Key {
		t.Errorf("a change of weights takes a reload:\n%s", diff)
	}
	stable, canary := BackendID(testDestination("web-stable", 0)), BackendID(testDestination("web-canary", 0))
	if diff := cmp.Diff(Table{{Ranges: []Range{{stable, 10000}, {canary, 0}}}}, before.Table); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Table{{Ranges: []Range{{stable, 9500}, {canary, 500}}}}, after.Table); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{stable: "web-stable", canary: "web-canary"}, after.Services); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
}

func TestHTTPWeightsOfOnePortAreInItsTableOnly(t *testing.T) {
	before, split := render(t, portsSplit()), portsSplit()
	split.Ports[1].Destinations[0].Weight, split.Ports[1].Destinations[1].Weight = 25, 75
	after := render(t, split)
	if diff := cmp.Diff(before.Config, after.Config); diff != "" || before.Key != after.Key {
		t.Errorf("a change of weights takes a reload:\n%s", diff)
	}
	id := func(service string, port int32) string {
		return BackendID(traffic.Destination{Service: service, Port: port})
	}
	table := func(stable, canary int) Table {
		return Table{
			{Listener: 0, Ranges: []Range{{id("web-stable", 80), 10000}, {id("web-canary", 80), 0}}},
			{Listener: 1, Ranges: []Range{{id("web-stable", 8080), stable}, {id("web-canary", 8080), canary}}},
			{Listener: 2, Ranges: []Range{{id("web-stable", 9000), 0}, {id("web-canary", 9000), 10000}}},
		}
	}
	if diff := cmp.Diff(table(9000, 1000), before.Table); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(table(2500, 7500), after.Table); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	datagrams := after.Datagrams
	if len(datagrams) != 1 || datagrams[0].Port.Destinations[0].Weight != 1 || datagrams[0].Port.Destinations[1].Weight != 1 {
		t.Errorf("datagrams: %+v", datagrams)
	}
}

func TestTheKeyTellsConfigurationsApart(t *testing.T) {
	keys := map[string]string{}
	for name, split := range map[string]traffic.Split{
		"one backend":    testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 1))),
		"two backends":   testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 1), testDestination("web-canary", 1))),
		"another port":   testSplit(testPort(8081, traffic.ProtocolHTTP, testDestination("web-stable", 1))),
		"TCP":            testSplit(testPort(8080, traffic.ProtocolTCP, testDestination("web-stable", 1))),
		"TCP weights":    testSplit(testPort(8080, traffic.ProtocolTCP, testDestination("web-stable", 1), testDestination("web-canary", 1))),
		"TCP weights, 2": testSplit(testPort(8080, traffic.ProtocolTCP, testDestination("web-stable", 2), testDestination("web-canary", 1))),
	} {
		key := render(t, split).Key
		if other, taken := keys[key]; taken {
			t.Errorf("%s and %s have one key", name, other)
		}
		keys[key] = name
	}
}

func TestAnHTTPPortThatNobodyServesHasATable(t *testing.T) {
	got := render(t, testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 0)))).Table
	if diff := cmp.Diff(Table{{Ranges: []Range{{BackendID(testDestination("web-stable", 0)), 0}}}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRenderRefuses(t *testing.T) {
	destination := func(change func(*traffic.Destination)) traffic.Split {
		d := testDestination("web-stable", 1)
		change(&d)
		return testSplit(testPort(8080, traffic.ProtocolHTTP, d))
	}
	sticky := func(name string) traffic.Split {
		s := destination(func(*traffic.Destination) {})
		s.Sticky = &traffic.Sticky{Cookie: name}
		return s
	}
	good := destination(func(*traffic.Destination) {})
	options := func(change func(*Options)) Options {
		o := testOptions()
		change(&o)
		return o
	}
	for name, test := range map[string]struct {
		split traffic.Split
		opts  Options
		want  string
	}{
		"a name that is no Service's":    {destination(func(d *traffic.Destination) { d.Service = "a;b" }), testOptions(), "is not the name of a Service"},
		"an address that is none":        {destination(func(d *traffic.Destination) { d.Address = "None" }), testOptions(), "give it a ClusterIP"},
		"an address with a zone":         {destination(func(d *traffic.Destination) { d.Address = "fe80::1%eth0" }), testOptions(), "give it a ClusterIP"},
		"a port of 0":                    {destination(func(d *traffic.Destination) { d.Port = 0 }), testOptions(), "between 1 and 65535"},
		"a negative weight":              {destination(func(d *traffic.Destination) { d.Weight = -1 }), testOptions(), "must not be negative"},
		"a backend that is named twice":  {testSplit(testPort(8080, traffic.ProtocolHTTP, testDestination("a", 1), testDestination("a", 1))), testOptions(), "named twice"},
		"UDP":                            {testSplit(testPort(53, traffic.ProtocolUnsupported)), testOptions(), "only HTTP, HTTP/2, TCP and UDP"},
		"a cookie that needs quotes":     {sticky("a b"), testOptions(), "not the name of a cookie"},
		"a cookie without a name":        {sticky(""), testOptions(), "not the name of a cookie"},
		"too many destinations":          {testSplit(testPort(8080, traffic.ProtocolHTTP, make([]traffic.Destination, maxDestinations+1)...)), testOptions(), "at most 256"},
		"a folder that needs quotes":     {good, options(func(o *Options) { o.Dir = "/a b" }), "dir:"},
		"a folder that is not clean":     {good, options(func(o *Options) { o.Dir = "/a/../b" }), "dir:"},
		"a relative folder":              {good, options(func(o *Options) { o.Dir = "run" }), "dir:"},
		"a module that needs quotes":     {good, options(func(o *Options) { o.StreamModule = "/x;" }), "streamModule:"},
		"no worker":                      {good, options(func(o *Options) { o.Workers = 0 }), "workers:"},
		"hardly a connection":            {good, options(func(o *Options) { o.Connections = 1 }), "connections:"},
		"a negative number of files":     {good, options(func(o *Options) { o.OpenFiles = -1 }), "openFiles:"},
		"a user that needs quotes":       {good, options(func(o *Options) { o.User = "a b" }), "user:"},
		"a root Service that is missing": {testSplit(), testOptions(), "no port to serve"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(test.split, test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
