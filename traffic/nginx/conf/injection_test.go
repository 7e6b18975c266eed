// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/traffic"
)

// corpus is text that means something to nginx, or to a regular expression, where it
// must not.
var corpus = []string{
	`"; include /etc/passwd; #`, "a\nload_module evil.so;", "'", `"`, `\`, `\"`, ";", "{", "}", "#", "$", "$host", "${host}", "\x00", "a\x00b", "\r\n", "\x7f",
	"default", "include", "hostnames", "volatile", "~", "~*^", `\default`, "*.example.com", "é", "a b", "",
	"(?P<serin_matched>1)", "(?<serin_path_sent>x)", "(a+)+$", "(a|a?)+x", "((a{0,50}){0,50}){0,50}", "(", "[", "a{1001}", `\1`, "(?=a)", "(?m)^a$",
	strings.Repeat("a", 300),
}

// TestNoTextOfASplitMeansAnythingToNginx puts each of the corpus into each place that
// text of API objects can get to. It is refused, or the configuration has the structure that
// harmless text gives, and no word that tells the text.
func TestNoTextOfASplitMeansAnythingToNginx(t *testing.T) {
	places := map[string]func(*traffic.Split, string){
		"the root Service":      func(s *traffic.Split, x string) { s.Root = x },
		"the namespace":         func(s *traffic.Split, x string) { s.Namespace = x },
		"the name":              func(s *traffic.Split, x string) { s.Name = x },
		"the port's name":       func(s *traffic.Split, x string) { s.Ports[0].Name = x },
		"the target's name":     func(s *traffic.Split, x string) { s.Ports[0].TargetNumber, s.Ports[0].TargetName = 0, "x"+x },
		"the backend":           func(s *traffic.Split, x string) { s.Ports[0].Destinations[1].Service = x },
		"the backend's address": func(s *traffic.Split, x string) { s.Ports[0].Destinations[1].Address = x },
		"the default":           func(s *traffic.Split, x string) { s.Ports[0].Default.Service = x },
		"the mirror":            func(s *traffic.Split, x string) { s.Ports[0].Mirror.Service = x },
		"the mirror's address":  func(s *traffic.Split, x string) { s.Ports[0].Mirror.Address = x },
		"the cookie":            func(s *traffic.Split, x string) { s.Sticky.Cookie = x },
		"the group":             func(s *traffic.Split, x string) { s.Matches[0].Group = x },
		"the match":             func(s *traffic.Split, x string) { s.Matches[0].Name = x },
		"a method":              func(s *traffic.Split, x string) { s.Matches[0].Methods[0] = x },
		"a path":                func(s *traffic.Split, x string) { s.Matches[0].Path = "/" + x },
		"a header":              func(s *traffic.Split, x string) { s.Matches[0].Headers[0].Name = x },
		"a header's value":      func(s *traffic.Split, x string) { s.Matches[0].Headers[0].Regex = "x" + x },
	}
	whole := func() traffic.Split {
		stable, canary := testDestination("web-stable", 0), testDestination("web-canary", 0)
		port := testPort(8080, traffic.ProtocolHTTP, testDestination("web-stable", 9), testDestination("web-canary", 1))
		port.Default, port.Mirror = &stable, &canary
		split := testSplit(port)
		split.Limited, split.Sticky = true, &traffic.Sticky{Cookie: "version"}
		split.Mirror = &traffic.Mirror{Service: "web-canary", Percent: 10}
		split.Matches = []traffic.Match{{
			Group: "g", Name: "m", Methods: []string{"GET"}, Path: "/api", Headers: []traffic.Header{{Name: "x-user", Regex: "bob"}},
		}}
		return split
	}
	structure := func(split traffic.Split) (map[string]int, []byte, error) {
		r, err := Render(split, testOptions())
		if err != nil {
			return nil, nil, err
		}
		directives, err := parse(string(r.Config))
		if err != nil {
			t.Fatalf("nginx could not read it: %v\n%s", err, r.Config)
		}
		counts := map[string]int{}
		shape(directives, "", counts)
		return counts, r.Config, nil
	}
	want, _, err := structure(whole())
	if err != nil {
		t.Fatal(err)
	}
	for place, put := range places {
		for _, text := range corpus {
			t.Run(fmt.Sprintf("%s: %.30q", place, text), func(t *testing.T) {
				split := whole()
				put(&split, text)
				got, config, err := structure(split)
				if err != nil {
					return
				}
				// Another Service is one more pair of upstreams.
				for _, path := range []string{"http/upstream", "http/upstream/server", "http/upstream/keepalive", "http/upstream/keepalive_timeout", "http/upstream/keepalive_time", "http/upstream/keepalive_requests"} {
					delete(got, path)
				}
				base := map[string]int{}
				for path, n := range want {
					if !strings.HasPrefix(path, "http/upstream") {
						base[path] = n
					}
				}
				if diff := cmp.Diff(base, got); diff != "" {
					t.Errorf("structure (-want +got):\n%s\n%s", diff, config)
				}
				if strings.Contains(string(config), "passwd") && !strings.Contains(place, "path") && !strings.Contains(place, "value") {
					t.Errorf("the text is in the configuration:\n%s", config)
				}
			})
		}
	}
}

// FuzzRenderProtocols checks that whatever a port and a cookie hold, nginx either gets
// nothing or exactly the servers that the protocol gives.
func FuzzRenderProtocols(f *testing.F) {
	f.Add("web-canary", "10.0.0.2", "version", int64(3600), uint8(0), int32(5))
	f.Add("web-canary", "fd00::1", "a; HttpOnly\r\nX: y", int64(-1), uint8(1), int32(0))
	f.Add(`"; include /etc/passwd; #`, "::1%{", "$host", int64(0), uint8(2), int32(-1))
	f.Add("default", "10.0.0.1; }", "", int64(1), uint8(3), int32(1))
	protocols := []traffic.Protocol{traffic.ProtocolHTTP, traffic.ProtocolHTTP2, traffic.ProtocolTCP, traffic.ProtocolUDP}
	f.Fuzz(func(t *testing.T, service, address, cookie string, age int64, number uint8, weight int32) {
		protocol := protocols[int(number)%len(protocols)]
		split := testSplit(testPort(8080, protocol, testDestination("web-stable", 95),
			traffic.Destination{Service: service, Address: address, Port: 80, Weight: weight}))
		if cookie != "" {
			split.Sticky = &traffic.Sticky{Cookie: cookie, MaxAge: age}
		}
		r, err := Render(split, testOptions())
		if err != nil {
			return
		}
		directives, err := parse(string(r.Config))
		if err != nil {
			t.Fatalf("nginx could not read it: %v\n%s", err, r.Config)
		}
		got := map[string]int{}
		shape(directives, "", got)
		want := map[string]int{"http/server": 1, "stream": 0, "stream/server": 0, "http/server/add_header": 0}
		switch protocol {
		case traffic.ProtocolTCP:
			want["stream"], want["stream/server"] = 1, 1
		case traffic.ProtocolUDP:
			if len(r.Datagrams) != 1 || len(r.Datagrams[0].Sockets) != 2 {
				t.Errorf("listeners of UDP: %+v", r.Datagrams)
			}
		default:
			want["http/server"] = 2
			if split.Sticky != nil {
				want["http/server/add_header"] = 1
			}
		}
		for path, n := range want {
			if got[path] != n {
				t.Errorf("%s: %d times, want %d\n%s", path, got[path], n, r.Config)
			}
		}
		if len(service) > 12 && strings.Contains(string(r.Config), service) {
			t.Errorf("the text holds %q\n%s", service, r.Config)
		}
	})
}
