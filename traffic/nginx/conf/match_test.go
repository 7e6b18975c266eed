// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/traffic"
)

func TestWeightsOfALimitedSplitAreNotInTheConfiguration(t *testing.T) {
	before, after := limitedSplit(), limitedSplit()
	after.Ports[0].Destinations[0].Weight = 7
	a, b := render(t, before), render(t, after)
	if a.Key != b.Key {
		t.Error("a change of weights takes a reload")
	}
	if cmp.Equal(a.Table, b.Table) {
		t.Error("a change of weights leaves the table as it is")
	}
}

func TestADefaultThatIsNoBackendIsKnown(t *testing.T) {
	split := limitedSplit()
	other := testDestination("web-old", 0)
	split.Ports[0].Default = &other
	r := render(t, split)
	if r.Services[BackendID(other)] != "web-old" {
		t.Errorf("Services: %v", r.Services)
	}
	for _, l := range r.Table {
		for _, part := range l.Ranges {
			if part.Target == BackendID(other) {
				t.Errorf("a default gets a share of the weights: %v", l)
			}
		}
	}
	mirrored := render(t, mirroredSplit())
	if mirrored.Services[BackendID(*mirroredSplit().Ports[0].Mirror)] != "web-canary" {
		t.Errorf("Services of a mirrored split: %v", mirrored.Services)
	}
}

func TestMatchesThatNginxCantExpress(t *testing.T) {
	match := func(m traffic.Match) traffic.Split {
		m.Group, m.Name = "g", "m"
		split := limitedSplit()
		split.Matches = []traffic.Match{m}
		return split
	}
	header := func(name, regex string) traffic.Split {
		return match(traffic.Match{Headers: []traffic.Header{{Name: name, Regex: regex}}})
	}
	many := limitedSplit()
	many.Matches = slices.Repeat([]traffic.Match{{Path: "/"}}, maxConditions+1)
	tcp := limitedSplit()
	tcp.Ports[0].Protocol = traffic.ProtocolTCP
	address := limitedSplit()
	address.Ports[0].Default.Address = "None"
	percent := mirroredSplit()
	percent.Mirror.Percent = 0
	for name, test := range map[string]struct {
		split traffic.Split
		want  string
	}{
		"a header that nginx takes for another":  {header("x_beta", "1"), `HTTPRouteGroup "g", match "m": headers: nginx can't tell the header "x_beta"`},
		"a header with characters of its own":    {header("x.beta", "1"), `"x.beta"`},
		"a header's value beyond ASCII":          {header("x-beta", "é"), `HTTPRouteGroup "g", match "m": headers: x-beta: "é": names a character beyond ASCII`},
		"a path beyond ASCII":                    {match(traffic.Match{Path: "/é"}), `HTTPRouteGroup "g", match "m": pathRegex`},
		"a method that is a directive of a map":  {match(traffic.Match{Methods: []string{"include"}}), `"include" is not a method`},
		"a method that would end the word":       {match(traffic.Match{Methods: []string{"GET;"}}), `"GET;" is not a method`},
		"more conditions than may cost time":     {many, "129 conditions"},
		"connections":                            {tcp, "is not HTTP"},
		"a default without an address":           {address, "give it a ClusterIP"},
		"a percentage that is none":              {percent, "percentage"},
		"an expression that was never checked":   {header("x-beta", "(a+)+"), "repeats inside"},
		"an expression that breaks out, checked": {header("x-beta", "a\n"), "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Render(test.split, testOptions())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestPortsWithOneTargetNeedOneDefault(t *testing.T) {
	split := limitedSplit()
	again := split.Ports[0]
	again.Number, again.Default = 81, nil
	split.Ports = append(split.Ports, again)
	if _, err := Listeners(split); err == nil || !strings.Contains(err.Error(), "not the same backends") {
		t.Errorf("got %v", err)
	}
}

// FuzzRenderMatches checks that whatever a group holds, nginx either gets nothing or
// exactly the structure that the number of conditions gives.
func FuzzRenderMatches(f *testing.F) {
	f.Add("GET", "/api/v[12]", "user-agent", ".*Firefox.*", "x-beta", "1", int32(10))
	f.Add("default", "a\n}", "$host", "\"; include /etc/passwd; #", "x;}", "${x}", int32(101))
	f.Add("", "", "cookie", "^(.*?;)?(type=insider)(;.*)?$", "x-user", `\`, int32(100))
	f.Fuzz(func(t *testing.T, method, path, name1, regex1, name2, regex2 string, percent int32) {
		m := traffic.Match{Group: method, Name: path, Path: path, Headers: []traffic.Header{
			{Name: name1, Regex: regex1}, {Name: name2, Regex: regex2},
		}}
		if method != "" {
			m.Methods = []string{method}
		}
		split := limitedSplit()
		split.Matches = []traffic.Match{m, {}}
		canary := testDestination("web-canary", 0)
		split.Ports[0].Mirror, split.Mirror = &canary, &traffic.Mirror{Service: regex1, Percent: percent}
		r, err := Render(split, testOptions())
		if err != nil {
			return
		}
		directives, err := parse(string(r.Config))
		if err != nil {
			t.Fatalf("nginx could not read it: %v\n%s", err, r.Config)
		}
		keys := []string{method, "~" + pcreOptions + "^(?:" + path + ")", "~" + pcreOptions + regex1, "~" + pcreOptions + regex2}
		maps := map[string]directive{}
		for _, d := range directives {
			if d.words[0] != "http" {
				continue
			}
			for _, in := range d.block {
				if in.words[0] == "map" {
					maps[in.words[2]] = in
				}
			}
		}
		for j := range m.Conditions() {
			d, found := maps[fmt.Sprintf("$serin_c_0_%d", j)]
			if !found || len(d.block) != 3 {
				t.Fatalf("condition %d: %v\n%s", j, d, r.Config)
			}
			if key := d.block[2].words[0]; !slices.Contains(keys, key) {
				t.Errorf("condition %d is %q, which is none of %q", j, key, keys)
			}
			for _, line := range d.block {
				if len(line.words) != 2 || line.words[1] != "0" && line.words[1] != "1" {
					t.Errorf("condition %d has the line %q", j, line.words)
				}
			}
		}
		if _, more := maps[fmt.Sprintf("$serin_c_0_%d", m.Conditions())]; more {
			t.Errorf("there are more than %d conditions\n%s", m.Conditions(), r.Config)
		}
		got := map[string]int{}
		shape(directives, "", got)
		for path, n := range map[string]int{"http/server": 3, "http/server/listen": 4, "http/upstream": 4 + 2, "http/server/location/mirror": 2} {
			if got[path] != n {
				t.Errorf("%s: %d times, want %d\n%s", path, got[path], n, r.Config)
			}
		}
	})
}
