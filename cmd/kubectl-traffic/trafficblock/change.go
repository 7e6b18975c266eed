// SPDX-License-Identifier: Apache-2.0

package trafficblock

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Latest stands for the newest version that is ready.
const Latest = "@latest"

// all is the sum of the percentages of a block.
const all = 100

// Change is what the flags of one command ask for.
type Change struct {
	untag   []string
	tag     []tagging
	traffic []portion
}

// tagging gives a tag to the revision that a reference names.
type tagging struct{ revision, tag string }

// portion gives a percentage to what a reference names.
type portion struct {
	reference string
	percent   int32
}

// Flags are the values of the flags: each may be a list, separated by commas, and may
// end with one.
type Flags struct{ Traffic, Tag, Untag []string }

// Parse reads the flags and checks what can be checked without knowing the split.
func Parse(flags Flags) (Change, error) {
	var c Change
	var err error
	if c.tag, err = parseTags(items(flags.Tag)); err != nil {
		return Change{}, err
	}
	if c.traffic, err = parseTraffic(items(flags.Traffic)); err != nil {
		return Change{}, err
	}
	c.untag = items(flags.Untag)
	return c, nil
}

// Empty is whether nothing is asked for.
func (c Change) Empty() bool { return len(c.untag)+len(c.tag)+len(c.traffic) == 0 }

// NeedsLatest is whether a flag names Latest.
func (c Change) NeedsLatest() bool {
	return slices.ContainsFunc(c.tag, func(t tagging) bool { return t.revision == Latest }) ||
		slices.ContainsFunc(c.traffic, func(p portion) bool { return p.reference == Latest })
}

// items splits lists at their commas. A comma at the end separates nothing.
func items(values []string) []string {
	var list []string
	for _, value := range values {
		list = append(list, strings.Split(strings.TrimSuffix(value, ","), ",")...)
	}
	return list
}

// cutAtEquals splits "left=right".
func cutAtEquals(item string) (left, right string, err error) {
	left, right, found := strings.Cut(item, "=")
	if !found || left == "" || right == "" || strings.Contains(right, "=") {
		return "", "", fmt.Errorf("expecting the value format in value1=value2, given %q", item)
	}
	return left, right, nil
}

func parseTags(list []string) ([]tagging, error) {
	var tags []tagging
	latest := false
	for _, item := range list {
		revision, tag, err := cutAtEquals(item)
		if err != nil {
			return nil, fmt.Errorf("--tag: %w", err)
		}
		if revision == Latest && latest {
			return nil, repeated("--tag", Latest)
		}
		latest = latest || revision == Latest
		if problems := validation.IsDNS1035Label(tag); len(problems) > 0 {
			return nil, fmt.Errorf("--tag: %q can't be a tag, which is a part of the name of a Service: %s", tag, problems[0])
		}
		tags = append(tags, tagging{revision, tag})
	}
	return tags, nil
}

func parseTraffic(list []string) ([]portion, error) {
	var portions []portion
	var sum int32
	for _, item := range list {
		reference, text, err := cutAtEquals(item)
		if err != nil {
			return nil, fmt.Errorf("--traffic: %w", err)
		}
		if slices.ContainsFunc(portions, func(p portion) bool { return p.reference == reference }) {
			return nil, repeated("--traffic", reference)
		}
		percent, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("--traffic: error converting given %q to integer value for traffic distribution", text)
		}
		if percent < 0 || percent > all {
			return nil, fmt.Errorf("--traffic: invalid value for traffic percent %d, expected 0 <= percent <= 100", percent)
		}
		sum += int32(percent)
		portions = append(portions, portion{reference, int32(percent)})
	}
	if sum > all {
		return nil, fmt.Errorf("--traffic: given traffic percents sum to %d, want <=100", sum)
	}
	return portions, nil
}

func repeated(flag, reference string) error {
	what := "revision reference " + reference
	if reference == Latest {
		what = "identifier " + Latest
	}
	return fmt.Errorf("repetition of %s is not allowed, use only once with %s flag", what, flag)
}
