// SPDX-License-Identifier: Apache-2.0

package nginx

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// podTemplateHash is the label that tells the pods of the proxies' own
// ReplicaSets apart.
const podTemplateHash = "pod-template-hash"

// Check finds what proxies between the root Service and its pods would break.
func (r *Router) Check(split traffic.Split, services map[string]*corev1.Service) []traffic.Problem {
	problems := traffic.Lacking(split, Name, traffic.AbilityMatch, traffic.AbilityMirror, traffic.AbilitySticky,
		traffic.AbilityPortWeights, traffic.AbilityPortProtocols)
	add := func(format string, args ...any) {
		problems = append(problems, traffic.Problem{
			Condition: splitv1.ConditionAccepted,
			Reason:    splitv1.ReasonUnsupported, Message: fmt.Sprintf(format, args...),
		})
	}
	if len(split.Name) > validation.LabelValueMaxLength {
		add("metadata.name: has more than %d characters and can't be a label of the proxies; choose a shorter name", validation.LabelValueMaxLength)
	}
	if err := checkMatches(split.Matches); err != nil {
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
	for _, b := range destinations(split) {
		if s := services[b]; s != nil && s.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
			add("spec.backends: Service %q has sessionAffinity ClientIP, which would bind each proxy to one pod; set it to None", b)
		}
	}
	if _, err := Listeners(split); err != nil {
		add("%s", err.Error())
	}
	for _, l := range split.Ports {
		if l.TargetName == AgentPortName {
			add("spec.service: the target port name %q is the proxies' own; rename it", AgentPortName)
		}
	}
	for _, name := range bystanders(root, services) {
		add("spec.service: Service %q selects all pods of Service %q and would get its proxies as well, on ports that they do not serve; "+
			"give its selector a label that the pods have and Service %q does not select by", name, root.Name, root.Name)
	}
	return problems
}

// checkProtocols adds what nginx can't do on a port.
func checkProtocols(split traffic.Split, add func(format string, args ...any)) {
	for _, p := range split.Ports {
		if err := checkProtocol(p, split.Needs()); err != nil {
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
	_, hashed := traffic.DeclaredSelector(root)[podTemplateHash]
	local := root.Spec.InternalTrafficPolicy
	add(hashed, "the selector key pod-template-hash, which the proxies can't carry; select by other labels")
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

func destinations(split traffic.Split) []string {
	var names []string
	for _, p := range split.Ports {
		for _, d := range reachable(p) {
			names = append(names, d.Service)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// bystanders are other Services that would select the proxies, and send them
// traffic to a port that they do not listen on. One whose target ports are all
// the root Service's is served by the proxies like the root Service.
func bystanders(root *corev1.Service, services map[string]*corev1.Service) []string {
	selected := labels.Set(traffic.DeclaredSelector(root))
	var names []string
	for name, s := range services {
		if name == root.Name || len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(selected) {
			continue
		}
		if slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return !targets(root, p) }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func targets(root *corev1.Service, port corev1.ServicePort) bool {
	return slices.ContainsFunc(root.Spec.Ports, func(p corev1.ServicePort) bool {
		return targetPort(p) == targetPort(port) && isUDP(p) == isUDP(port)
	})
}

func isUDP(p corev1.ServicePort) bool { return p.Protocol == corev1.ProtocolUDP }

func targetPort(p corev1.ServicePort) intstr.IntOrString {
	if p.TargetPort.Type == intstr.Int && p.TargetPort.IntVal == 0 {
		return intstr.FromInt32(p.Port)
	}
	return p.TargetPort
}
