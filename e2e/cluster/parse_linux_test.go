// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		name    string
		present []string
		want    string
	}{
		{name: "a network elsewhere is no matter", present: []string{"192.0.2.2/24", "10.0.0.5/24", "fd00::2/64"}},
		{name: "the node's own address may be left from before", present: []string{"10.243.0.1/32"}},
		{name: "an address in the network of pods is refused", present: []string{"10.244.0.1/24"}, want: "10.244.0.1/24"},
		{name: "a network that holds that of Services is refused", present: []string{"192.0.2.2/24", "10.20.30.40/8"}, want: "10.20.30.40/8"},
		{name: "a network that holds the node's address is refused", present: []string{"10.243.0.7/16"}, want: "10.243.0.7/16"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var present []netip.Prefix
			for _, text := range test.present {
				present = append(present, netip.MustParsePrefix(text))
			}
			taken, _ := overlap(present)
			if got := taken.String(); got != test.want && (test.want != "" || taken.IsValid()) {
				t.Errorf("overlap with %s, want %q", got, test.want)
			}
		})
	}
}

func TestOnlyTheRootOfAContainerOfThisClusterIsTakenForOne(t *testing.T) {
	const root = "101 90 0:55 / / rw,relatime - overlay none rw,lowerdir=/c/containerd/root/1/fs,upperdir=/c/containerd/root/2/fs,workdir=/c/w"
	for name, test := range map[string]struct {
		line, dir string
		want      bool
	}{
		"its own container":                     {line: root, dir: "/c", want: true},
		"a container of another cluster":        {line: root, dir: "/other"},
		"a folder whose name begins like it":    {line: root, dir: "/c/containerd/root/2/f"},
		"the same mount as seen from the host":  {line: "101 90 0:55 / /c/state/rootfs rw - overlay none rw,upperdir=/c/containerd/root/2/fs", dir: "/c"},
		"the root of the host":                  {line: "1 0 254:0 / / rw - ext4 /dev/vda rw", dir: "/c"},
		"a line that is cut off":                {line: "101 90", dir: "/c"},
		"an empty line at the end of the table": {line: "", dir: "/c"},
	} {
		if got := isContainerRoot(test.line, test.dir); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestPathsOfTheTableOfMountsAreUnescaped(t *testing.T) {
	if got, want := unescape(`/a\040b\134c\011d`), "/a b\\c\td"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNamesServer(t *testing.T) {
	for content, want := range map[string]bool{
		"nameserver 192.0.2.1\n":            true,
		"search example\nnameserver ::1\n":  true,
		"# nameserver 192.0.2.1\n":          false,
		"nameserver\n":                      false,
		"":                                  false,
		"options edns0\nsearch example.org": false,
	} {
		path := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := namesServer(path); got != want {
			t.Errorf("%q names a server: %t, want %t", content, got, want)
		}
	}
	if namesServer("/nonexistent") {
		t.Error("a missing file names a server")
	}
}

func TestOnlyFoldersAreRemovedFromAPlaceThatOthersMayUse(t *testing.T) {
	place := filepath.Join(t.TempDir(), "place")
	for _, folder := range []string{"empty/below", "used"} {
		if err := os.MkdirAll(filepath.Join(place, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(place, "used", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := removeEmptyFolders(place); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(place, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(place, "used", "file")}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if err := removeEmptyFolders(filepath.Join(place, "missing")); err != nil {
		t.Errorf("a place that is not there: %v", err)
	}
}

func TestARecordThatCannotBeReadIsAnEmptyOne(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cluster.json"), []byte(`{"boot": "x", "proc`), 0o600); err != nil {
		t.Fatal(err)
	}
	record, err := readRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	if record.Boot != "" || record.Processes == nil {
		t.Errorf("the record is %+v, want an empty one", record)
	}
	record.Processes["etcd"] = startedProcess{Fingerprint: "f"}
	if record.forget("boot-1") || len(record.Processes) != 1 {
		t.Error("the first boot is taken for a new one")
	}
	if err := record.write(); err != nil {
		t.Fatal(err)
	}
	again, err := readRecord(dir)
	if err != nil || again.Processes["etcd"].Fingerprint != "f" {
		t.Errorf("read back %+v, %v", again, err)
	}
	if !again.forget("boot-2") || len(again.Processes) != 0 {
		t.Error("processes of an earlier boot are remembered")
	}
}

func TestDropsForwarded(t *testing.T) {
	const head = "table ip filter {\n\tchain FORWARD {\n\t\ttype filter hook "
	for chains, want := range map[string]bool{
		head + "forward priority filter; policy drop;\n\t}\n}\n":   true,
		head + "forward priority filter; policy accept;\n\t}\n}\n": false,
		head + "input priority filter; policy drop;\n\t}\n}\n":     false,
		"": false,
	} {
		if got := dropsForwarded(chains); got != want {
			t.Errorf("%q drops forwarded packets: %t, want %t", chains, got, want)
		}
	}
}
