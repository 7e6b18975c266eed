// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"slices"
	"testing"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

func does(d *kit.Draft) (names []string) {
	for _, a := range d.Actions {
		names = append(names, a.String())
	}
	return names
}

func want(t *testing.T, d *kit.Draft, actions ...string) {
	t.Helper()
	if got := does(d); !slices.Equal(got, actions) {
		t.Errorf("it does %q, want %q", got, actions)
	}
}

func version(name string, owner kit.Owner, pods int32) kit.ReplicaSet {
	return kit.ReplicaSet{
		Object: kit.Object{Name: name, UID: "uid-of-v1"}, Owner: owner, Revision: name,
		Replicas: pods, Existing: pods, Available: pods, Desired: pods,
	}
}

func TestOnlyAVersionWithExactlyItsPodsAndAllTrafficIsHandedOver(t *testing.T) {
	tests := []struct {
		name   string
		change func(*kit.ReplicaSet)
		routed bool
		want   bool
	}{
		{"all pods are there and available", func(*kit.ReplicaSet) {}, true, true},
		{"it does not get all traffic", func(*kit.ReplicaSet) {}, false, false},
		{"there is one pod too many", func(r *kit.ReplicaSet) { r.Existing++ }, true, false},
		{"one pod is not available", func(r *kit.ReplicaSet) { r.Available-- }, true, false},
		{"one pod more is wanted", func(r *kit.ReplicaSet) { r.Replicas++ }, true, false},
		{"it knows another scale", func(r *kit.ReplicaSet) { r.Desired++ }, true, false},
		{"all of too few pods are there", func(r *kit.ReplicaSet) { r.Replicas, r.Existing, r.Available = 3, 3, 3 }, true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, d := version("v1", kit.OwnerSerin, 4), &kit.Draft{}
			test.change(&r)
			if got := HandOver(d, &r, 4, "", func() bool { return test.routed }); got != test.want || len(d.Actions) > 0 != test.want {
				t.Errorf("handed over: %v, it does %q", got, does(d))
			}
		})
	}
}

func TestAVersionIsScaledOnlyWhereItDiffers(t *testing.T) {
	r, d := version("v1", kit.OwnerSerin, 4), &kit.Draft{}
	Scale(d, &r, 4, 4)
	want(t, d)
	Scale(d, &r, 4, 5)
	Empty(d, &r)
	want(t, d, "scale ReplicaSet v1 to 4", "scale ReplicaSet v1 to 0")
	r.Replicas, d.Actions = 0, nil
	Empty(d, &r)
	want(t, d)
}

// TestAVersionIsScaledFromZeroOnceItsPodsAreGone: until then its counts are of pods that go, so that
// it would get traffic for which it has no pod.
func TestAVersionIsScaledFromZeroOnceItsPodsAreGone(t *testing.T) {
	for name, test := range map[string]struct {
		version kit.ReplicaSet
		to      int32
		want    bool
	}{
		"its pods are gone":                  {kit.ReplicaSet{Desired: 4}, 1, true},
		"a pod is left":                      {kit.ReplicaSet{Desired: 4, Existing: 1, Available: 1}, 1, false},
		"nothing says yet whether one is":    {kit.ReplicaSet{Desired: 4, Uncounted: true}, 1, false},
		"it has pods, and nothing says more": {kit.ReplicaSet{Replicas: 1, Desired: 4, Uncounted: true}, 2, true},
		"it is emptied for another scale":    {kit.ReplicaSet{Desired: 3, Existing: 1}, 0, true},
	} {
		d := &kit.Draft{}
		Scale(d, &test.version, test.to, 4)
		if got := len(d.Actions) > 0; got != test.want {
			t.Errorf("%s: %v", name, d.Actions)
		}
	}
}

func TestAVersionIsDeletedOnce(t *testing.T) {
	r, d := version("v1", kit.OwnerSerin, 0), &kit.Draft{}
	Delete(d, &r)
	r.Deleting = true
	Delete(d, &r)
	want(t, d, "delete ReplicaSet v1")
}

func TestOnlyVersionsOfTheDeploymentWithPodsAreLeftBesideAnother(t *testing.T) {
	promoted := version("v1", kit.OwnerDeployment, 4)
	other := func(name string, owner kit.Owner, pods int32) kit.ReplicaSet {
		r := version(name, owner, pods)
		r.UID = "another"
		return r
	}
	all := []kit.ReplicaSet{promoted, other("old", kit.OwnerDeployment, 1), other("gone", kit.OwnerDeployment, 0), other("canary", kit.OwnerSerin, 1)}
	if left := Others(all, &promoted); len(left) != 1 || left[0].Name != "old" {
		t.Errorf("left are %v", left)
	}
}

func TestTheServiceOfAVersionIsWrittenUntilItIsWhatItHasToBe(t *testing.T) {
	good := kit.Backend{Presence: kit.Present, Ours: true, Revision: "v1", UpToDate: true}
	tests := map[string]func(*kit.Backend){
		"it is absent":                func(b *kit.Backend) { b.Presence = kit.Absent },
		"it selects another revision": func(b *kit.Backend) { b.Revision = "v0" },
		"its ports were changed":      func(b *kit.Backend) { b.UpToDate = false },
		"its mark was removed":        func(b *kit.Backend) { b.Ours = false },
	}
	stable := kit.Version{Service: "web", Role: v1alpha1.RoleStable}
	d := &kit.Draft{}
	if !KeepBackend(d, stable, &good, "v1") {
		t.Error("a good one is not done")
	}
	want(t, d)
	for name, change := range tests {
		b, d := good, &kit.Draft{}
		change(&b)
		if KeepBackend(d, stable, &b, "v1") {
			t.Errorf("done although %s", name)
		}
		want(t, d, "point the Service of web's stable at v1")
	}
}

func TestWhatIsNotSerinsStays(t *testing.T) {
	d := &kit.Draft{}
	split, backend := kit.Split{Presence: kit.Present}, kit.Backend{Presence: kit.Present}
	if !DropSplit(d, &split, "") || !DropBackends(d, "", &backend, &kit.Backend{Presence: kit.Absent}) {
		t.Error("it waits for objects of others")
	}
	want(t, d)
	split.Ours, backend.Ours = true, true
	if DropSplit(d, &split, "") || DropBackends(d, "", &backend, &backend) {
		t.Error("it does not wait")
	}
	want(t, d, "delete the TrafficSplit", "delete the Service of canary", "delete the Service of stable")
	split.Deleting, d.Actions = true, nil
	if DropSplit(d, &split, "") {
		t.Error("it does not wait for a split that is being deleted")
	}
	want(t, d)
}
