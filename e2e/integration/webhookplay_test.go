// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/admission"
	"github.com/serin-dev/serin/controllers/rollout"
	"github.com/serin-dev/serin/traffic"
)

// tryV2 sends the image of v2 to the API server, and shows what becomes of it.
func (s *scene) tryV2(options ...client.PatchOption) (*appsv1.Deployment, error) {
	d := s.deployment()
	next := d.DeepCopy()
	next.Spec.Template.Spec.Containers[0].Image = imageV2
	return next, admin.Patch(s.Context(), next, client.StrategicMergeFrom(d), options...)
}

func TestUnderTheWebhookAChangedDeploymentIsHeldAndBetweenReleasesItIsHealthy(t *testing.T) {
	t.Parallel()
	ownAddress(t)
	p := begin(t, func(c *cast) {
		c.labels = append(c.labels, labelled(labelGuarded, byWebhook))
		c.sight = append(c.sight, func(see *sight) {
			see.admission = &rollout.Admission{Mode: rollout.AdmissionWebhook, Webhooks: webhooksName, Hold: admission.WebhookHold}
		})
	})
	p.waitHealthy()
	if held, err := p.tryV2(); err != nil || !held.Spec.Paused {
		t.Fatalf("a changed template: paused %v, %v", held.Spec.Paused, err)
	}
	p.held(0)
	change(p.scene, "website", &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.Paused, d.Annotations = false, nil })
	if d := p.deployment(); !d.Spec.Paused || d.Annotations[v1alpha1.AnnotationRollout] != "website" {
		t.Errorf("replaced in the middle of a release: paused %v, annotations %v", d.Spec.Paused, d.Annotations)
	}
	p.finish(4)
	p.waitHealthy()
}

func TestUnderTheWebhookADecisionIsSigned(t *testing.T) {
	t.Parallel()
	ownAddress(t)
	s := team(t, byWebhook)
	ro := s.named("website")
	ro.Spec.Control = decision(v1alpha1.ControlPromote, "")
	s.wantError(as(t, "admin").Create(t.Context(), ro), "")
	s.wantError(s.merge("editor", ro, `{"spec":{"control":{"by":null}}}`), "")
	if ro.Spec.Control.By != "admin" {
		t.Errorf("decided by %q", ro.Spec.Control.By)
	}
	s.wantError(s.merge("oncall", ro, `{"spec":{"control":{"stepIndex":1}}}`), "")
	if ro.Spec.Control.By != "oncall" {
		t.Errorf("decided again by %q", ro.Spec.Control.By)
	}
	s.wantError(s.merge("oncall", ro, `{"spec":{"control":{"action":"Abort","by":"admin"}}}`), forged)
}

// underOwn plays until v1 is stable under webhooks of the namespace's own.
func underOwn(t *testing.T, failurePolicy admissionv1.FailurePolicyType) (*stage, *ownWebhooks) {
	t.Helper()
	var w *ownWebhooks
	p := begin(t, func(c *cast) {
		c.before = func(s *scene) { w = s.installOwn(failurePolicy) }
		c.sight = append(c.sight, takeOwn)
	})
	p.waitHealthy()
	return p, w
}

func TestAChangeIsRefusedWhileNoManagerServesTheWebhook(t *testing.T) {
	t.Parallel()
	p, w := underOwn(t, admissionv1.Fail)
	w.away()
	if _, err := p.tryV2(); err == nil || !strings.Contains(err.Error(), `failed calling webhook "`+admission.WebhookHold+`"`) {
		t.Fatalf("a change that nothing holds: %v", err)
	}
	other := deployment("other", 1)
	p.create(other)
	for name, write := range map[string]func(d *appsv1.Deployment){
		"website": func(d *appsv1.Deployment) {
			d.Spec.RevisionHistoryLimit, d.Labels = new(int32(7)), map[string]string{"team": "a"}
		},
		"other": func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = imageV2 },
	} {
		change(p.scene, name, &appsv1.Deployment{}, write) // nothing else waits for a manager
	}
	w.start()
	p.eventually("the change is taken, and held", func(context.Context) bool {
		held, err := p.tryV2()
		return err == nil && held.Spec.Paused
	})
	p.held(0)
	p.finish(4)
	p.waitHealthy()
}

// All managers are away, those that serve the webhook and the one that leads: one that leads might
// pause the Deployment before its controller has seen the change.
func TestAChangeThatTheWebhookLetsThroughIsRolledOutAndReported(t *testing.T) {
	t.Parallel()
	p, w := underOwn(t, admissionv1.Ignore)
	p.promise = promise{keeps: 3, writes: restoredWithin} // the Deployment's own maxUnavailable
	w.away()
	p.operator.stop(t)
	if let, err := p.tryV2(); err != nil || let.Spec.Paused {
		t.Fatalf("paused %v, %v", let.Spec.Paused, err)
	}
	p.eventually("the Deployment controller rolls it out", func(context.Context) bool { return p.slipped() })
	p.operator = p.startOperator(p.time, takeOwn)
	p.waitReady()
	p.checkPods(imageV2, 4)
	p.eventually("it is reported", func(ctx context.Context) bool { return p.hasEvent(ctx, v1alpha1.ReasonUnguardedChange) })
}

