// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/config/golden"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// line is a line of an audit log.
func line(ms int, user, agent, verb, resource, name, body string) string {
	resource, subresource, _ := strings.Cut(resource, "/")
	if body == "" {
		body = "null"
	}
	return fmt.Sprintf(`{"verb":%q,"requestURI":"/x","userAgent":%q,"user":{"username":%q},"requestReceivedTimestamp":%q,"stageTimestamp":%q,`+
		`"objectRef":{"resource":%q,"subresource":%q,"namespace":"ns","name":%q},"responseStatus":{"code":200},"requestObject":%s}`,
		verb, agent, user, noon.Add(time.Duration(ms)*time.Millisecond).Format(time.RFC3339Nano), noon.Add(time.Duration(ms+2)*time.Millisecond).Format(time.RFC3339Nano), resource, subresource, name, body)
}

func operatorLine(ms int, verb, resource, name, body string) string {
	return line(ms, operatorUser, "serin-manager/1", verb, resource, name, body)
}

func replicaSet(owner string, replicas, available int) string {
	return fmt.Sprintf(`{"metadata":{"uid":"rs","ownerReferences":[{"kind":%q}]},"spec":{"replicas":%d},"status":{"availableReplicas":%d}}`, owner, replicas, available)
}

func parse(t *testing.T, lines ...string) []request {
	t.Helper()
	requests, err := parseLog(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

func TestRequestsAreCountedByWhoIsBehindThem(t *testing.T) {
	got, err := tally(parse(t,
		operatorLine(0, "update", "rollouts/status", "app-0000", ""),
		operatorLine(1, "update", "rollouts/status", "app-0000", ""),
		operatorLine(2, "patch", "deployments", "app-0000", ""),
		operatorLine(3, "patch", "deployments", "serin-proxy-app-0000", ""),
		operatorLine(4, "patch", "services", "app-0000", ""),
		operatorLine(5, "patch", "services", "app-0000-canary", ""),
		operatorLine(6, "patch", "trafficsplits", "app-0000", `{"spec":{}}`),
		operatorLine(7, "patch", "trafficsplits", "app-0000", `{"metadata":{"finalizers":[]}}`),
		operatorLine(8, "patch", "trafficsplits/status", "app-0000", ""),
		operatorLine(9, "create", "events", "app-0000.1", `{"reason":"Promoted","regarding":{"kind":"Rollout"}}`),
		operatorLine(10, "list", "pods", "", ""),
		operatorLine(11, "watch", "pods", "", ""),
		operatorLine(12, "update", "leases", "manager.serin.dev", ""),
		operatorLine(12, "create", "events", "manager.serin.dev.1", `{"reason":"LeaderElection","regarding":{"kind":"Lease"}}`),
		line(13, "admin", agentOfProxies, "patch", "trafficsplits/status", "app-0000", ""),
		line(14, "admin", agentOfPeople, "patch", "deployments", "app-0000", ""),
	))
	if err != nil {
		t.Fatal(err)
	}
	want := map[Call]int{
		{ClassWrite, ByRollouts, "update", "rollouts/status"}:    2,
		{ClassWrite, ByRollouts, "patch", "deployments"}:         1,
		{ClassWrite, BySplits, "patch", "deployments"}:           1,
		{ClassWrite, BySplits, "patch", "services"}:              1,
		{ClassWrite, ByRollouts, "patch", "services"}:            1,
		{ClassWrite, ByRollouts, "patch", "trafficsplits"}:       1,
		{ClassWrite, BySplits, "patch", "trafficsplits"}:         1,
		{ClassWrite, BySplits, "patch", "trafficsplits/status"}:  1,
		{ClassEvent, ByRollouts, "create", "events Promoted"}:    1,
		{ClassRead, BySplits, "list", "pods"}:                    1,
		{ClassWatch, "", "watch", "pods"}:                        1,
		{ClassLease, "", "update", "leases"}:                     1,
		{ClassLease, "", "create", "events LeaderElection"}:      1,
		{ClassWrite, ByProxies, "patch", "trafficsplits/status"}: 1,
	}
	if diff := cmp.Diff(want, got.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	// Neither watches nor the lease, nor what the proxies write.
	if n := got.Requests(); n != 11 {
		t.Errorf("%d requests, want 11", n)
	}
}

func TestWhatIsNotAnsweredWithSuccessIsCountedTwiceAndShown(t *testing.T) {
	text := strings.Replace(operatorLine(0, "patch", "deployments", "app-0000", ""), `"code":200`, `"code":409`, 1)
	got, err := tally(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if got.Sum(ClassWrite) != 1 || got.Failed["patch deployments: 409"] != 1 {
		t.Errorf("tally:\n%s", got)
	}
}

// A manager that ends while it sends its last event leaves one without a body: the API server
// answers 500 and logs what the address says.
func TestAnEventThatWasCutOffIsThatOfTheLeaseOnlyInTheManagersNamespace(t *testing.T) {
	for namespace, want := range map[string]Class{operatorSpace: ClassLease, "release-1": ClassEvent} {
		text := operatorLine(0, "create", "events", "", "")
		text = strings.Replace(text, `"namespace":"ns"`, fmt.Sprintf(`"namespace":%q`, namespace), 1)
		got, err := tally(parse(t, strings.Replace(text, `"code":200`, `"code":500`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got.Sum(want) != 1 || len(got.Calls) != 1 {
			t.Errorf("in %s: want one %s, got\n%s", namespace, want, got)
		}
	}
}

func TestARequestThatTheRoleForbidsIsAnError(t *testing.T) {
	text := strings.Replace(operatorLine(0, "patch", "deployments", "app-0000", ""), `"verb"`, `"annotations":{"authorization.k8s.io/decision":"forbid"},"verb"`, 1)
	if _, err := tally(parse(t, text)); err == nil {
		t.Error("no error")
	}
}

func TestReactionsAreMeasuredPerAppAndOnlyToWholeCanaries(t *testing.T) {
	status := func(ms int, body string) string {
		return line(ms, "system:serviceaccount:kube-system:replicaset-controller", "kcm", "update", "replicasets/status", "app-0000-abc", body)
	}
	got := reactions(parse(t,
		line(0, "admin", agentOfPeople, "patch", "deployments", "app-0000", ""),
		line(0, "admin", agentOfPeople, "patch", "deployments", "app-0001", ""),
		operatorLine(10, "create", "events", "app-0000.1", `{}`),
		operatorLine(30, "update", "rollouts/status", "app-0001", ""),
		operatorLine(20, "update", "rollouts/status", "app-0000", ""), // requests are logged when they end
		status(100, replicaSet(canaryOwner, 2, 1)),
		operatorLine(105, "patch", "trafficsplits", "app-0000", ""),
		status(110, replicaSet(canaryOwner, 2, 2)),
		status(111, replicaSet(canaryOwner, 2, 2)),
		operatorLine(117, "patch", "replicasets", "app-0000-abc", ""),
		operatorLine(118, "patch", "trafficsplits", "app-0000", ""),
		status(200, replicaSet(canaryOwner, 10, 10)),
		operatorLine(211, "update", "rollouts/status", "app-0000", ""),
		operatorLine(212, "patch", "trafficsplits", "app-0000", ""),
		status(300, replicaSet("Deployment", 11, 11)),
		operatorLine(900, "update", "rollouts/status", "app-0000", ""),
	))
	const ms = time.Millisecond
	want := Reaction{
		Template: Quantiles{P50: 20 * ms, P99: 30 * ms, Of: 2},
		Pods:     Quantiles{P50: 8 * ms, P99: 12 * ms, Of: 2},
		Server:   Quantiles{P50: 2 * ms, P99: 2 * ms, Of: 8},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
}

func TestQuantilesAreDurationsThatWereMeasured(t *testing.T) {
	for n, want := range map[int]Quantiles{0: {}, 1: {1, 1, 1}, 2: {1, 2, 2}, 3: {2, 3, 3}, 200: {100, 198, 200}} {
		var d []time.Duration
		for i := n; i > 0; i-- {
			d = append(d, time.Duration(i))
		}
		if got := quantiles(d); got != want {
			t.Errorf("of %d: %+v, want %+v", n, got, want)
		}
	}
}

func TestALogWhoseLastLineIsHalfWrittenIsRead(t *testing.T) {
	whole := operatorLine(0, "get", "pods", "p", "")
	if got := parse(t, whole, whole[:40]); len(got) != 1 {
		t.Errorf("%d requests, want 1", len(got))
	}
	if _, err := parseLog(strings.NewReader(whole[:40] + "\n" + whole)); err == nil {
		t.Error("a broken line in the middle is no error")
	}
}

func TestWhatTheKernelSaysIsRead(t *testing.T) {
	cpu, err := parseCPU("42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 9")
	if err != nil || cpu != 2*time.Second {
		t.Errorf("CPU %s, error %v, want 2s", cpu, err)
	}
	peak, err := parseMemory("Name:\tserin\nVmHWM:\t    2048 kB\nVmRSS:\t  1024 kB\n", "VmHWM:")
	if err != nil || peak != 2<<20 {
		t.Errorf("peak %d, error %v, want 2 MiB", peak, err)
	}
	for _, stat := range []string{"", "42 (a) S", "42 (a) S 1 2 3 4 5 6 7 8 9 10 x y z"} {
		if _, err := parseCPU(stat); err == nil {
			t.Errorf("%q is no error", stat)
		}
	}
	if _, err := parseMemory("Name:\tserin\n", "VmRSS:"); err == nil {
		t.Error("a status without VmRSS is no error")
	}
}

func TestTheTableShowsGrowthFromOneSizeToTheNext(t *testing.T) {
	release := func(size, writes int, peak int64) Release {
		return Release{
			Size: size, Replicas: DefaultReplicas(size), CPU: time.Duration(size) * 100 * time.Millisecond, Before: 40 << 20, Peak: peak,
			Tally: Tally{
				Calls:  map[Call]int{{ClassWrite, ByRollouts, "update", "rollouts/status"}: writes, {ClassEvent, ByRollouts, "create", "events Promoted"}: size},
				Failed: map[string]int{"patch deployments: 409": size / 100},
			},
			Reaction: Reaction{Template: Quantiles{P50: 20 * time.Millisecond, P99: 1234567 * time.Microsecond}},
			Changing: 100 * time.Millisecond, Took: 21 * time.Second,
		}
	}
	var b strings.Builder
	Report{
		Router: "none", Hold: 10 * time.Second,
		Releases: []Release{release(1, 12, 50<<20), release(100, 1250, 60<<20)},
		Idle:     &Idle{Size: 50, Replicas: 1, For: 30 * time.Second, CPU: 300 * time.Millisecond, Resident: 100 << 20, Peak: 101 << 20, PeakSinceStart: 120 << 20, Restart: Restart{CPU: 1500 * time.Millisecond, Peak: 90 << 20}},
	}.Write(&b)
	golden.Check(t, filepath.Join("testdata", "report.md"), b.String())
}
