// SPDX-License-Identifier: Apache-2.0

package strategy

import (
	"fmt"
	"time"

	analysis "github.com/serin-dev/serin/analysis/settings"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// longestAffinity is a year.
const longestAffinity = 365 * 24 * time.Hour

// noAffinity says for each router that can't keep clients on a version what to do instead.
var noAffinity = map[v1alpha1.RouterName]string{
	v1alpha1.RouterNone:  "remove it, or name the router nginx",
	v1alpha1.RouterSMI:   "remove it, or name the router nginx",
	v1alpha1.RouterIstio: "remove it, or name the router nginx",
}

// checkAffinity refuses clients that stay where nothing could keep them, or where no client would
// stay: a blue-green release moves all clients at once.
func checkAffinity(spec *v1alpha1.RolloutSpec, router v1alpha1.RouterName) error {
	affinity := spec.SessionAffinity
	if affinity == nil {
		return nil
	}
	if instead, lacks := noAffinity[router]; lacks {
		return fmt.Errorf("spec.sessionAffinity: the router %s can't keep clients on a version; %s", router, instead)
	}
	if spec.Strategy.Type == v1alpha1.StrategyBlueGreen {
		return fmt.Errorf("spec.sessionAffinity: the strategy %s moves all clients at once, so none stays; remove it, or write steps", spec.Strategy.Type)
	}
	var age time.Duration
	if err := analysis.Duration("spec.sessionAffinity.maxAge", affinity.MaxAge, &age); err != nil {
		return err
	}
	if affinity.MaxAge != "" && (age < time.Second || age > longestAffinity || age%time.Second != 0) {
		return fmt.Errorf("spec.sessionAffinity.maxAge: %q is not the age of a cookie; write whole seconds from 1s to 8760h, or remove it for the client's session", affinity.MaxAge)
	}
	return nil
}
