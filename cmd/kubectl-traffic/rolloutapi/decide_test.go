// SPDX-License-Identifier: Apache-2.0

package rolloutapi_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutapi"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/rolloutview"
)

// atTheSameMoment is a cluster in which something is changed between the reading of the
// Rollout and the first writing of it.
func atTheSameMoment(t *testing.T, change func(*v1alpha1.Rollout)) client.Client {
	t.Helper()
	scheme, err := cli.NewScheme("v1alpha4")
	if err != nil {
		t.Fatal(err)
	}
	ro := &v1alpha1.Rollout{}
	ro.Namespace, ro.Name = "shop", "website"
	ro.Status.Canary = &v1alpha1.VersionStatus{Revision: "657bc99986"}
	ro.Status.Step = &v1alpha1.StepStatus{Index: 0, Of: 3}
	meanwhile := writtenMeanwhile(1, func(o client.Object) { change(o.(*v1alpha1.Rollout)) })
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(ro).WithInterceptorFuncs(meanwhile).Build()
}

// writtenMeanwhile has the object changed by another before each of the first patches of it.
func writtenMeanwhile(patches int, change func(client.Object)) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, api client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
		if patches > 0 {
			patches--
			other := o.DeepCopyObject().(client.Object)
			if err := api.Get(ctx, client.ObjectKeyFromObject(o), other); err != nil {
				return err
			}
			change(other)
			if err := api.Update(ctx, other); err != nil {
				return err
			}
		}
		return api.Patch(ctx, o, p, options...)
	}}
}

func TestDecisionsAtTheSameMomentDoNotOverwriteEachOther(t *testing.T) {
	first := int32(0)
	promote := v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlPromote, StepIndex: &first}
	abort := v1alpha1.Control{Revision: "657bc99986", Action: v1alpha1.ControlAbort, By: "jane"}
	for _, test := range []struct {
		name   string
		change func(*v1alpha1.Rollout)
		want   v1alpha1.ControlAction
		says   string
	}{
		{"nothing else", func(*v1alpha1.Rollout) {}, v1alpha1.ControlPromote, ""},
		{"Serin writes its status", func(ro *v1alpha1.Rollout) { ro.Status.Step.Weight = 20 }, v1alpha1.ControlPromote, ""},
		{"another user decides the same", func(ro *v1alpha1.Rollout) { ro.Spec.Control = &promote }, v1alpha1.ControlPromote, ""},
		{"another user aborts", func(ro *v1alpha1.Rollout) { ro.Spec.Control = &abort }, v1alpha1.ControlAbort, "Abort was decided for revision 657bc99986 by jane at the same time"},
		{"the step ends", func(ro *v1alpha1.Rollout) { ro.Status.Step.Index = 1 }, "", "the release went on meanwhile, from step 1"},
		{"the release ends", func(ro *v1alpha1.Rollout) { ro.Status.Canary = nil }, "", "releases nothing at present"},
	} {
		t.Run(test.name, func(t *testing.T) {
			api := atTheSameMoment(t, test.change)
			ro := &v1alpha1.Rollout{}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "website"}, ro); err != nil {
				t.Fatal(err)
			}
			w := rolloutapi.Writer{API: api, DryRun: cli.DryNone}
			_, err := w.Decide(t.Context(), ro, rolloutview.Wish{Action: v1alpha1.ControlPromote})
			if (err == nil) != (test.says == "") || err != nil && (!strings.Contains(err.Error(), test.says) || cli.Status(err) != cli.ExitError) {
				t.Errorf("exit status %d: %v", cli.Status(err), err)
			}
			kept := &v1alpha1.Rollout{}
			if err := api.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "website"}, kept); err != nil {
				t.Fatal(err)
			}
			if got := kept.Spec.Control; (got == nil) != (test.want == "") || got != nil && got.Action != test.want {
				t.Errorf("in the cluster: %+v, want %q", got, test.want)
			}
		})
	}
}

// A burst of Serin's own writes ends no decision of a user.
func TestADecisionOutlastsABurstOfStatuses(t *testing.T) {
	const statuses = 7
	for name, decide := range map[string]struct {
		object client.Object
		write  func(context.Context, rolloutapi.Writer, client.Object) error
	}{
		"about a Rollout": {&v1alpha1.Rollout{Status: v1alpha1.RolloutStatus{Canary: &v1alpha1.VersionStatus{Revision: "657bc99986"}}},
			func(ctx context.Context, w rolloutapi.Writer, o client.Object) error {
				_, err := w.Decide(ctx, o.(*v1alpha1.Rollout), rolloutview.Wish{Action: v1alpha1.ControlAbort})
				return err
			}},
		"about a CanaryRelease": {&v1alpha1.CanaryRelease{}, func(ctx context.Context, w rolloutapi.Writer, o client.Object) error {
			_, err := w.Transit(ctx, o.(*v1alpha1.CanaryRelease), v1alpha1.CanaryTransitionDeprecated)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				scheme, err := cli.NewScheme("v1alpha4")
				if err != nil {
					t.Fatal(err)
				}
				decide.object.SetNamespace("shop")
				decide.object.SetName("website")
				written := 0
				meanwhile := writtenMeanwhile(statuses, func(client.Object) { written++ })
				api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(decide.object).WithInterceptorFuncs(meanwhile).Build()
				if err := api.Get(t.Context(), client.ObjectKeyFromObject(decide.object), decide.object); err != nil {
					t.Fatal(err)
				}
				if err := decide.write(t.Context(), rolloutapi.Writer{API: api, DryRun: cli.DryNone}, decide.object); err != nil || written != statuses {
					t.Errorf("after %d statuses: %v", written, err)
				}
			})
		})
	}
}
