// SPDX-License-Identifier: Apache-2.0

package trafficblock_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/trafficblock"
)

// flags are a command line's, as pflag splits it.
func flags(line string) (f trafficblock.Flags) {
	fields := strings.Fields(line)
	for i := 0; i+1 < len(fields); i += 2 {
		list := map[string]*[]string{"--traffic": &f.Traffic, "--tag": &f.Tag, "--untag": &f.Untag}[fields[i]]
		*list = append(*list, fields[i+1])
	}
	return f
}

func block(targets ...trafficblock.Target) trafficblock.Block { return targets }

func on(service string, weight int32) trafficblock.Target {
	return trafficblock.Target{Service: service, Weight: weight}
}

func tagged(service, tag string, weight int32) trafficblock.Target {
	return trafficblock.Target{Service: service, Tag: tag, Weight: weight}
}

// newest is what @latest stands for.
const newest = "echo-v9"

func compute(before trafficblock.Block, line string) (trafficblock.Block, error) {
	change, err := trafficblock.Parse(flags(line))
	if err != nil {
		return nil, err
	}
	return trafficblock.Compute(before, change, newest)
}

func TestCompute(t *testing.T) {
	tests := []struct {
		name   string
		before trafficblock.Block
		line   string
		want   trafficblock.Block
	}{
		// The examples of the text.
		{
			name:   "tag revisions echo-v1 and echo-v2 as stable and staging",
			before: block(on("echo-v1", 60), on("echo-v2", 40)),
			line:   "--tag echo-v1=stable --tag echo-v2=staging",
			want:   block(tagged("echo-v1", "stable", 60), tagged("echo-v2", "staging", 40)),
		},
		{
			name:   "ramp echo-v3 to 20%, adjusting other traffic to accommodate",
			before: block(on("echo-v2", 100)),
			line:   "--traffic echo-v3=20 --traffic echo-v2=80",
			want:   block(on("echo-v2", 80), on("echo-v3", 20)),
		},
		{
			name:   "give echo-v3 the tag candidate without otherwise changing any split",
			before: block(on("echo-v1", 1), on("echo-v2", 2)),
			line:   "--tag echo-v3=candidate",
			want:   block(on("echo-v1", 1), on("echo-v2", 2), tagged("echo-v3", "candidate", 0)),
		},
		{
			name:   "give echo-v3 the tag candidate and 2% of the traffic, the others go to echo-v2",
			before: block(on("echo-v2", 100)),
			line:   "--tag echo-v3=candidate --traffic candidate=2 --traffic echo-v2=98",
			want:   block(on("echo-v2", 98), tagged("echo-v3", "candidate", 2)),
		},
		{
			name:   "update the tag of echo-v3 from candidate to current",
			before: block(on("echo-v2", 98), tagged("echo-v3", "candidate", 2)),
			line:   "--untag candidate --tag echo-v3=current",
			want:   block(on("echo-v2", 98), tagged("echo-v3", "current", 2)),
		},
		{
			name:   "remove the tag current from echo-v3",
			before: block(on("echo-v2", 98), tagged("echo-v3", "current", 2)),
			line:   "--untag current",
			want:   block(on("echo-v2", 98), on("echo-v3", 2)),
		},
		{
			name:   "remove echo-v3 that has no tags entirely, adjusting echo-v2 to fill up",
			before: block(on("echo-v2", 98), on("echo-v3", 2)),
			line:   "--traffic echo-v2=100",
			want:   block(on("echo-v2", 100)),
		},
		{
			name:   "remove echo-v1 and its tag old from the traffic assignments entirely",
			before: block(tagged("echo-v1", "old", 30), on("echo-v2", 70)),
			line:   "--untag old --traffic echo-v1=0",
			want:   block(on("echo-v2", 100)),
		},
		{
			name:   "tag echo-v1 with stable and echo-v2 with current, and split 50-50% to each",
			before: block(on("echo-v1", 100)),
			line:   "--tag echo-v1=stable,echo-v2=current --traffic stable=50,current=50",
			want:   block(tagged("echo-v1", "stable", 50), tagged("echo-v2", "current", 50)),
		},
		{
			name:   "revert all the traffic to the latest ready revision",
			before: block(on("echo-v1", 70), on("echo-v2", 30)),
			line:   "--traffic @latest=100",
			want:   block(on(newest, 100)),
		},
		{
			name:   "tag the latest ready revision as current",
			before: block(on("echo-v1", 100), on(newest, 0)),
			line:   "--tag @latest=current",
			want:   block(on("echo-v1", 100), tagged(newest, "current", 0)),
		},
		{
			name:   "update the tag of echo-v4 to testing and assign all traffic to it",
			before: block(on("echo-v1", 100), tagged("echo-v4", "oldv4", 0)),
			line:   "--untag oldv4 --tag echo-v4=testing --traffic testing=100",
			want:   block(tagged("echo-v4", "testing", 100)),
		},
		{
			name:   "replace the tag latest of echo-v1 by old and give latest to echo-v2",
			before: block(tagged("echo-v1", "latest", 40), on("echo-v2", 60)),
			line:   "--untag latest --tag echo-v1=old --tag echo-v2=latest",
			want:   block(tagged("echo-v1", "old", 40), tagged("echo-v2", "latest", 60)),
		},
		{
			name:   "@latest and a named revision share the traffic",
			before: block(on("svc-vwxyz", 100)),
			line:   "--traffic @latest=10 --traffic svc-vwxyz=90",
			want:   block(on("svc-vwxyz", 90), on(newest, 10)),
		},
		{
			name:   "@latest and a named revision get tags",
			before: block(on("svc-vwxyz", 100)),
			line:   "--tag @latest=candidate --tag svc-vwxyz=current",
			want:   block(tagged("svc-vwxyz", "current", 100), tagged(newest, "candidate", 0)),
		},
		{
			name:   "a new tag is a reference in the same command",
			before: block(on("echo-abcde", 100)),
			line:   "--tag echo-abcde=stable --traffic stable=100",
			want:   block(tagged("echo-abcde", "stable", 100)),
		},
		// The notes of the text.
		{
			name:   "the order of the flags is not taken into account",
			before: block(tagged("echo-v1", "testing", 100)),
			line:   "--traffic staging=100 --tag echo-v1=staging --untag testing",
			want:   block(tagged("echo-v1", "staging", 100)),
		},
		{
			name:   "an untagged revision with 0% is removed from the traffic block entirely",
			before: block(on("echo-v1", 100), tagged("echo-v2", "candidate", 0)),
			line:   "--untag candidate",
			want:   block(on("echo-v1", 100)),
		},
		{
			name:   "several tags are taken away by one list",
			before: block(tagged("echo-v1", "v1", 50), tagged("echo-v2", "v2", 50)),
			line:   "--untag v1,v2",
			want:   block(on("echo-v1", 50), on("echo-v2", 50)),
		},
		{
			name:   "a list may end with a comma, and the same revision has several targets by tags",
			before: block(on("echo-v1", 100)),
			line:   "--tag echo-v1=v1,echo-v2=v2, --traffic v1=50,v2=50",
			want:   block(tagged("echo-v1", "v1", 50), tagged("echo-v2", "v2", 50)),
		},
		{
			name:   "a tagged revision that is tagged again gets a new target with 0% and the new tag",
			before: block(tagged("echo-v1", "one", 100)),
			line:   "--tag echo-v1=two",
			want:   block(tagged("echo-v1", "one", 100), tagged("echo-v1", "two", 0)),
		},
		{
			name:   "several tags are given to the same revision in one command",
			before: block(on("echo-v1", 100)),
			line:   "--tag echo-v1=one --tag echo-v1=two",
			want:   block(tagged("echo-v1", "one", 100), tagged("echo-v1", "two", 0)),
		},
		{
			name:   "two targets of one revision get traffic by their tags",
			before: block(on("echo-v1", 100)),
			line:   "--tag echo-v1=one,echo-v1=two --traffic one=30,two=70",
			want:   block(tagged("echo-v1", "one", 30), tagged("echo-v1", "two", 70)),
		},
		{
			name:   "the tag that a revision has already is no error",
			before: block(tagged("echo-v1", "one", 100)),
			line:   "--tag echo-v1=one",
			want:   block(tagged("echo-v1", "one", 100)),
		},
		{
			name:   "a tag is looked up before the name of a revision",
			before: block(on("echo-v1", 40), tagged("echo-v2", "echo-v1", 60)),
			line:   "--traffic echo-v1=100",
			want:   block(tagged("echo-v2", "echo-v1", 100)),
		},
		// What is left of 100.
		{
			name:   "the one target that is missing is filled up",
			before: block(on("echo-v1", 50), on("echo-v2", 50)),
			line:   "--traffic echo-v1=30",
			want:   block(on("echo-v1", 30), on("echo-v2", 70)),
		},
		{
			name:   "a target with a tag is filled up as well",
			before: block(tagged("echo-v1", "old", 10), on("echo-v2", 20), on("echo-v3", 70)),
			line:   "--traffic echo-v2=5 --traffic echo-v3=5",
			want:   block(tagged("echo-v1", "old", 90), on("echo-v2", 5), on("echo-v3", 5)),
		},
		{
			name:   "another target of the same revision is filled up where only the tag was named",
			before: block(tagged("echo-v1", "one", 40), tagged("echo-v1", "two", 60)),
			line:   "--traffic one=25",
			want:   block(tagged("echo-v1", "one", 25), tagged("echo-v1", "two", 75)),
		},
		{
			name:   "@latest counts as the revision that it stands for",
			before: block(on("echo-v1", 100), on(newest, 0)),
			line:   "--traffic @latest=10",
			want:   block(on("echo-v1", 90), on(newest, 10)),
		},
		{
			name:   "a revision that was named by its name is not missing where it has another tag",
			before: block(tagged("echo-v1", "one", 20), tagged("echo-v1", "two", 20), on("echo-v2", 60)),
			line:   "--traffic echo-v1=10,echo-v3=20",
			want:   block(tagged("echo-v1", "one", 10), tagged("echo-v1", "two", 0), on("echo-v2", 70), on("echo-v3", 20)),
		},
		{
			name:   "the revision that @latest stands for is not missing where it has another tag",
			before: block(tagged(newest, "one", 20), tagged(newest, "two", 20), on("echo-v2", 60)),
			line:   "--traffic @latest=10,echo-v3=20",
			want:   block(tagged(newest, "one", 10), tagged(newest, "two", 0), on("echo-v2", 70), on("echo-v3", 20)),
		},
		{
			name:   "a revision that the same command adds is not missing",
			before: block(on("echo-v1", 50), on("echo-v2", 50)),
			line:   "--tag echo-v3=candidate --traffic echo-v1=10",
			want:   block(on("echo-v1", 10), on("echo-v2", 90), tagged("echo-v3", "candidate", 0)),
		},
		{
			name:   "weights that don't sum to 100 become percentages",
			before: block(on("echo-v1", 1), on("echo-v2", 2)),
			line:   "--traffic echo-v1=1",
			want:   block(on("echo-v1", 1), on("echo-v2", 99)),
		},
		{
			name:   "a percent sign is allowed",
			before: block(on("echo-v1", 1), on("echo-v2", 2)),
			line:   "--traffic echo-v1=10%,echo-v2=90%",
			want:   block(on("echo-v1", 10), on("echo-v2", 90)),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := append(trafficblock.Block{}, test.before...)
			got, err := compute(test.before, test.line)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, test.before); diff != "" {
				t.Errorf("the block before was changed: %s", diff)
			}
		})
	}
}

