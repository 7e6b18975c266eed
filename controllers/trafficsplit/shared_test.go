// SPDX-License-Identifier: Apache-2.0

package trafficsplit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/traffic"
)

// startSplit creates the split of an app that has no pods yet.
func (w *world) startSplit(name string) {
	w.t.Helper()
	for suffix, version := range map[string]string{"": "", "-stable": "1", "-canary": "2"} {
		labels := map[string]string{"app": name}
		if version != "" {
			labels["version"] = version
		}
		if err := w.api.Create(w.ctx(), makeService(name+suffix, labels)); !apierrors.IsAlreadyExists(err) {
			w.must(err)
		}
	}
	split := makeSplit(1, 1)
	split.Name, split.Spec.Service, split.UID = name, name, uuid.NewUUID()
	split.Spec.Backends[0].Service, split.Spec.Backends[1].Service = name+"-stable", name+"-canary"
	w.must(w.api.Create(w.ctx(), split))
}

func (w *world) endSplit(name string) {
	w.t.Helper()
	split := &splitv1.TrafficSplit{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.must(client.IgnoreNotFound(w.api.Delete(w.ctx(), split)))
}

// loseSplit is a split that goes without the controller: its finalizer is removed by hand.
func (w *world) loseSplit(name string) {
	w.t.Helper()
	split := &splitv1.TrafficSplit{}
	if err := w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: name}, split); err != nil {
		w.must(client.IgnoreNotFound(err))
		return
	}
	split.Finalizers = nil
	w.must(w.api.Update(w.ctx(), split))
	w.endSplit(name)
}

// look is one pass over a split. A conflict or an object that is gone brings another look.
func (w *world) look(r *Reconciler, name string) {
	w.t.Helper()
	_, err := r.Reconcile(w.ctx(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	if !apierrors.IsConflict(err) {
		w.must(client.IgnoreNotFound(err))
	}
}

// rest is a few passes over each split, with everything that happens around them.
func (w *world) rest(r *Reconciler, names ...string) {
	w.t.Helper()
	for range 6 {
		for _, name := range names {
			w.look(r, name)
		}
		w.deploy()
		w.stopped()
	}
}

// shared are the names of kinds of which there is the object that splits share.
func (w *world) shared() []string {
	w.t.Helper()
	var kinds []string
	for kind, o := range map[string]client.Object{"ServiceAccount": &corev1.ServiceAccount{}, "RoleBinding": &rbacv1.RoleBinding{}} {
		err := w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: traffic.SharedProxyName}, o)
		if w.must(client.IgnoreNotFound(err)); err == nil {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds
}

func (w *world) expectShared(when string, want bool) {
	w.t.Helper()
	if got := w.shared(); len(got) != map[bool]int{true: 2, false: 0}[want] {
		w.t.Errorf("%s: the shared objects are %v", when, got)
	}
}

var apps = []string{"left", "right"}

func TestWhatProxiesShareIsMadeWithTheFirstSplitAndDeletedWithTheLast(t *testing.T) {
	for name, end := range map[string]func(*world, string){"they are deleted": (*world).endSplit, "their finalizers are removed": (*world).loseSplit} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.controller()
			w.expectShared("without a split", false)
			w.startSplit("left")
			w.rest(r, apps...)
			w.expectShared("with the first", true)
			w.startSplit("right")
			w.rest(r, apps...)
			end(w, "left")
			w.rest(r, apps...)
			w.expectShared("with the second alone", true)
			end(w, "right")
			w.rest(r, apps...)
			w.expectShared("with none", false)
		})
	}
}