// otherImage changes the template of the website.
var otherImage = []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"` + imageV2 + `"}]}}}}`)

// While the certificate is replaced, another actor changes the template all the time, and
// each of its writes is held.
func TestCertificatesOfWebhooksRotateUnderWrites(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	d := deployment("website", 1)
	d.Annotations = map[string]string{v1alpha1.AnnotationRollout: "website"}
	s.create(d)
	w := s.installOwn(admissionv1.Fail)
	w.start()
	held := func(context.Context) bool {
		tried, err := s.tryV2(client.DryRunAll)
		return err == nil && tried.Spec.Paused
	}
	s.eventually("the API server calls the webhook", held)
	var writes atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for ctx.Err() == nil {
			tried := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "website"}}
			err := admin.Patch(ctx, tried, client.RawPatch(types.StrategicMergePatchType, otherImage), client.DryRunAll)
			if ctx.Err() == nil && (err != nil || !tried.Spec.Paused) {
				t.Errorf("write %d: paused %v, %v", writes.Load(), tried.Spec.Paused, err)
			}
			writes.Add(1)
		}
	}()
	t.Cleanup(func() { stop(); <-stopped })
	before := w.shown()
	secret := &corev1.Secret{}
	change(s, "webhooks", secret, func(o *corev1.Secret) { o.Data = nil })
	w.touch(func(c *admissionv1.MutatingWebhookConfiguration) {
		c.Annotations = map[string]string{"touched": "true"}
	})
	s.eventually("every manager shows another certificate", func(context.Context) bool {
		for i, shown := range w.shown() {
			if shown == before[i] {
				return false
			}
		}
		return true
	})
	seen := writes.Load()
	s.eventually("writes go on", func(context.Context) bool { return writes.Load() > seen+10 })
	stop()
	w.touch(func(c *admissionv1.MutatingWebhookConfiguration) { c.Webhooks[0].ClientConfig.CABundle = nil })
	s.eventually("an authority that another actor removes is put back", held)
}

// shown are the certificates that the managers show.
func (w *ownWebhooks) shown() (all []string) {
	w.Helper()
	for _, slice := range w.slices {
		serial, err := shownBy(w.Context(), slice)
		if err != nil {
			w.Fatal(err)
		}
		all = append(all, serial)
	}
	return all
}

// touch changes the configuration of the webhooks.
func (w *ownWebhooks) touch(f func(*admissionv1.MutatingWebhookConfiguration)) {
	w.Helper()
	eventually(w.T, "the configuration of the webhooks is changed", func() error {
		if err := admin.Get(w.Context(), client.ObjectKeyFromObject(w.configuration), w.configuration); err != nil {
			return err
		}
		f(w.configuration)
		return admin.Update(w.Context(), w.configuration)
	})
}

// The policy that the chart renders for v1beta1 does what the one of v1 does.
func TestUnderAPolicyOfV1beta1AChangedDeploymentIsHeldAndBetweenReleasesItIsHealthy(t *testing.T) {
	t.Parallel()
	objects, err := renderChart(t.Context(), "--set", "admission.mode=policies-v1beta1")
	if err != nil {
		t.Fatal(err)
	}
	name := func(namespace string) string { return guardName + "-" + namespace }
	p := begin(t, func(c *cast) {
		c.before = func(s *scene) {
			for _, o := range kinds(objects, "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding") {
				if o.GetName() != guardName {
					continue
				}
				if v := o.GetObjectKind().GroupVersionKind().Version; v != admissionv1beta1.SchemeGroupVersion.Version {
					t.Fatalf("it is of %s", v)
				}
				u := o.(*unstructured.Unstructured)
				u.SetName(name(s.namespace))
				if u.GetKind() == "MutatingAdmissionPolicyBinding" {
					u.Object["spec"] = map[string]any{"policyName": u.GetName(), "matchResources": map[string]any{
						"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: s.namespace}},
					}}
				}
				createForTest(t, u)
			}
		}
		c.sight = append(c.sight, func(see *sight) {
			see.admission = &rollout.Admission{Mode: rollout.AdmissionPoliciesV1beta1, Hold: name(see.namespaces[0])}
		})
	})
	p.waitHealthy()
	if held, err := p.tryV2(); err != nil || !held.Spec.Paused {
		t.Fatalf("a changed template: paused %v, %v", held.Spec.Paused, err)
	}
	p.held(0)
	p.finish(4)
	p.waitHealthy()
}

func TestUnderTheWebhookASelectorKeepsTheKeysOfASplit(t *testing.T) {
	t.Parallel()
	ownAddress(t)
	s := newScene(t, labelled(labelGuarded, byWebhook))
	root := service("website")
	root.Spec.Selector[traffic.LabelProxy] = "website"
	s.create(root)
	replace := func(options ...client.UpdateOption) (selector map[string]string) {
		eventually(t, "the Service is replaced", func() error {
			o := &corev1.Service{}
			if err := admin.Get(t.Context(), s.key("website"), o); err != nil {
				return err
			}
			o.Spec.Selector = map[string]string{"app": "website", "tier": "web"}
			err := admin.Update(t.Context(), o, options...)
			selector = o.Spec.Selector
			return err
		})
		return selector
	}
	s.eventually("the key stays, and the rest of the write is let through", func(context.Context) bool {
		selector := replace(client.DryRunAll)
		return selector[traffic.LabelProxy] == "website" && selector["tier"] == "web"
	})
	if selector := replace(client.FieldOwner(traffic.FieldManager)); selector[traffic.LabelProxy] != "" {
		t.Errorf("the operator removes its key itself: %v", selector)
	}
}