func TestErrorsChangeNothing(t *testing.T) {
	one := block(on("echo-v1", 100))
	two := block(tagged("echo-v1", "stable", 60), on("echo-v2", 40))
	tests := []struct {
		name   string
		before trafficblock.Block
		line   string
		want   string
	}{
		{"the sum may not be above 100", two, "--traffic echo-v1=60,echo-v2=50", "given traffic percents sum to 110, want <=100"},
		{"the sum may not be 101", two, "--traffic echo-v1=60,echo-v2=41", "given traffic percents sum to 101, want <=100"},
		{"two targets are missing", block(on("a", 1), on("b", 1), on("c", 1)), "--traffic a=10", "Only 1 revision should be missing"},
		{"no backend is missing", two, "--traffic echo-v1=10,echo-v2=20", "unable to allocate the remaining traffic: 70%"},
		{"a new revision leaves two without a percentage", two, "--traffic echo-v3=10", "cannot determine the missing revision"},
		{"one revision beside a new one is not enough", one, "--traffic echo-v2=10", "Only 1 revision should be missing"},
		{"0% for everybody", two, "--traffic echo-v1=0,echo-v2=0", "unable to allocate the remaining traffic: 100%"},
		{"@latest twice in --traffic", one, "--traffic @latest=10 --traffic @latest=90", "repetition of identifier @latest is not allowed, use only once with --traffic flag"},
		{"@latest twice in --tag", one, "--tag @latest=a,@latest=b", "repetition of identifier @latest is not allowed, use only once with --tag flag"},
		{"a revision twice in --traffic", one, "--traffic echo-v1=10,echo-v1=90", "repetition of revision reference echo-v1 is not allowed, use only once with --traffic flag"},
		{"a tag twice in --traffic", two, "--traffic stable=10 --traffic stable=90", "repetition of revision reference stable"},
		{"a revision by its name and by its only tag", two, "--traffic stable=10,echo-v1=90", "are the same target"},
		{"@latest and the name of the same revision", block(on(newest, 1)), "--traffic @latest=10,echo-v9=90", "are the same target"},
		{"a tag that another revision has", two, "--tag echo-v2=stable", "refusing to overwrite existing tag \"stable\" of echo-v1, add flag '--untag stable'"},
		{"a tag for two revisions in one command", one, "--tag echo-v1=new,echo-v2=new", "refusing to overwrite existing tag"},
		{"@latest with a tag that another revision has", two, "--tag @latest=stable", "refusing to overwrite existing tag"},
		{"tags that are not there are all named", two, "--untag stable,none,nothing", `tag(s) "none", "nothing" not present for any revisions`},
		{"an empty tag is none", one, "--untag ,", `tag(s) "" not present`},
		{"no value", one, "--traffic echo-v1", "expecting the value format in value1=value2"},
		{"an empty value", one, "--traffic echo-v1=", "expecting the value format in value1=value2"},
		{"an empty reference", one, "--tag =new", "expecting the value format in value1=value2"},
		{"two equal signs", one, "--traffic echo-v1=10=20", "expecting the value format in value1=value2"},
		{"an empty item in the middle of a list", one, "--tag echo-v1=a,,echo-v1=b", "expecting the value format in value1=value2"},
		{"a fraction", one, "--traffic echo-v1=99.5", "error converting given \"99.5\" to integer value for traffic distribution"},
		{"a negative percentage", one, "--traffic echo-v1=-1", "invalid value for traffic percent -1, expected 0 <= percent <= 100"},
		{"more than 100 percent", one, "--traffic echo-v1=101", "invalid value for traffic percent 101, expected 0 <= percent <= 100"},
		{"more than a number holds", one, "--traffic echo-v1=99999999999", "error converting"},
		{"a tag that is no name", one, "--tag echo-v1=New_One", `"New_One" can't be a tag`},
		{"a tag of more than 63 characters", one, "--tag echo-v1=" + strings.Repeat("a", 64), "can't be a tag"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := append(trafficblock.Block{}, test.before...)
			got, err := compute(test.before, test.line)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, test.want)
			}
			if diff := cmp.Diff(before, test.before); diff != "" {
				t.Errorf("the block before was changed: %s", diff)
			}
		})
	}
}

