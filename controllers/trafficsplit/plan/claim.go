// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// Rival is the name of the split that has the root Service instead of split, or
// "" when split has it. others are the other splits of the operator's routers for
// the same root Service. The one whose proxies the Service selects, or that pinned it, keeps it, so
// that no edit of another split moves traffic; else the oldest has it, and of two
// equally old ones the first by name. A split that is being deleted and
// does not hold the Service has no claim.
func Rival(split *splitv1.TrafficSplit, others []*splitv1.TrafficSplit, root *corev1.Service) string {
	claimants := append([]*splitv1.TrafficSplit{split}, others...)
	if root != nil {
		if holder := traffic.Holder(root); holder != "" {
			for _, c := range claimants {
				if c.Name == holder {
					return unless(c, split)
				}
			}
		}
	}
	claimants = slices.DeleteFunc(claimants, func(c *splitv1.TrafficSplit) bool { return !c.DeletionTimestamp.IsZero() })
	if len(claimants) == 0 {
		return ""
	}
	return unless(slices.MinFunc(claimants, byAge), split)
}

// unless is the winner's name unless it is the split itself.
func unless(winner, split *splitv1.TrafficSplit) string {
	if winner.Name == split.Name {
		return ""
	}
	return winner.Name
}

func byAge(a, b *splitv1.TrafficSplit) int {
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	if a.Name < b.Name {
		return -1
	}
	return 1
}
