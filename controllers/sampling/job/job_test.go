// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/serin-dev/serin/analysis/source"
)

var now = time.Unix(1_784_400_000, 0).UTC()

const template = `{"metadata":{"labels":{"team":"a"},"annotations":{"x":"y"}},
	"spec":{"template":{"spec":{"restartPolicy":"Never","initContainers":[{"name":"i"}],"containers":[{"name":"c","env":[{"name":"OWN","value":"$(SERIN_ARG_SERVICE)"}]}]}}}}`

func spec() Spec {
	return Spec{
		Namespace: "shop", Rollout: "website", Owner: "uid", Revision: "abc", Metric: "smoke", Template: runtime.RawExtension{Raw: []byte(template)},
		Args: map[string]string{"service": "web-$(X)", "a-b": "1"}, Interval: time.Minute, Step: 2,
	}
}

func measurer(t *testing.T, api client.Client, s Spec) *Measurer {
	t.Helper()
	m, err := New(api, api, s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func jobs(t *testing.T, api client.Client) []batchv1.Job {
	t.Helper()
	var list batchv1.JobList
	if err := api.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// finish ends every Job.
func finish(t *testing.T, api client.Client, kind batchv1.JobConditionType) {
	t.Helper()
	for _, j := range jobs(t, api) {
		j.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse}, {Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
		}
		if err := api.Status().Update(t.Context(), &j); err != nil {
			t.Fatal(err)
		}
	}
}

func wantMissing(t *testing.T, err error, reason source.Reason) {
	t.Helper()
	var missing *source.MissingError
	if !errors.As(err, &missing) || missing.Reason != reason || len(missing.Message) == 0 || len(missing.Message) > source.MaxMessage {
		t.Fatalf("got %#v, want %s", err, reason)
	}
}

func TestAJobIsMadeOnceAndItsEndIsTheNumber(t *testing.T) {
	for kind, want := range map[batchv1.JobConditionType]float64{batchv1.JobComplete: 1, batchv1.JobFailed: 0} {
		api := fake.NewClientBuilder().Build()
		m := measurer(t, api, spec())
		for i := range 3 {
			_, err := m.Measure(t.Context(), now.Add(time.Duration(i)*time.Minute))
			wantMissing(t, err, source.Pending)
		}
		// A restart of the operator finds the same one.
		m = measurer(t, api, spec())
		_, err := m.Measure(t.Context(), now)
		wantMissing(t, err, source.Pending)
		if n := len(jobs(t, api)); n != 1 {
			t.Fatalf("%d Jobs", n)
		}
		finish(t, api, kind)
		for range 2 {
			s, err := m.Measure(t.Context(), now.Add(time.Hour))
			if err != nil || s.Value != want || !s.At.Equal(now) {
				t.Errorf("%s: %+v, %v", kind, s, err)
			}
		}
		if n := len(jobs(t, api)); n != 1 {
			t.Errorf("%d Jobs", n)
		}
	}
}

func TestEachStepRevisionMetricAndRolloutHasItsOwnJob(t *testing.T) {
	names := map[string]string{}
	for what, change := range map[string]func(*Spec){
		"the same": func(*Spec) {}, "another step": func(s *Spec) { s.Step++ }, "another revision": func(s *Spec) { s.Revision = "def" },
		"another metric": func(s *Spec) { s.Metric = "load" }, "a Rollout made again": func(s *Spec) { s.Owner = "other" },
		"an interval": func(s *Spec) { s.Repeat = true }, "the longest name": func(s *Spec) { s.Metric = strings.Repeat("m", 40) },
	} {
		s := spec()
		change(&s)
		name := s.Name(s.ordinal(now))
		if other, found := names[name]; found {
			t.Errorf("%s and %s have the name %s", what, other, name)
		}
		if problems := validation.IsDNS1123Label(name); problems != nil {
			t.Errorf("%s: %v", name, problems)
		}
		names[name] = what
	}
}

func TestTheJobThatIsMade(t *testing.T) {
	api := fake.NewClientBuilder().Build()
	_, err := measurer(t, api, spec()).Measure(t.Context(), now)
	wantMissing(t, err, source.Pending)
	got := jobs(t, api)[0]
	got.ResourceVersion, got.TypeMeta = "", metav1.TypeMeta{}
	environment := []corev1.EnvVar{{Name: "SERIN_ARG_A_B", Value: "1"}, {Name: "SERIN_ARG_SERVICE", Value: "web-$$(X)"}}
	want := batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: spec().Name("step-2-"), Annotations: map[string]string{"x": "y"},
			Labels: map[string]string{"team": "a", LabelRollout: "website", LabelMetric: "smoke"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "serin.dev/v1alpha1", Kind: "Rollout", Name: "website", UID: "uid", Controller: new(true)},
			},
		},
		Spec: batchv1.JobSpec{
			ActiveDeadlineSeconds: new(int64(600)), BackoffLimit: new(int32(0)), TTLSecondsAfterFinished: new(int32(86400)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, InitContainers: []corev1.Container{{Name: "i", Env: environment}},
				Containers: []corev1.Container{{Name: "c", Env: append(environment[:2:2], corev1.EnvVar{Name: "OWN", Value: "$(SERIN_ARG_SERVICE)"})}},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRepeatedJobsRunOneAfterTheOtherAndFewAreKept(t *testing.T) {
	api := fake.NewClientBuilder().Build()
	s := spec()
	s.Repeat = true
	m := measurer(t, api, s)
	for i := range 6 {
		at := now.Add(time.Duration(i) * time.Minute)
		_, err := m.Measure(t.Context(), at)
		wantMissing(t, err, source.Pending)
		_, err = m.Measure(t.Context(), at.Add(30*time.Second)) // a running one is waited for
		wantMissing(t, err, source.Pending)
		finish(t, api, batchv1.JobComplete)
		if got, err := m.Measure(t.Context(), at.Add(45*time.Second)); err != nil || got.Value != 1 {
			t.Fatalf("%d: %+v, %v", i, got, err)
		}
	}
	if n := len(jobs(t, api)); n != kept {
		t.Errorf("%d Jobs are kept", n)
	}
}

// A Job of the same name that another owner has made meanwhile stays: only what was measured is deleted.
func TestAJobIsDeletedByItsUID(t *testing.T) {
	uids := map[string]types.UID{}
	api := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			uids[o.GetName()] = types.UID("uid of " + o.GetName())
			o.SetUID(uids[o.GetName()])
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			of := (&client.DeleteOptions{}).ApplyOptions(opts)
			if of.Preconditions == nil || of.Preconditions.UID == nil || *of.Preconditions.UID != uids[o.GetName()] {
				t.Errorf("%s is deleted whatever its UID is: %+v", o.GetName(), of.Preconditions)
			}
			delete(uids, o.GetName())
			return c.Delete(ctx, o)
		},
	}).Build()
	s := spec()
	s.Repeat = true
	m := measurer(t, api, s)
	for i := range kept + 2 {
		at := now.Add(time.Duration(i) * time.Minute)
		_, err := m.Measure(t.Context(), at)
		wantMissing(t, err, source.Pending)
		finish(t, api, batchv1.JobComplete)
		if _, err := m.Measure(t.Context(), at.Add(45*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if len(uids) != kept {
		t.Errorf("%d Jobs are kept", len(uids))
	}
}

func TestWhatIsNoOutcomeIsMissing(t *testing.T) {
	getFails := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		}}
	}
	createFails := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return err }}
	}
	resource := schema.GroupResource{Group: "batch", Resource: "jobs"}
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", field.ErrorList{field.Invalid(field.NewPath("spec", "template"), "confidential", "confidential")})
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: spec().Name("step-2-")}}
	for name, test := range map[string]struct {
		objects []client.Object
		funcs   interceptor.Funcs
		want    source.Reason
		says    string
	}{
		"the API is away":               {nil, getFails(errors.New("confidential")), source.Unavailable, "could not be read"},
		"a quota":                       {nil, createFails(apierrors.NewForbidden(resource, "x", errors.New("confidential"))), source.Rejected, "a quota, a policy or the operator's rights"},
		"a template that is refused":    {nil, createFails(invalid), source.Rejected, "correct template.spec.template"},
		"another one was faster":        {nil, createFails(apierrors.NewAlreadyExists(resource, "x")), source.Pending, "has not ended"},
		"the API fails while it's made": {nil, createFails(errors.New("confidential")), source.Unavailable, "could not be created"},
		"a Job of another owner":        {[]client.Object{foreign}, interceptor.Funcs{}, source.Rejected, "belongs to another owner"},
	} {
		t.Run(name, func(t *testing.T) {
			api := interceptor.NewClient(fake.NewClientBuilder().WithObjects(test.objects...).Build(), test.funcs)
			_, err := measurer(t, api, spec()).Measure(t.Context(), now)
			wantMissing(t, err, test.want)
			if !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "confidential") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestADeletedJobIsNotMadeAgain(t *testing.T) {
	api := fake.NewClientBuilder().Build()
	m := measurer(t, api, spec())
	_, err := m.Measure(t.Context(), now)
	wantMissing(t, err, source.Pending)
	if err := api.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace("shop")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = m.Measure(t.Context(), now)
		wantMissing(t, err, source.NoData)
	}
	if n := len(jobs(t, api)); n != 0 {
		t.Errorf("%d Jobs", n)
	}
}

func TestTemplatesThatAreRefusedNameTheField(t *testing.T) {
	with := func(fields string) string {
		return fmt.Sprintf(`{"spec":{%s"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c"}]}}}}`, fields)
	}
	for name, test := range map[string]struct{ template, want string }{
		"nothing":           {``, "template: is not that of a Job"},
		"no JSON":           {`x`, "template: is not that of a Job"},
		"an unknown field":  {`{"spek":{}}`, `template: is not that of a Job: unknown field "spek"`},
		"another type":      {with(`"backoffLimit":"many",`), "template: is not that of a Job: spec.backoffLimit has another type"},
		"no containers":     {`{"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}`, "template.spec.template.spec.containers: none"},
		"no restart policy": {`{"spec":{"template":{"spec":{"containers":[{"name":"c"}]}}}}`, "template.spec.template.spec.restartPolicy: must be"},
		"suspended":         {with(`"suspend":true,`), "template.spec.suspend: would never run"},
		"too long":          {with(`"activeDeadlineSeconds":3601,`), "template.spec.activeDeadlineSeconds: 3601; give at most 3600"},
		"too many tries":    {with(`"backoffLimit":7,`), "template.spec.backoffLimit: 7; give at most 6"},
		"its own selector":  {with(`"manualSelector":true,`), "template.spec.selector: is made by the cluster"},
		"a selector":        {with(`"selector":{},`), "template.spec.selector: is made by the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec()
			s.Template.Raw = []byte(test.template)
			if _, err := New(nil, nil, s); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	s := spec()
	s.Repeat, s.Interval = true, 30*time.Second
	if _, err := New(nil, nil, s); err == nil || !strings.HasPrefix(err.Error(), "repeat: needs an interval of at least 1m") {
		t.Errorf("got %v", err)
	}
}

// A step begins again after a retry, and nearly all traffic is another weight than the
// step's own: what a Job said before says nothing about it.
func TestAStepThatBeginsAgainHasAJobOfItsOwn(t *testing.T) {
	first, again := spec(), spec()
	first.Began, again.Began = "2026-01-02T03:00:00Z", "2026-01-02T03:10:00Z"
	if first.Name(first.ordinal(now)) == again.Name(again.ordinal(now)) {
		t.Error("both have the same Job")
	}
}
