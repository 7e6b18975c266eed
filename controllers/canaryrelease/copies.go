// SPDX-License-Identifier: Apache-2.0

package canaryrelease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/helmrelease"
)

var errNoCopy = errors.New("the proposal has no such copy")

// observeCopies looks at the objects that pods of the canary read: those of the proposal,
// and those on record. The manager may not read them; the ServiceAccount that Helm is
// called as may. It may be gone, or have lost its rights: then they are unknown.
func (r *Reconciler) observeCopies(ctx context.Context, s *observation) error {
	wanted := map[v1alpha1.CanaryCopy]bool{}
	order := append([]v1alpha1.CanaryCopy(nil), s.CanaryRelease.Status.Copies...)
	for _, c := range order {
		wanted[c] = false
	}
	if s.proposal != nil {
		for _, c := range s.proposal.Copies {
			id := v1alpha1.CanaryCopy{Kind: c.GetKind(), Name: c.GetName()}
			if _, known := wanted[id]; !known {
				order = append(order, id)
			}
			wanted[id] = true
		}
	}
	if len(order) == 0 {
		return nil
	}
	as, err := r.options.As(s.CanaryRelease.Namespace)
	if err != nil {
		return err
	}
	for _, id := range order {
		c, err := r.observeCopy(ctx, s, as, id)
		c.Wanted = wanted[id]
		s.retry = errors.Join(s.retry, withoutValues(err))
		s.Copies = append(s.Copies, c)
	}
	return nil
}

func (r *Reconciler) observeCopy(ctx context.Context, s *observation, as client.Client, id v1alpha1.CanaryCopy) (helmrelease.Copy, error) {
	out := helmrelease.Copy{Kind: id.Kind, Object: kit.Object{Name: id.Name}}
	live := partial(id.Kind)
	err := as.Get(ctx, types.NamespacedName{Namespace: s.CanaryRelease.Namespace, Name: id.Name}, live)
	switch {
	case apierrors.IsNotFound(err):
		out.Presence = kit.Absent
	case apierrors.IsForbidden(err): // a user has to act, which is looked for every few seconds
		out.Denied = r.denial(err, s.CanaryRelease.Namespace, "get", id.Kind)
	case err != nil:
		return out, fmt.Errorf("the %s %q could not be read: %w", id.Kind, id.Name, err)
	default:
		out.Presence, out.Object = kit.Present, shell.ObjectOf(live)
		out.Ours = isMarked(live, s.CanaryRelease)
		out.Current = s.proposal != nil && live.Annotations[v1alpha1.AnnotationCanaryDigest] == s.proposal.Digest
		out.Denied = s.helm.denied[id]
	}
	return out, nil
}

// denial says which right is lacking and what to do. It quotes nothing of a webhook's answer.
func (r *Reconciler) denial(err error, namespace, verb, kind string) string {
	account, resource := fmt.Sprintf("ServiceAccount %s of namespace %s", r.options.Account, namespace), strings.ToLower(kind)+"s"
	switch {
	case strings.Contains(err.Error(), " cannot impersonate "):
		return "Serin is not allowed to impersonate " + account + ": give Serin's own ServiceAccount that right"
	case plain(err):
		return account + " may not " + verb + " " + resource + ": create the account, and give it that right with a Role and a RoleBinding"
	}
	return "an admission policy does not let " + account + " " + verb + " " + resource + ": see why with kubectl delete --as, or change the policy"
}

// partial is the metadata of a copy, which is all that is read.
func partial(kind string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	return o
}

// keepCopy makes an object of the proposal.
func (r *Reconciler) keepCopy(ctx context.Context, s observation, a helmrelease.KeepCopy) error {
	as, err := r.options.As(s.CanaryRelease.Namespace)
	if err != nil {
		return err
	}
	for _, c := range s.proposal.Copies {
		if c.GetKind() != a.Kind || c.GetName() != a.Name {
			continue
		}
		made := &unstructured.Unstructured{Object: c.DeepCopy().Object}
		made.SetNamespace(s.CanaryRelease.Namespace)
		mark(made, s.CanaryRelease, "")
		made.SetAnnotations(shell.With(made.GetAnnotations(), map[string]string{v1alpha1.AnnotationCanaryDigest: s.proposal.Digest}))
		return withoutValues(s.writer(as).Create(ctx, made))
	}
	return errNoCopy
}

// dropCopy deletes the exact copy that was observed. A right that is lacking is remembered
// for the planner to tell. It is an error when it is news: others are deleted first then.
func (r *Reconciler) dropCopy(ctx context.Context, s observation, a helmrelease.DropCopy) error {
	as, err := r.options.As(s.CanaryRelease.Namespace)
	if err != nil {
		return err
	}
	err = s.writer(as).Delete(ctx, a.Object, partial(a.Kind))
	if !apierrors.IsForbidden(err) {
		return err
	}
	id := v1alpha1.CanaryCopy{Kind: a.Kind, Name: a.Name}
	why := r.denial(err, s.CanaryRelease.Namespace, "delete", a.Kind)
	if s.helm.denied[id] == why {
		return nil
	}
	if s.helm.denied == nil {
		s.helm.denied = map[v1alpha1.CanaryCopy]string{}
	}
	s.helm.denied[id] = why
	return withoutValues(err)
}
