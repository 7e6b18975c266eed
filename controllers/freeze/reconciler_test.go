// SPDX-License-Identifier: Apache-2.0

package freeze

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/serin-dev/serin/api/v1alpha1"
)

var epoch = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// cluster is a Freeze in a fake API server, its controller, and how often that wrote.
type cluster struct {
	*testing.T
	client client.Client
	clock  *testclock.FakePassiveClock
	writes int
	fail   error
}

func newCluster(t *testing.T, spec v1alpha1.FreezeSpec) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, clock: testclock.NewFakePassiveClock(epoch)}
	f := &v1alpha1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "peak-season"}, Spec: spec}
	count := func(ctx context.Context, cl client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		c.writes++
		if c.fail != nil {
			return c.fail
		}
		return cl.SubResource(sub).Patch(ctx, o, p, opts...)
	}
	c.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(f).WithStatusSubresource(f).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: count}).Build()
	return c
}

// reconcile returns when the controller looks again.
func (c *cluster) reconcile() time.Duration {
	c.Helper()
	result, err := New(c.client, c.clock).Reconcile(c.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "peak-season"}})
	if !errors.Is(err, c.fail) {
		c.Fatalf("Reconcile = %v, want %v", err, c.fail)
	}
	return result.RequeueAfter
}

func (c *cluster) inForce() bool {
	c.Helper()
	f := &v1alpha1.Freeze{}
	if err := c.client.Get(c.Context(), types.NamespacedName{Name: "peak-season"}, f); err != nil {
		c.Fatal(err)
	}
	return meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionInForce)
}

func TestTheStatusFollowsTheClock(t *testing.T) {
	from, until := metav1.NewTime(epoch.Add(time.Minute)), metav1.NewTime(epoch.Add(3*time.Hour))
	c := newCluster(t, v1alpha1.FreezeSpec{Reason: "audit", From: &from, Until: &until})
	for _, step := range []struct {
		at      time.Duration
		again   time.Duration
		inForce bool
		writes  int
	}{
		{0, time.Minute, false, 1},
		{30 * time.Second, 30 * time.Second, false, 1},
		{time.Minute, time.Hour, true, 2},
		{time.Minute + time.Hour, time.Hour, true, 2},
		{2*time.Hour + 30*time.Minute, 30 * time.Minute, true, 2},
		{3 * time.Hour, 0, false, 3},
	} {
		c.clock.SetTime(epoch.Add(step.at))
		if again := c.reconcile(); again != step.again {
			t.Errorf("after %s: looks again in %s, want %s", step.at, again, step.again)
		}
		if got := c.inForce(); got != step.inForce || c.writes != step.writes {
			t.Errorf("after %s: in force %v after %d writes, want %v after %d", step.at, got, c.writes, step.inForce, step.writes)
		}
	}
}

func TestAStatusThatCouldNotBeWrittenIsWrittenNextTime(t *testing.T) {
	c := newCluster(t, v1alpha1.FreezeSpec{Reason: "audit"})
	c.fail = errors.New("no connection")
	c.reconcile()
	if c.fail = nil; c.inForce() {
		t.Error("in force, although nothing was written")
	}
	if c.reconcile(); !c.inForce() {
		t.Error("not in force")
	}
}

func TestAFreezeThatIsGoneIsNoError(t *testing.T) {
	c := newCluster(t, v1alpha1.FreezeSpec{Reason: "audit"})
	if err := c.client.Delete(t.Context(), &v1alpha1.Freeze{ObjectMeta: metav1.ObjectMeta{Name: "peak-season"}}); err != nil {
		t.Fatal(err)
	}
	if again := c.reconcile(); again != 0 || c.writes != 0 {
		t.Errorf("looks again in %s after %d writes", again, c.writes)
	}
}