// A user may delete what has a name that proxies need, and the split that said so waits for that alone.
func TestAnObjectWithANameThatProxiesNeedMeansTheirSplit(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("a", 60)
	for _, name := range []string{"left", "right", long} {
		w.startSplit(name)
	}
	r := w.controller()
	for name, test := range map[string]struct {
		object metav1.ObjectMeta
		want   []string
	}{
		"of proxies":                            {metav1.ObjectMeta{Name: "serin-proxy-left"}, []string{"shop/left"}},
		"of what answers where no match is":     {metav1.ObjectMeta{Name: "serin-unmatched-right"}, []string{"shop/right"}},
		"with a name that is shortened":         {metav1.ObjectMeta{Name: traffic.UnmatchedName(long)}, []string{"shop/" + long}},
		"of no split":                           {metav1.ObjectMeta{Name: "serin-proxy-other"}, nil},
		"of an app":                             {metav1.ObjectMeta{Name: "left"}, nil},
		"of a split, with the label of proxies": {metav1.ObjectMeta{Name: "serin-proxy-left", Labels: map[string]string{traffic.LabelProxy: "left"}}, []string{"shop/left"}},
	} {
		test.object.Namespace = namespace
		if got := keys(r.splitsOfProxies(t.Context(), &appsv1.Deployment{ObjectMeta: test.object})); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	elsewhere := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "serin-proxy-left"}}
	if got := keys(r.splitsOfProxies(t.Context(), elsewhere)); len(got) > 0 {
		t.Errorf("one of another namespace: %v", got)
	}
}

// The last split went, and its proxies, while no controller was there.
func TestWhatProxiesShareIsDeletedAfterARestart(t *testing.T) {
	w := newWorld(t)
	w.startSplit("left")
	r := w.controller()
	w.rest(r, "left")
	w.loseSplit("left")
	w.must(w.api.DeleteAllOf(w.ctx(), &appsv1.Deployment{}, client.InNamespace(namespace)))
	w.deploy()
	w.stopped()
	account := &corev1.ServiceAccount{}
	w.must(w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: traffic.SharedProxyName}, account))
	r = w.controller()
	for _, request := range r.splitsOfProxies(w.ctx(), account) {
		w.look(r, request.Name)
	}
	w.expectShared("after the restart", false)
}

// Between the look of the last split and its deletion of the shared objects another begins.
func TestASplitThatBeginsWhileTheLastEndsMakesWhatTheyShareAnew(t *testing.T) {
	w := newWorld(t)
	r := w.controller()
	w.startSplit("left")
	w.rest(r, "left")
	w.endSplit("left")
	begun := false
	w.fail = func(call string, o client.Object) error {
		if call == "delete" && o.GetName() == traffic.SharedProxyName && !begun {
			begun = true
			w.startSplit("right")
			w.look(r, "right")
			w.look(r, "right")
		}
		return nil
	}
	w.rest(r, "left")
	if !begun {
		t.Fatal("nothing was deleted")
	}
	w.fail = nil
	w.rest(r, apps...)
	w.expectShared("with the split that has begun", true)
	if split := (&splitv1.TrafficSplit{}); !apierrors.IsNotFound(w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: "left"}, split)) {
		t.Error("the split that ended is still there")
	}
	w.endSplit("right")
	w.rest(r, apps...)
	w.expectShared("with none", false)
}

// Splits begin, end and are lost in any order, and passes over them happen in between.
func TestProxiesNeverLackWhatTheyShare(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			w := newWorld(t)
			r := w.controller()
			random := rand.New(rand.NewPCG(seed, 0))
			alive := map[string]bool{}
			for range 60 {
				app := apps[random.IntN(len(apps))]
				switch random.IntN(8) {
				case 0:
					err := w.api.Get(w.ctx(), client.ObjectKey{Namespace: namespace, Name: app}, &splitv1.TrafficSplit{})
					if apierrors.IsNotFound(err) {
						w.startSplit(app)
						alive[app] = true
					}
				case 1:
					w.endSplit(app)
					delete(alive, app)
				case 2:
					w.loseSplit(app)
					delete(alive, app)
				case 3:
					w.deploy()
				case 4:
					w.stopped()
				case 5:
					w.look(r, traffic.SharedProxyName)
				default:
					w.look(r, app)
				}
				var deployments appsv1.DeploymentList
				w.must(w.api.List(w.ctx(), &deployments))
				if len(deployments.Items) > 0 {
					w.expectShared("while there are proxies", true)
				}
			}
			w.rest(r, apps...)
			w.expectShared(fmt.Sprintf("with the splits %v", alive), len(alive) > 0)
		})
	}
}
