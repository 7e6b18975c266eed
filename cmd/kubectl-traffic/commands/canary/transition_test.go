// SPDX-License-Identifier: Apache-2.0

package canary

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
)

func shopCanary() *v1alpha1.CanaryRelease {
	cr := &v1alpha1.CanaryRelease{}
	cr.Namespace, cr.Name, cr.UID, cr.Generation = "shop", "web", "u", 1
	cr.Spec.Release, cr.Spec.Version = "shop", 4
	return cr
}

func canaryAPI(t *testing.T, on interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := cli.NewScheme("v1alpha4")
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(on).Build()
}

func adoption(dry string) *transition {
	return &transition{wanted: v1alpha1.CanaryTransitionAdopted, dryRun: &dry, output: &cli.Output{}}
}

// key is the object that a command begins with.
func key() *v1alpha1.CanaryRelease {
	cr := &v1alpha1.CanaryRelease{}
	cr.Namespace, cr.Name = "shop", "web"
	return cr
}

func stored(t *testing.T, api client.Client) *v1alpha1.CanaryRelease {
	t.Helper()
	cr := key()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(cr), cr); err != nil {
		t.Fatal(err)
	}
	return cr
}

func TestAdoptingWritesTheTransitionAlone(t *testing.T) {
	var patches []string
	api := canaryAPI(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		text, err := p.Data(o)
		if err != nil {
			return err
		}
		patches = append(patches, string(text))
		return c.Patch(ctx, o, p, opts...)
	}}, shopCanary())
	version := stored(t, api).ResourceVersion
	did, err := adoption(cli.DryNone).ask(t.Context(), api, key())
	if err != nil || did != "requested: Adopted" || stored(t, api).Spec.Transition != v1alpha1.CanaryTransitionAdopted {
		t.Fatalf("%s: %v", did, err)
	}
	if want := fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"transition":"Adopted"}}`, version); len(patches) != 1 || patches[0] != want {
		t.Errorf("patches %q, want %s", patches, want)
	}
	if did, err := adoption(cli.DryNone).ask(t.Context(), api, key()); err != nil || did != "unchanged" || len(patches) != 1 {
		t.Errorf("again: %s: %v, patches %q", did, err, patches)
	}
}

func TestADryRunAdoptsNothing(t *testing.T) {
	for _, dry := range []string{cli.DryClient, cli.DryServer} {
		api := canaryAPI(t, interceptor.Funcs{}, shopCanary())
		cr := key()
		did, err := adoption(dry).ask(t.Context(), api, cr)
		if err != nil || did != "requested: Adopted" || cr.Spec.Transition != v1alpha1.CanaryTransitionAdopted {
			t.Errorf("%s: %s %v, shown %q", dry, did, err, cr.Spec.Transition)
		}
		if got := stored(t, api).Spec.Transition; got != v1alpha1.CanaryTransitionNone {
			t.Errorf("%s: %s", dry, got)
		}
	}
}

// meddler changes the object once, before the first patch arrives.
func meddler(change func(*v1alpha1.CanaryRelease)) interceptor.Funcs {
	done := false
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		if !done {
			done = true
			cr := key()
			if err := c.Get(ctx, client.ObjectKeyFromObject(cr), cr); err != nil {
				return err
			}
			change(cr)
			if err := c.Update(ctx, cr); err != nil {
				return err
			}
		}
		return c.Patch(ctx, o, p, opts...)
	}}
}

func TestOnlyAnEditOfTheSpecMeanwhileStopsAnAdoption(t *testing.T) {
	api := canaryAPI(t, meddler(func(cr *v1alpha1.CanaryRelease) { cr.Labels = map[string]string{"a": "b"} }), shopCanary())
	if did, err := adoption(cli.DryNone).ask(t.Context(), api, key()); err != nil || did != "requested: Adopted" {
		t.Errorf("after a write beside the spec: %s: %v", did, err)
	}
	api = canaryAPI(t, meddler(func(cr *v1alpha1.CanaryRelease) { cr.Generation, cr.Spec.Config = 2, "replicas: 2" }), shopCanary())
	_, err := adoption(cli.DryNone).ask(t.Context(), api, key())
	if err == nil || !strings.Contains(err.Error(), "was changed by another user meanwhile, and nothing was done") {
		t.Errorf("after an edit of the spec: %v", err)
	}
	if got := stored(t, api).Spec.Transition; got != v1alpha1.CanaryTransitionNone {
		t.Errorf("it is %s all the same", got)
	}
}

func TestErrorsOfTheServerAreTold(t *testing.T) {
	broken := errors.New("the server is on fire")
	for name, on := range map[string]interceptor.Funcs{
		"reading": {Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return broken
		}},
		"writing": {Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return broken
		}},
	} {
		if _, err := adoption(cli.DryNone).ask(t.Context(), canaryAPI(t, on, shopCanary()), key()); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// looks has the CanaryRelease in another state at each look; nil when it is gone.
func looks(states ...*v1alpha1.CanaryRelease) interceptor.Funcs {
	n := 0
	return interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
		state := states[min(n, len(states)-1)]
		n++
		if state == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "canaryreleases"}, key.Name)
		}
		state.DeepCopyInto(o.(*v1alpha1.CanaryRelease))
		return nil
	}}
}

func TestWaitingForATransition(t *testing.T) {
	in := func(reason string, edits ...func(*v1alpha1.CanaryRelease)) *v1alpha1.CanaryRelease {
		cr := shopCanary()
		cr.Status.ObservedGeneration = 1
		cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: reason + " now."}}
		for _, edit := range edits {
			edit(cr)
		}
		return cr
	}
	ended := func(to v1alpha1.CanaryTransition) func(*v1alpha1.CanaryRelease) {
		return func(cr *v1alpha1.CanaryRelease) {
			cr.Status.Decision = &v1alpha1.CanaryDecision{Transition: to, Message: "revision 5 was made by another user", EndedAt: &metav1.MicroTime{}}
		}
	}
	another := in(v1alpha1.ReasonServing, func(cr *v1alpha1.CanaryRelease) { cr.UID = "another" })
	for name, test := range map[string]struct {
		wanted v1alpha1.CanaryTransition
		states []*v1alpha1.CanaryRelease
		status int
		out    string
	}{
		"it is adopted": {
			v1alpha1.CanaryTransitionAdopted,
			[]*v1alpha1.CanaryRelease{in(v1alpha1.ReasonServing), in(v1alpha1.ReasonAdopting), in(v1alpha1.ReasonAdopting), in(v1alpha1.ReasonAdopted, ended(v1alpha1.CanaryTransitionAdopted))},
			cli.ExitDone, "web: Serving: Serving now.\nweb: Adopting: Adopting now.\n",
		},
		"it is deprecated instead": {
			v1alpha1.CanaryTransitionAdopted,
			[]*v1alpha1.CanaryRelease{in(v1alpha1.ReasonDeprecated, ended(v1alpha1.CanaryTransitionDeprecated))},
			cli.ExitMissed, "",
		},
		"the upgrade fails":                  {v1alpha1.CanaryTransitionAdopted, []*v1alpha1.CanaryRelease{in(v1alpha1.ReasonUpgradeFailed)}, cli.ExitMissed, ""},
		"the time is over":                   {v1alpha1.CanaryTransitionAdopted, []*v1alpha1.CanaryRelease{in(v1alpha1.ReasonAdopting)}, cli.ExitMissed, "web: Adopting: Adopting now.\n"},
		"it is deleted before it is adopted": {v1alpha1.CanaryTransitionAdopted, []*v1alpha1.CanaryRelease{nil}, cli.ExitMissed, ""},
		"another one has its name":           {v1alpha1.CanaryTransitionAdopted, []*v1alpha1.CanaryRelease{another}, cli.ExitMissed, ""},
		"it is deleted, which deprecates it": {v1alpha1.CanaryTransitionDeprecated, []*v1alpha1.CanaryRelease{in(v1alpha1.ReasonDeprecating), nil}, cli.ExitDone, "web: Deprecating: Deprecating now.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tr := adoption(cli.DryNone)
			tr.wanted = test.wanted
			ctx, cancel := context.WithDeadline(t.Context(), endOf(test.states))
			defer cancel()
			err := tr.watch(canaryAPI(t, looks(test.states...)), shopCanary(), &out).Run(ctx, 0, ticks(len(test.states)-1))
			if cli.Status(err) != test.status || out.String() != test.out {
				t.Errorf("exit status %d: %v, printed %q", cli.Status(err), err, out.String())
			}
		})
	}
}

// endOf is the end of the time, which is over for those that have one look.
func endOf(states []*v1alpha1.CanaryRelease) time.Time {
	if len(states) > 1 {
		return time.Now().Add(time.Hour)
	}
	return time.Time{}
}

func TestAWaitOutlivesARestartOfTheAPIServer(t *testing.T) {
	n := 0
	api := canaryAPI(t, interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
		if n++; n < 4 {
			return apierrors.NewServiceUnavailable("starting")
		}
		shopCanary().DeepCopyInto(o.(*v1alpha1.CanaryRelease))
		o.(*v1alpha1.CanaryRelease).Status = v1alpha1.CanaryReleaseStatus{
			ObservedGeneration: 1, Decision: &v1alpha1.CanaryDecision{Transition: v1alpha1.CanaryTransitionAdopted, EndedAt: &metav1.MicroTime{}},
		}
		return nil
	}})
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := adoption(cli.DryNone).watch(api, shopCanary(), &out).Run(ctx, 0, ticks(8)); err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), "tried again: starting"); got != 1 {
		t.Errorf("printed %q", out.String())
	}
}

func TestAnInterruptedWaitSaysSo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	err := adoption(cli.DryNone).watch(canaryAPI(t, looks(shopCanary())), shopCanary(), &bytes.Buffer{}).Run(ctx, 0, nil)
	if cli.Status(err) != cli.ExitMissed || !strings.Contains(err.Error(), "is not adopted yet, and it was interrupted: Serin has not looked at it yet.") {
		t.Errorf("%v", err)
	}
}

func TestCanariesAreListedWithWhatTheyDo(t *testing.T) {
	cr := shopCanary()
	cr.CreationTimestamp = metav1.Unix(0, 0)
	cr.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing, Message: "The canary\ngets traffic."}}
	cr.Status.Services = []v1alpha1.CanaryServiceStatus{{Service: "web", Programmed: true, Ports: []v1alpha1.CanaryPortStatus{{Port: "80/TCP", Weight: 10}, {Port: "53/UDP", Weight: 0}}}}
	heads := append(append(cli.Columns("NAMESPACE"), cli.Columns("NAME", "RELEASE", "VERSION", "READY", "STATE", "CANARY", "AGE")...), cli.Wide("PORTS", "FAILED", "STATUS")...)
	cr.Status.Services[0].Traffic = &v1alpha1.CanaryTraffic{Seconds: 60, Stable: v1alpha1.CanaryCounts{Requests: 99, Failures: 2}, Canary: v1alpha1.CanaryCounts{Requests: 10, Failures: 1}}
	var out bytes.Buffer
	rows := canaryRows([]v1alpha1.CanaryRelease{*cr, *shopCanary()}, true, time.Unix(3600, 0))
	if err := (&cli.Output{Form: cli.AsWide}).Table(&out, heads, rows[:1]); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if got := strings.Join(strings.Fields(lines[1]), " "); len(lines) != 2 || got != "shop web shop 4 True Serving 0-10% 60m web:80/TCP=10%,web:53/UDP=0% web:canary=1/10,web:stable=2/99 The canary gets traffic." {
		t.Errorf("%q", lines)
	}
	if unseen := rows[1]; unseen[4] != "Unknown" || unseen[6] != "-" || unseen[8] != "<none>" || unseen[9] != "<none>" {
		t.Errorf("one that the controller has not seen: %q", unseen)
	}
	if narrow := canaryRows([]v1alpha1.CanaryRelease{*cr}, false, time.Unix(3600, 0))[0]; narrow[0] != "web" {
		t.Errorf("in one namespace: %q", narrow)
	}
}

func TestListsArePrintedInEachForm(t *testing.T) {
	scheme, err := cli.NewScheme("v1alpha4")
	if err != nil {
		t.Fatal(err)
	}
	rollouts := &v1alpha1.RolloutList{Items: make([]v1alpha1.Rollout, 1)}
	rollouts.Items[0].Name = "website"
	for _, test := range []struct {
		form string
		list runtime.Object
		want string
	}{
		{cli.AsName, &v1alpha1.CanaryReleaseList{Items: []v1alpha1.CanaryRelease{*shopCanary(), *shopCanary()}}, "canaryrelease.serin.dev/web\ncanaryrelease.serin.dev/web\n"},
		{cli.AsName, rollouts, "rollout.serin.dev/website\n"},
		{cli.AsName, &v1alpha1.CanaryReleaseList{}, ""},
		{cli.AsYAML, &v1alpha1.CanaryReleaseList{}, "apiVersion: serin.dev/v1alpha1\nitems: null\nkind: CanaryReleaseList\nmetadata: {}\n"},
	} {
		var out bytes.Buffer
		if err := (&cli.Output{Form: test.form}).Print(&out, scheme, test.list); err != nil || out.String() != test.want {
			t.Errorf("%s of %T: %v, %q", test.form, test.list, err, out.String())
		}
	}
}

func TestANameMayHaveItsKind(t *testing.T) {
	for arg, want := range map[string]string{"web": "web", "canary/web": "web", "canaryreleases.serin.dev/web": "web", "rollout/web": "rollout/web", "canary": "canary"} {
		if got := canaryName(arg); got != want {
			t.Errorf("%s: %s", arg, got)
		}
	}
}

// The client's own limit of requests refuses to wait beyond the end of the time.
func TestALookThatTheEndCutsOffIsNoErrorOfItsOwn(t *testing.T) {
	limit := errors.New("client rate limiter Wait returned an error: rate: Wait(n=1) would exceed context deadline")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	api := canaryAPI(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return limit
	}})
	err := adoption(cli.DryNone).watch(api, shopCanary(), &bytes.Buffer{}).Run(ctx, 0, nil)
	if cli.Status(err) != cli.ExitMissed || !strings.Contains(err.Error(), "is not adopted yet, and the time limit of") {
		t.Errorf("%v", err)
	}
}

// ticks has a beat for each of n looks.
func ticks(n int) <-chan time.Time {
	c := make(chan time.Time, n)
	for range n {
		c <- time.Time{}
	}
	return c
}
