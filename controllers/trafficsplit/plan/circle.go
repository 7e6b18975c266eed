// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// circular is true when proxies follow a split that closes a circle. Unlike anything else that
// is refused, it does not keep the live weights: its proxies follow the new generation by
// themselves, and would send requests round until they fail.
func (o Observation) circular() bool {
	return o.Means == traffic.MeansProxies && slices.ContainsFunc(o.Problems, func(p traffic.Problem) bool { return p.Reason == splitv1.ReasonCircular })
}
