// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, 0, len(texts))
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func TestNoTwoClustersShareANetwork(t *testing.T) {
	var all []netip.Prefix
	links := map[string]bool{}
	for number := range maxClusters {
		n := makeNetworks(number)
		if taken, overlaps := n.overlap(all); overlaps {
			t.Fatalf("cluster %d overlaps %s", number, taken)
		}
		all = append(all, n.node.Masked(), n.pods, n.services)
		links[n.link] = true
		if n.machine.Masked() != n.node.Masked() || n.machine == n.node {
			t.Errorf("cluster %d: %s and %s are not the two ends of a link", number, n.machine, n.node)
		}
		if n.services != n.services.Masked() || n.pods != n.pods.Masked() {
			t.Errorf("cluster %d: %s or %s is not the address of a network", number, n.services, n.pods)
		}
		if !n.services.Contains(n.dns) || n.api != n.services.Addr().Next() {
			t.Errorf("cluster %d has its own Services at %s and %s, in %s", number, n.api, n.dns, n.services)
		}
	}
	if len(links) != maxClusters {
		t.Errorf("there are %d names of links for %d clusters", len(links), maxClusters)
	}
}

func TestTheNumberOfACluster(t *testing.T) {
	for _, test := range []struct {
		name    string
		others  map[string]int
		taken   []netip.Prefix
		want    int
		refused bool
	}{
		{name: "the first cluster gets 0"},
		{name: "a number that another cluster has is not given again", others: map[string]int{"/a": 0, "/b": 1}, want: 2},
		{name: "a number that a cluster gave back is free", others: map[string]int{"/b": 1}, want: 0},
		{name: "a network elsewhere does not matter", taken: prefixes("192.0.2.2/24", "10.0.0.5/24", "fd00::2/64"), want: 0},
		{name: "an address in the network of pods takes the number", taken: prefixes("10.244.0.1/24"), want: 1},
		{name: "a network that holds those of several numbers takes all of them", taken: prefixes("10.96.0.0/16"), want: 16},
		{name: "an address in the network of the link takes the number", taken: prefixes("10.243.0.1/32", "10.243.1.3/32"), want: 2},
		{name: "a network that holds all others leaves none", taken: prefixes("10.20.30.40/8"), refused: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := (&machine{Clusters: test.others}).freeNumber(test.taken)
			if got != test.want || (err != nil) != test.refused {
				t.Errorf("the number is %d (%v), want %d, refused: %t", got, err, test.want, test.refused)
			}
		})
	}
}

func TestRoutesThatLeadEverywhereTakeNoNetwork(t *testing.T) {
	got, err := parseRoutes(`[{"dst":"default","dev":"eth0"},{"dst":"0.0.0.0/1"},{"dst":"10.0.0.0/8"},{"dst":"10.96.0.0/16"},{"type":"local","dst":"10.243.0.1"}]`)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, prefix := range got {
		texts = append(texts, prefix.String())
	}
	if diff := cmp.Diff([]string{"10.96.0.0/16", "10.243.0.1/32"}, texts); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if _, err := parseRoutes("not JSON"); err == nil {
		t.Error("output that is not JSON is taken for no routes")
	}
}

func TestOnlyTheLastClusterRestoresTheMachine(t *testing.T) {
	path, shared := filepath.Join(t.TempDir(), "machine.json"), filepath.Join(t.TempDir(), "shared")
	folders := []string{t.TempDir(), t.TempDir()}
	deleted := filepath.Join(t.TempDir(), "deleted")
	m := &machine{path: path, Clusters: map[string]int{folders[0]: 253, folders[1]: 254, deleted: 255}, Absent: []string{shared}}
	for i, wantLast := range []bool{false, true} {
		if last, err := m.leave(t.Context(), folders[i]); err != nil || last != wantLast {
			t.Fatalf("cluster %d is the last: %t (%v), want %t", i, last, err, wantLast)
		}
		again, release, err := openMachine(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		release()
		if diff := cmp.Diff(map[string]int{folders[1]: 254}, again.Clusters); diff != "" {
			t.Errorf("the record on disk, of clusters that may need the machine (-want +got):\n%s", diff)
		}
	}
	if err := os.MkdirAll(filepath.Join(shared, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := m.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(shared); err == nil {
		t.Errorf("%s did not exist before the first cluster, and is there after the last", shared)
	}
}

func TestTheStateBeforeADeletedClusterIsKept(t *testing.T) {
	deleted := filepath.Join(t.TempDir(), "deleted")
	m := &machine{path: filepath.Join(t.TempDir(), "machine.json"), Clusters: map[string]int{deleted: 255}, Sysctls: map[string]string{"kernel/panic": "first"}}
	if _, err := m.join(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"kernel/panic": "first"}, m.Sysctls); diff != "" {
		t.Errorf("the kernel parameters before the first cluster (-want +got):\n%s", diff)
	}
}

func TestTheLockFileOfTheMachineGoesWithItsRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "machine.json")
	for _, there := range []bool{true, false} {
		m, release, err := openMachine(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if there {
			err = m.write()
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		release()
		if _, err := os.Stat(path + ".lock"); (err == nil) != there {
			t.Errorf("the lock file is there: %t, want %t", err == nil, there)
		}
	}
}
