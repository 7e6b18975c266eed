// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"errors"
	"fmt"
	"slices"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/argo"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/flagger"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// Kind is one that a migration reads.
type Kind struct{ Group, Version, Name string }

// Kinds are those that a migration reads: of both tools, and what they refer to.
func Kinds() (kinds []Kind) {
	for _, name := range argo.Kinds {
		kinds = append(kinds, Kind{argo.Group, "v1alpha1", name})
	}
	for _, name := range flagger.Kinds {
		kinds = append(kinds, Kind{flagger.Group, "v1beta1", name})
	}
	return append(kinds, Kind{"apps", "v1", "Deployment"}, Kind{"", "v1", "Service"})
}

// Convert returns the objects that a set becomes, in the order in which they have to be
// applied. The report is that of the set; its errors are returned.
func Convert(set *source.Set) ([]target.File, error) {
	check(set)
	out := &target.Output{}
	if err := errors.Join(argo.Convert(set, out), flagger.Convert(set, out)); err != nil {
		return nil, err
	}
	if err := set.Report.Err(); err != nil {
		return nil, err
	}
	if out.Empty() {
		return nil, errors.New("nothing to migrate: there is no Rollout or AnalysisTemplate of argoproj.io, and no Canary of flagger.app")
	}
	return out.Files()
}

// check reports objects of kinds that are not read, and refuses versions that are not known.
func check(set *source.Set) {
	for _, o := range set.Objects {
		i := slices.IndexFunc(Kinds(), func(k Kind) bool { return k.Group == o.Group() && k.Name == o.Kind() })
		if i < 0 {
			o.Field("kind").Note(source.ToDo, "an object of this kind is not migrated: keep it as it is, and see whether anything still needs it")
			continue
		}
		k := Kinds()[i]
		want := k.Version
		if k.Group != "" {
			want = fmt.Sprintf("%s/%s", k.Group, k.Version)
		}
		if version := o.Field("apiVersion"); version.Text() != want {
			version.Fail("is %q: only %s is known, so convert the object to it", version.Text(), want)
		}
	}
}
