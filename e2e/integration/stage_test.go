// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
)

// stage is a scene of its own: a namespace with a website, an operator that sees
// nothing else, a clock that nobody else looks at, and the history of all that
// happened. So stages run at the same time.
type stage struct {
	*scene
	*history
	time     *measurements
	operator *operator
	// begun is the version of the store from which on the promise holds.
	begun uint64
	// promise is checked at the end; tests whose actors take pods away change it.
	promise promise
}

// cast are the objects that a play begins with.
type cast struct {
	deployment *appsv1.Deployment
	service    *corev1.Service
	rollout    *v1alpha1.Rollout
	measured   *measurements
	extras     []client.Object
	sight      []func(*sight)
	guarded    bool // whether the namespace is one in which Deployments are held by a policy
	labels     []func(map[string]string)
	before     func(*scene) // the operator starts
}

// begin plays until v1 with four pods is stable. The release that follows has two
// steps, of 20 % and 60 %, which last for an hour each on a clock that only the
// test moves.
func begin(t *testing.T, change ...func(*cast)) *stage {
	t.Helper()
	c := &cast{
		deployment: deployment("website", 4), service: service("website"), measured: newMeasurements(),
		rollout: newRollout(v1alpha1.Step{Weight: 20, Hold: "1h"}, v1alpha1.Step{Weight: 60, Hold: "1h"}),
	}
	for _, f := range change {
		f(c)
	}
	s := newScene(t, append(c.labels, guardedIf(c.guarded))...)
	p := &stage{scene: s, history: record(s), time: c.measured, promise: promise{keeps: 4}}
	s.create(c.deployment, c.service, c.rollout)
	s.create(c.extras...)
	s.eventually("the cache has it", func(ctx context.Context) bool { return cached.Get(ctx, s.key("website"), &v1alpha1.Rollout{}) == nil })
	s.eventually("the cache has it", func(ctx context.Context) bool { return cached.Get(ctx, s.key("website"), &appsv1.Deployment{}) == nil })
	s.reader = cached
	s.serveProxies()
	if c.before != nil {
		c.before(s)
	}
	p.operator = s.startOperator(c.measured, c.sight...)
	s.waitReady()
	p.begun = p.moment()
	t.Cleanup(p.checkPromise)
	return p
}

// checkPromise is a test's last check: at no moment of the play did traffic go where
// no pods were.
func (p *stage) checkPromise() {
	p.caughtUp()
	for _, problem := range p.check(p.begun, p.promise) {
		p.Error(problem)
	}
	if p.Failed() {
		p.Logf("what happened:\n%s", p.history)
	}
}

// pass lets time go by for the operator, when it has seen all that has happened: what
// was over before must not look to it as if it had lasted. It returns how often the operator
// had looked at the clock until then.
func (p *stage) pass(d time.Duration) (looks int) {
	p.Helper()
	p.seenByOperators()
	p.time.mu.Lock()
	p.time.skipped += d
	looks = p.time.looks
	p.time.mu.Unlock()
	p.time.changed <- event.TypedGenericEvent[types.NamespacedName]{Object: p.key("website")}
	return looks
}

// passDeadline lets time go by until a deadline is over. A clock that jumps looks to the
// operator like a machine that was suspended, after which it judges deadlines a minute later.
func (p *stage) passDeadline(d time.Duration) {
	p.Helper()
	looks := p.pass(d)
	p.eventually("the operator has looked at its clock", func(context.Context) bool { return p.time.looked() > looks })
	p.pass(time.Minute)
}

// release sets v2 free and waits until the first step is held.
func (p *stage) release() {
	p.Helper()
	p.setImage(imageV2)
	p.held(0)
}

// held waits until the weight of a step is in effect.
func (p *stage) held(step int32) {
	p.Helper()
	p.eventually("the weight of the step is in effect", func(context.Context) bool { return p.programmed(step, []int32{20, 60}[step]) })
}

// programmed reports whether the status says that a step with a weight is in effect. That is
// written with what comes next, or thirty seconds later, for which time goes by here.
func (p *stage) programmed(step, weight int32) bool {
	p.Helper()
	st := p.rollout().Status.Step
	if st == nil || st.Index != step || p.weight() != weight {
		return false
	}
	if st.ProgrammedAt == nil {
		p.pass(5 * time.Second)
	}
	return st.ProgrammedAt != nil
}

// weight is the canary's weight in effect.
func (p *stage) weight() int32 { return weightOf(p.splitStatus()) }

func weightOf(status splitv1.TrafficSplitStatus) int32 {
	for _, b := range status.Backends {
		if b.Service == "website-canary" {
			return b.Weight
		}
	}
	return 0
}

// finish lets time go by until v2 is stable, and checks that all is given back.
func (p *stage) finish(replicas int) {
	p.Helper()
	p.held(0)
	p.pass(time.Hour)
	p.held(1)
	p.pass(time.Hour)
	p.waitReady()
	p.checkPods(imageV2, replicas)
	p.checkGivenBack()
}

