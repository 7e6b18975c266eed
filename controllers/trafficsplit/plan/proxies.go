// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// waitingForProxies tells what the proxies still have to do.
func waitingForProxies(o Observation) (Condition, bool) {
	if o.unasked() {
		return Condition{}, false
	}
	if message := unwilling(o); message != "" {
		return Condition{metav1.ConditionFalse, splitv1.ReasonProxyError, message}, true
	}
	wanted := o.DataPlane.WantedProxies
	if o.proxied() {
		wanted = 1 // one that was lost is replaced while the others carry on
	}
	if o.confirmed() >= max(1, wanted) && o.behind()+draining(o) == 0 {
		return Condition{}, false
	}
	message := fmt.Sprintf("%d of %d proxies serve generation %d",
		o.confirmed(), max(o.DataPlane.WantedProxies, o.carriers()), o.Split.Generation)
	return Condition{metav1.ConditionFalse, splitv1.ReasonWaitingForProxies, message + hindrance(o)}, true
}

// unwilling is what a proxy says that can't follow.
func unwilling(o Observation) string {
	for _, p := range o.DataPlane.Proxies {
		if carries(p) && p.Generation > 0 && p.Generation != o.Split.Generation && p.Message != "" {
			return fmt.Sprintf("proxy %s still serves generation %d: %s", p.Name, p.Generation, p.Message)
		}
	}
	return ""
}

// draining is the number of proxies that still are ready endpoints, whatever
// their pods say, and do not serve the generation.
func draining(o Observation) int {
	n := 0
	for _, name := range o.Endpoints.Ready {
		if p, ok := o.Proxy(name); ok && !carries(p) && !o.serves(p) {
			n++
		}
	}
	return n
}

// proxiesStatus sums up what proxies serve; nil without any. While none was asked, it is
// what it was.
func proxiesStatus(o Observation) *splitv1.ProxiesStatus {
	if o.unasked() {
		return o.Split.Status.Proxies
	}
	if len(o.DataPlane.Proxies) == 0 {
		return nil
	}
	status := &splitv1.ProxiesStatus{
		Ready: int32(o.carriers()), Confirmed: int32(o.confirmed()), //nolint:gosec // bounded by the cluster's pods
		Configuration: o.Resolved.Digest(),
	}
	for _, p := range o.DataPlane.Proxies {
		if carries(p) && !o.serves(p) && len(status.Behind) < splitv1.MaxProxiesBehind {
			status.Behind = append(status.Behind, splitv1.ProxyStatus{Name: p.Name, ObservedGeneration: p.Generation, Message: p.Message})
		}
	}
	return status
}

// hindrance is what keeps a proxy from being made, from getting ready, or from
// seeing the Services that the controller sees, if the proxy or the cluster says so.
func hindrance(o Observation) string {
	for _, p := range o.DataPlane.Proxies {
		if !p.Terminating && p.Message != "" && (!carries(p) || !o.serves(p)) {
			return "; " + p.Name + ": " + p.Message
		}
	}
	for _, object := range o.DataPlane.Objects {
		if object.Workload && object.Problem != "" {
			return "; " + object.Problem
		}
	}
	return ""
}
