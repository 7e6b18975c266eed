// SPDX-License-Identifier: Apache-2.0

package trafficblock

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Compute returns the block after a change. The order of the flags does not matter:
//
//  1. --untag takes tags away;
//  2. --tag gives them; a Service that has one already gets one more target;
//  3. --traffic sets the percentages: all others become 0, and the one target that is
//     missing gets what is left of 100;
//  4. targets with neither a tag nor traffic are removed.
//
// latest is the Service that [Latest] stands for; it may be "" where the change does
// not need it. The block that is given is not changed.
func Compute(before Block, c Change, latest string) (Block, error) {
	if c.NeedsLatest() && latest == "" {
		return nil, fmt.Errorf("%s stands for no version: none is ready; name a revision", Latest)
	}
	block := slices.Clone(before)
	if err := block.takeTags(c.untag); err != nil {
		return nil, err
	}
	var err error
	for _, t := range c.tag {
		if block, err = block.giveTag(t.tag, resolve(t.revision, latest)); err != nil {
			return nil, err
		}
	}
	if len(c.traffic) > 0 {
		if block, err = block.share(c.traffic, len(before), latest); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(block, func(t Target) bool { return t.Tag == "" && t.Weight == 0 }), nil
}

func resolve(reference, latest string) string {
	if reference == Latest {
		return latest
	}
	return reference
}

// takeTags names every tag that is not there, not only the first one.
func (b Block) takeTags(tags []string) error {
	var missing []string
	for _, tag := range tags {
		i := -1
		if tag != "" {
			i = b.withTag(tag)
		}
		if i < 0 {
			missing = append(missing, fmt.Sprintf("%q", tag))
			continue
		}
		b[i].Tag = ""
	}
	if len(missing) > 0 {
		return fmt.Errorf("--untag: tag(s) %s not present for any revisions of the split", strings.Join(missing, ", "))
	}
	return nil
}

func (b Block) giveTag(tag, service string) (Block, error) {
	if i := b.withTag(tag); i >= 0 {
		if b[i].Service == service {
			return b, nil
		}
		return nil, fmt.Errorf("--tag: refusing to overwrite existing tag %q of %s, add flag '--untag %s' in command to untag it", tag, b[i].Service, tag)
	}
	i := slices.IndexFunc(b, func(t Target) bool { return t.Service == service })
	if i >= 0 && b[i].Tag == "" {
		b[i].Tag = tag
		return b, nil
	}
	return append(b, Target{Service: service, Tag: tag}), nil
}

// share sets the percentages. The first known targets were there before the command.
func (b Block) share(portions []portion, known int, latest string) (Block, error) {
	for i := range b {
		b[i].Weight = 0
	}
	given := map[int]string{}
	var sum int32
	for _, p := range portions {
		var i int
		if b, i = b.place(p.reference, latest); given[i] != "" {
			return nil, fmt.Errorf("--traffic: %s and %s are the same target, %s: give it one percentage", given[i], p.reference, b[i].Service)
		}
		given[i] = p.reference
		b[i].Weight = p.percent
		sum += p.percent
	}
	if sum == all {
		return b, nil
	}
	i, err := b.missing(given, known, len(portions), latest)
	if err != nil {
		return nil, fmt.Errorf("--traffic: unable to allocate the remaining traffic: %d%%. Reason: %w", all-sum, err)
	}
	b[i].Weight = all - sum
	return b, nil
}

// place finds the target that a reference names, and adds one for a name that is new.
func (b Block) place(reference, latest string) (Block, int) {
	i := b.find(reference)
	if reference == Latest {
		i = slices.IndexFunc(b, func(t Target) bool { return t.Service == latest })
	}
	if i >= 0 {
		return b, i
	}
	return append(b, Target{Service: resolve(reference, latest)}), len(b)
}

// Errors of weights that do not say where the rest of 100 goes.
var (
	errCount    = errors.New("incorrect number of revisions specified. Only 1 revision should be missing")
	errNotFound = errors.New("cannot determine the missing revision")
)

// missing is the only target from before the command that was given no percentage. A
// target is not missing where its Service was named.
func (b Block) missing(given map[int]string, known, portions int, latest string) (int, error) {
	if portions != known-1 {
		return 0, errCount
	}
	named := map[string]bool{}
	for i, reference := range given {
		if resolve(reference, latest) == b[i].Service {
			named[b[i].Service] = true
		}
	}
	var left []int
	for i := range b[:known] {
		if given[i] == "" && !named[b[i].Service] {
			left = append(left, i)
		}
	}
	if len(left) != 1 {
		return 0, errNotFound
	}
	return left[0], nil
}