// checkPods waits until these are all pods.
func (p *stage) checkPods(image string, n int) {
	p.Helper()
	p.eventually("all pods are of "+image, func(context.Context) bool {
		pods := p.pods()
		return len(pods) == min(n, 1) && len(pods[image]) == n
	})
}

// checkRolledBack: stable has all traffic, and its former pods.
func (p *stage) checkRolledBack(reason string, stable []string) {
	p.Helper()
	p.waitReason(v1alpha1.ReasonRolledBack)
	p.reader = admin
	if d := p.rollout().Status.Decision; d == nil || d.Reason != reason {
		p.Errorf("decision %+v, want %s", d, reason)
	}
	if diff := cmp.Diff(map[string][]string{imageV1: stable}, p.pods()); diff != "" {
		p.Errorf("pods (-want +got):\n%s", diff)
	}
	p.checkGivenBack()
}

// checkStayed: since a time the status has shown no other step and no other weight
// than the present ones.
func (p *stage) checkStayed(since uint64) {
	p.Helper()
	if steps := p.steps(since); len(steps) > 1 {
		p.Errorf("the release went %s", strings.Join(steps, " "))
	}
}

// change patches an object as somebody does who has just read it.
func change[T client.Object](s *scene, name string, o T, f func(T)) {
	s.Helper()
	edit(s, name, o, f)
	s.seen(o)
}

// edit changes an object as a user with an editor does, who begins anew when the operator was first.
func edit[T client.Object](s *scene, name string, o T, f func(T)) {
	s.Helper()
	s.eventually("the change is accepted", func(ctx context.Context) bool {
		if err := admin.Get(ctx, s.key(name), o); err != nil {
			s.Fatal(err)
		}
		f(o)
		err := admin.Update(ctx, o, client.FieldOwner("somebody"))
		if err != nil && !apierrors.IsConflict(err) {
			s.Fatal(err)
		}
		return err == nil
	})
}

// split is the TrafficSplit of the release.
func (p *stage) split() *splitv1.TrafficSplit {
	p.Helper()
	return p.get(p.Context(), "website", &splitv1.TrafficSplit{}).(*splitv1.TrafficSplit)
}

// canary is the ReplicaSet of v2, as the API server has it.
func (p *stage) canary() *appsv1.ReplicaSet {
	p.Helper()
	sets := p.replicaSets()
	i := slices.IndexFunc(sets, func(rs appsv1.ReplicaSet) bool { return rs.Spec.Template.Spec.Containers[0].Image == imageV2 })
	if i < 0 {
		p.Fatal("there is no ReplicaSet of v2")
	}
	return &sets[i]
}

// scale is what kubectl scale, an autoscaler and KEDA do.
func (p *stage) scale(n int32) {
	p.Helper()
	change(p.scene, "website", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Replicas = &n })
}

// kubectl runs the real kubectl and returns what it says.
func (p *stage) kubectl(args ...string) (string, error) {
	p.Helper()
	args = append([]string{"--kubeconfig", plane.Kubeconfig, "--namespace", p.namespace}, args...)
	out, err := exec.CommandContext(p.Context(), plane.Programs.Path("kubectl"), args...).CombinedOutput()
	return string(out), err
}

// mustKubectl runs the real kubectl, which has to succeed.
func (p *stage) mustKubectl(args ...string) {
	p.Helper()
	if out, err := p.kubectl(args...); err != nil {
		p.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (p *stage) delete(o client.Object) {
	p.Helper()
	if err := admin.Delete(p.Context(), o); err != nil {
		p.Fatal(err)
	}
}

// seenByOperators waits until each operator that runs knows what the API server does by now.
func (s *scene) seenByOperators() {
	s.Helper()
	kinds := []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.ServiceList{}, &splitv1.TrafficSplitList{}, &v1alpha1.RolloutList{}}
	s.eachOf(s.Context(), kinds, func(known client.Object) {
		for _, o := range s.operators {
			s.eventually("the operator sees "+known.GetName(), func(ctx context.Context) bool { return o.stopped() || isSeen(ctx, o.view, known) })
		}
	})
}

// eachOf tells of each object of some kinds in the namespace, as the API server has it.
func (s *scene) eachOf(ctx context.Context, kinds []client.ObjectList, tell func(client.Object)) {
	s.Helper()
	for _, list := range kinds {
		if err := admin.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
			s.Fatal(err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			tell(item.(client.Object))
			return nil
		}); err != nil {
			s.Fatal(err)
		}
	}
}

// isSeen is whether a reader knows this version of an object, or a later one, which may
// be that it is gone.
func isSeen(ctx context.Context, view client.Reader, known client.Object) bool {
	now := known.DeepCopyObject().(client.Object)
	key := client.ObjectKeyFromObject(known)
	err := view.Get(ctx, key, now)
	if apierrors.IsNotFound(err) {
		return apierrors.IsNotFound(admin.Get(ctx, key, now))
	}
	return err == nil && versionOf(now) >= versionOf(known)
}
