// SPDX-License-Identifier: Apache-2.0

package flagger

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// Group of the API of Flagger.
const Group = "flagger.app"

// Kinds are those that are read.
var Kinds = []string{"Canary", "MetricTemplate", "AlertProvider"}

// canary is one that is converted.
type canary struct {
	set    *source.Set
	object *source.Object
	serin  *v1alpha1.Rollout
	// service is the name of the one that clients call.
	service string
	// made are all objects that it becomes.
	made []runtime.Object
}

// Convert adds to an output what the Canaries of a set become. Their metric templates and
// alert providers become parts of these.
func Convert(set *source.Set, out *target.Output) error {
	for _, o := range set.Of(Group, "Canary") {
		c := &canary{set: set, object: o}
		c.convert()
		for _, object := range c.made {
			if err := out.Add(o, object); err != nil {
				return err
			}
		}
	}
	return nil
}
