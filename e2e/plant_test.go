// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// With -plant the harness does harm during TestTrafficSplit, once for each kind of loss that
// the judgement must notice: then the test has to fail.
const (
	plantDropped  = "dropped"  // the packets of one connection get lost at each cut-over
	plantReset    = "reset"    // the connection that is held is reset at each cut-over
	plantRefused  = "refused"  // one connection is refused at each cut-over
	plantVersion  = "version"  // a wrong version answers
	plantLeftover = "leftover" // a RoleBinding with the labels of Serin's is left over
)

// harmTable is the nftables table of what is planted, in the network of the load's pod.
const harmTable = "harm"

// plantedName is the name of the namespace of what is planted, so that several kinds can be
// tried at once.
func plantedName(namespace string) string {
	if *planted == "" {
		return namespace
	}
	return namespace + "-" + *planted
}

// plantLoss harms the load at a cut-over.
func (s *site) plantLoss(when string) {
	s.t.Helper()
	switch *planted {
	case plantDropped:
		s.harm(when, "filter", 0, fmt.Sprintf("ip daddr %s tcp sport %s drop", s.clusterIP(siteName), s.someConnection()))
	case plantReset:
		_, port, err := net.SplitHostPort(s.loadReport().Held.Local)
		if err != nil {
			s.t.Fatal(err)
		}
		s.harm(when, "filter", 0, fmt.Sprintf("ip daddr %s tcp sport %s reject with tcp reset", s.clusterIP(siteName), port))
	case plantRefused:
		s.harm(when, "filter", 0, fmt.Sprintf("ip daddr %s tcp flags & (syn|ack) == syn limit rate 1/hour burst 1 packets reject with tcp reset", s.clusterIP(siteName)))
	}
}

// plantVersion leads some connections past the proxies to a pod of v1, while only v2 has weight.
func (s *site) plantVersion(weight int32) {
	s.t.Helper()
	if *planted == plantVersion && weight == 100 {
		pod := s.pods(client.MatchingLabels{"app": siteName, "version": "v1"})[0]
		s.harm("the weight of 100", "nat", -100, fmt.Sprintf("ip daddr %s tcp flags & (syn|ack) == syn limit rate 1/hour burst 60 packets dnat to %s:8080", s.clusterIP(siteName), pod.Status.PodIP))
	}
}

// leftoverName is the name of a RoleBinding like those of the proxies of a split.
const leftoverName = "serin-proxy-leftover"

// plantLeftover leaves a RoleBinding behind that looks like one of a proxy. It lacks the label by
// which Serin would find and remove it.
func (s *site) plantLeftover() {
	s.t.Helper()
	if *planted != plantLeftover {
		return
	}
	s.t.Log("planted: a RoleBinding that is left over")
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: leftoverName, Labels: map[string]string{"app.kubernetes.io/managed-by": "serin"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: leftoverName},
	}
	if err := s.api.Create(s.t.Context(), binding); err != nil {
		s.t.Fatal(err)
	}
}

// harm writes a rule about what the load's pod sends. It replaces the one before.
func (s *site) harm(when, kind string, priority int, rule string) {
	s.t.Helper()
	s.t.Logf("planted at %s: %s", when, rule)
	script := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\ntable ip %[1]s {\nchain output {\ntype %[2]s hook output priority %[3]d;\n%[4]s\n}\n}\n", harmTable, kind, priority, rule)
	s.inLoad(script, "nft", "-f", "-")
}

// someConnection is the client's port of a connection of the load that is kept open.
func (s *site) someConnection() string {
	s.t.Helper()
	output := s.inLoad("", "ss", "-Htn", "state", "established", "dst", s.clusterIP(siteName))
	held := s.loadReport().Held.Local
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[2] == held {
			continue
		}
		if _, port, err := net.SplitHostPort(fields[2]); err == nil {
			return port
		}
	}
	s.t.Fatalf("the load has no connection: %s", output)
	return ""
}

// inLoad runs a program of this machine in the network of the load's pod.
func (s *site) inLoad(stdin, program string, args ...string) string {
	s.t.Helper()
	s.requireLocal()
	pod := s.pods(client.MatchingLabels{"app": "load"})[0]
	pid := processOf(containers(pod)[0], func(p process) bool { return p.first }).pid
	command := exec.CommandContext(s.t.Context(), "nsenter", append([]string{"--net", "--target", strconv.Itoa(pid), program}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	output, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", program, err, output)
	}
	return string(output)
}

func (s *site) clusterIP(service string) string {
	s.t.Helper()
	live := &corev1.Service{}
	s.get(service, live)
	return live.Spec.ClusterIP
}
