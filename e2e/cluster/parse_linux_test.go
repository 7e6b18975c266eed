// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
