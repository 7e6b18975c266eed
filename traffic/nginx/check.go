// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// Check finds what proxies between the root Service and its pods would break.
func (r *Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name, traffic.AbilityMatch, traffic.AbilityMirror, traffic.AbilitySticky,
		traffic.AbilityPortWeights, traffic.AbilityPortProtocols)
	add := func(format string, args ...any) {
		problems = append(problems, traffic.Unsupported(format, args...))
	}
	if len(split.Name) > validation.LabelValueMaxLength {
		add("metadata.name: has more than %d characters and can't be a label of the proxies; choose a shorter name", validation.LabelValueMaxLength)
	}
	if err := conf.CheckMatches(split.Matches); err != nil {
		add("%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	checkProtocols(split, add)
	root := services[split.Root]
	if root == nil {
		return problems
	}
	for _, message := range unfit(root) {
		add("spec.service: Service %q has %s", root.Name, message)
	}
	for _, b := range backendNames(split, traffic.Port.Reachable) {
		if s := services[b]; s != nil && s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
			add("spec.backends: Service %q has sessionAffinity ClientIP, which would bind each proxy to one pod; set it to None", b)
		}
	}
	if len(split.Ports) == 0 {
		return problems // nothing new is served yet
	}
	if _, err := conf.Listeners(split); err != nil {
		add("%s", err.Error())
	}
	for _, l := range split.Ports {
		if l.TargetName == conf.AgentPortName {
			add("spec.service: the target port name %q is the proxies' own; rename it", conf.AgentPortName)
		}
	}
	return problems
}

// checkProtocols adds what nginx can't do on a port.
func checkProtocols(split traffic.Split, add func(format string, args ...any)) {
	for _, p := range split.Ports {
		if err := conf.CheckProtocol(p, split.Needs()); err != nil {
			add("%s", err.Error())
		}
	}
}

// unfit are the settings of a root Service that proxies can't honour.
func unfit(root *corev1.Service) []string {
	var settings []string
	add := func(is bool, message string) {
		if is {
			settings = append(settings, message)
		}
	}
	local := root.Spec.InternalTrafficPolicy
	add(root.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
		"sessionAffinity ClientIP, which a split by requests would break; set it to None")
	add(local != nil && *local == corev1.ServiceInternalTrafficPolicyLocal,
		"internalTrafficPolicy Local, so nodes without a proxy would serve no client; set it to Cluster")
	add(root.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
		"externalTrafficPolicy Local, so nodes without a proxy would serve no client; set it to Cluster")
	add(root.Spec.PublishNotReadyAddresses,
		"publishNotReadyAddresses, so proxies would get requests before they can answer them; set it to false")
	return settings
}

// backendNames are the Services of the destinations of all ports.
func backendNames(split traffic.Split, of func(traffic.Port) []traffic.Destination) []string {
	var names []string
	for _, p := range split.Ports {
		for _, d := range of(p) {
			names = append(names, d.Service)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