func TestLatestNeedsABackendThatIsReady(t *testing.T) {
	change, err := trafficblock.Parse(flags("--traffic @latest=100"))
	if err != nil {
		t.Fatal(err)
	}
	if !change.NeedsLatest() {
		t.Error("the change does not say that it needs @latest")
	}
	if _, err := trafficblock.Compute(block(on("a", 1)), change, ""); err == nil || !strings.Contains(err.Error(), "@latest stands for no version") {
		t.Errorf("got %v", err)
	}
}

func TestNamedRevisionsNeedNoLatest(t *testing.T) {
	change, err := trafficblock.Parse(flags("--traffic echo-v2=100"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := trafficblock.Compute(block(on("echo-v1", 100)), change, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(block(on("echo-v2", 100)), got); diff != "" {
		t.Error(diff)
	}
}

func TestReadAndWriteOfASplit(t *testing.T) {
	backends := []trafficblock.Backend{{Service: "echo-v1", Weight: 30}, {Service: "echo-v2", Weight: 70}}
	tags := map[string]string{"current": "echo-v2", "latest": "echo-v2", "gone": "echo-v0"}
	got := trafficblock.Read(backends, tags)
	want := block(on("echo-v1", 30), tagged("echo-v2", "current", 70), tagged("echo-v2", "latest", 0), tagged("echo-v0", "gone", 0))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(append(backends, trafficblock.Backend{Service: "echo-v0"}), got.Backends()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(tags, got.Tags()); diff != "" {
		t.Error(diff)
	}
}

func TestTargetsOfOneServiceAreOneBackendWithTheSum(t *testing.T) {
	got := block(tagged("a", "one", 30), on("b", 20), tagged("a", "two", 50)).Backends()
	want := []trafficblock.Backend{{Service: "a", Weight: 80}, {Service: "b", Weight: 20}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPercentsSumTo100(t *testing.T) {
	tests := []struct {
		weights []int32
		want    []int
	}{
		{[]int32{1, 1, 1}, []int{34, 33, 33}},
		{[]int32{1, 2}, []int{33, 67}},
		{[]int32{0, 5}, []int{0, 100}},
		{[]int32{0, 0}, []int{0, 0}},
		{[]int32{2147483647, 2147483647}, []int{50, 50}},
		{[]int32{999, 1}, []int{100, 0}},
		{nil, []int{}},
	}
	for _, test := range tests {
		var backends []trafficblock.Backend
		for _, w := range test.weights {
			backends = append(backends, trafficblock.Backend{Weight: w})
		}
		if diff := cmp.Diff(test.want, trafficblock.Percents(backends)); diff != "" {
			t.Errorf("%v: %s", test.weights, diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a=10,b=90", "a=x", "y")
	f.Add("@latest=100%,", "@latest=a,b=c", ",")
	f.Fuzz(func(t *testing.T, traffic, tag, untag string) {
		change, err := trafficblock.Parse(trafficblock.Flags{Traffic: []string{traffic}, Tag: []string{tag}, Untag: []string{untag}})
		if err != nil {
			return
		}
		got, err := trafficblock.Compute(block(on("a", 60), tagged("b", "x", 40)), change, newest)
		if err != nil {
			return
		}
		var sum int32
		for _, b := range got.Backends() {
			sum += b.Weight
		}
		if sum != 100 {
			t.Errorf("the weights sum to %d: %v", sum, got)
		}
	})
}
