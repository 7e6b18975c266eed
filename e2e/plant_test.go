// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These are the kinds of loss that the judgement must notice.
const (
	plantDropped  = "dropped"  // the packets of one connection get lost at each cut-over
	plantReset    = "reset"    // the connection that is held is reset at each cut-over
	plantRefused  = "refused"  // one connection is refused at each cut-over
	plantVersion  = "version"  // a wrong version answers one request
	plantLeftover = "leftover" // a RoleBinding with the labels of Serin's is left over
)

// TestLongPlantedLosses plays the scenario of a TrafficSplit once for each kind of loss, which
// the test itself causes. The scenario has to fail by that loss, and by nothing else.
func TestLongPlantedLosses(t *testing.T) {
	requireCluster(t)
	for planted, says := range map[string]string{
		plantDropped:  `: timeout`,
		plantReset:    `requests on the connection that is held: reset|the connection that is held was replaced`,
		plantRefused:  `connections were refused, and none by the control at the same moment`,
		plantVersion:  `weight 100: v[12] answered \d+ of \d+ requests`,
		plantLeftover: `RoleBinding/` + leftoverName + ` is left over$`,
	} {
		t.Run(planted, func(t *testing.T) {
			findings, inconclusive := conclude(t, func(a *attempt) { playSplit(a, "serin-split-"+planted, planted) })
			if len(findings) == 0 || inconclusive {
				t.Error(mark, "the loss is not found, or taken for the machine's")
			}
			for _, f := range findings {
				if !regexp.MustCompile(says).MatchString(f.Text) {
					t.Error(mark, "lost, and not planted: "+f.Text)
				}
			}
		})
	}
}

// harmTable is the nftables table of what is planted, in the network of the load's pod.
const harmTable = "harm"

// plantLoss harms the load at a cut-over.
func (s *site) plantLoss(when string) {
	s.t.Helper()
	switch s.planted {
	case plantDropped:
		s.harm(when, "filter", 0, fmt.Sprintf("ip daddr %[1]s tcp flags & (syn|ack) == syn limit rate 1/hour burst 1 packets add @ports { tcp sport }\nip daddr %[1]s tcp sport @ports drop", s.clusterIP(siteName)))
	case plantReset:
		_, port, err := net.SplitHostPort(s.loadReport().Held.Local)
		if err != nil {
			s.t.Fatal(err)
		}
		s.harm(when, "filter", 0, fmt.Sprintf("ip daddr %s tcp sport %s limit rate 1/hour burst 1 packets reject with tcp reset", s.clusterIP(siteName), port))
	case plantRefused:
		s.harm(when, "filter", 0, fmt.Sprintf("ip daddr %s tcp flags & (syn|ack) == syn limit rate 1/hour burst 1 packets reject with tcp reset", s.clusterIP(siteName)))
	}
}

// plantVersion leads one connection past the proxies to a pod of v1, while only v2 has weight,
// and another one while those were probes, which send nothing. It returns when each has ended.
func (s *site) plantVersion(weight int32) {
	s.t.Helper()
	if s.planted != plantVersion || weight != 100 {
		return
	}
	pod := s.pods(client.MatchingLabels{"app": siteName, "version": "v1"})[0]
	before := s.settledReport(mainSettled).Version("v1").Requests
	s.poll("an answer of v1", func() bool {
		s.harm("the weight of 100", "nat", -100, fmt.Sprintf("ip daddr %s tcp flags & (syn|ack) == syn limit rate 1/hour burst 1 packets dnat to %s:8080", s.clusterIP(siteName), pod.Status.PodIP))
		return s.settledReport(mainSettled).Version("v1").Requests > before
	})
	s.awaitConnections()
}

// leftoverName is the name of a RoleBinding like those of the proxies of a split.
const leftoverName = "serin-proxy-leftover"

// plantLeftover leaves a RoleBinding behind that looks like one of a proxy. It lacks the label by
// which Serin would find and remove it.
func (s *site) plantLeftover() {
	s.t.Helper()
	if s.planted != plantLeftover {
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

// harm writes rules about what the load's pod sends. They replace those before, and may keep ports
// for longer than a request waits.
func (s *site) harm(when, kind string, priority int, rule string) {
	s.t.Helper()
	s.t.Logf("planted at %s: %s", when, rule)
	script := fmt.Sprintf("table ip %[1]s\ndelete table ip %[1]s\ntable ip %[1]s {\nset ports { type inet_service; size 16; flags dynamic,timeout; timeout 40s; }\nchain output {\ntype %[2]s hook output priority %[3]d;\n%[4]s\n}\n}\n", harmTable, kind, priority, rule)
	s.inLoad(script, "nft", "-f", "-")
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
