// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/configrevision"
	"github.com/serin-dev/serin/controllers/kit"
	"github.com/serin-dev/serin/controllers/kit/shell"
	"github.com/serin-dev/serin/controllers/release/state"
	"github.com/serin-dev/serin/controllers/rollout/contents"
)

// ConfigurationOptions say what spec.configuration may request.
type ConfigurationOptions struct {
	// Namespaces are those in which the operator may read ConfigMaps; none for all.
	Namespaces []string
	// SecretNamespaces are those in which the operator may read Secrets.
	SecretNamespaces []string
	// Reader reads contents from the API server: no content is kept in memory.
	Reader client.Reader
}

// mayRead reports whether the operator may read the ConfigMaps of a namespace.
func (o ConfigurationOptions) mayRead(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, namespace)
}

// observeConfiguration finds out which contents the template means. A Rollout that
// does not use it costs nothing.
func (r *Reconciler) observeConfiguration(ctx context.Context, s *snapshot) error {
	if s.deployment == nil || !s.Rollout.DeletionTimestamp.IsZero() {
		return nil
	}
	settings, annotation := s.Rollout.Spec.Configuration, s.deployment.Spec.Template.Annotations[v1alpha1.AnnotationConfiguration]
	if settings == nil {
		s.Configuration = state.Configuration{Template: annotation}
		r.contents.Forget(client.ObjectKeyFromObject(s.Rollout))
		return nil
	}
	// What can't be known stays as it is.
	s.Configuration = state.Configuration{Wants: true, Template: annotation, Wanted: annotation, Recorded: s.Rollout.Status.Configuration}
	references := configrevision.References(&s.deployment.Spec.Template, settings)
	var err error
	if s.Configuration.Problem, err = r.configurationProblem(ctx, s, references); s.Configuration.Problem != "" || err != nil {
		return err
	}
	r.contents.Use(client.ObjectKeyFromObject(s.Rollout), references)
	copies, err := r.observeContents(ctx, s, references)
	if err != nil {
		// A release in progress must still be judged, and rolled back.
		s.Configuration.Problem = strings.TrimSuffix(err.Error(), ".")
		s.recheck = sooner(s.recheck, contentPause)
		return nil
	}
	facts := configrevision.Facts{
		References: references, Present: s.present, Template: configrevision.ParseMapping(annotation), Copies: copies,
		Recorded: configrevision.FromStatus(s.Rollout.Status.Configuration), Versions: s.configurations,
		Released: slices.ContainsFunc(s.ReplicaSets, func(rs kit.ReplicaSet) bool { return rs.Current }),
	}
	s.resolve(facts)
	return nil
}

// contentTimeout is how long the cache may take to know of contents: where the operator
// may not watch them, it never does. contentPause is when it is read again.
const (
	contentTimeout = 2 * time.Second
	contentPause   = 10 * time.Second
)

// observeContents finds out what the copies of the present contents are called, and
// which copies there are.
func (r *Reconciler) observeContents(ctx context.Context, s *snapshot, references []configrevision.Reference) ([]configrevision.Copy, error) {
	ctx, cancel := context.WithTimeout(ctx, contentTimeout)
	defer cancel()
	s.present = configrevision.Mapping{}
	for _, ref := range references {
		if err := r.observeContent(ctx, s, ref); err != nil {
			return nil, err
		}
	}
	return r.copies(ctx, s, s.Rollout.Spec.Configuration.Kinds)
}

func (s *snapshot) resolve(facts configrevision.Facts) {
	r := configrevision.Resolve(facts)
	s.Configuration.Wanted, s.Configuration.Recorded, s.Configuration.Missing = r.Template.String(), r.Recorded.Status(), r.Missing
	for _, c := range r.Unused {
		s.Configuration.Unused = append(s.Configuration.Unused, state.Copied{
			Kind: c.Kind, Object: kit.Object{Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion},
		})
	}
}

// configurationProblem says why the configuration can't be part of a version here.
func (r *Reconciler) configurationProblem(ctx context.Context, s *snapshot, references []configrevision.Reference) (string, error) {
	o, by := r.options.Configuration, r.options.Admission
	switch {
	case by.Configure == "" && by.Mode != "", r.options.NamespacedOnly:
		return "the operator was installed without it; set the values configuration.enabled and clusterObjects.enabled of its chart, or remove the field", nil
	case by.Mode == "":
		return "this cluster does not serve the MutatingAdmissionPolicy that puts the names of copies in pods; set the value admission.mode of the operator's chart to webhook, or remove the field", nil
	case slices.Contains(s.Rollout.Spec.Configuration.Kinds, v1alpha1.ConfigurationConfigMap) && !o.mayRead(s.Rollout.Namespace):
		return fmt.Sprintf("the operator is not allowed to read ConfigMaps in the namespace %q; name it in the value configuration.namespaces of its chart, or remove the field", s.Rollout.Namespace), nil
	case len(references) > configrevision.MaxReferences:
		return fmt.Sprintf("the template refers to %d objects, and at most %d can be kept; name some under except", len(references), configrevision.MaxReferences), nil
	case slices.Contains(s.Rollout.Spec.Configuration.Kinds, v1alpha1.ConfigurationSecret) && !slices.Contains(o.SecretNamespaces, s.Rollout.Namespace):
		return fmt.Sprintf("the operator is not allowed to read Secrets in the namespace %q; name it in the value configuration.secretNamespaces of its chart, or leave Secret out of kinds", s.Rollout.Namespace), nil
	}
	inForce, err := r.inForce(ctx, s, by.Configure)
	if err != nil || inForce {
		return "", err
	}
	return fmt.Sprintf("the admission policy or webhook %q, which puts the names of copies in pods, is not in force; set the value configuration.enabled of the operator's chart, or remove the field", by.Configure), nil
}

// observeContent finds out what the copy of the present content is called.
func (r *Reconciler) observeContent(ctx context.Context, s *snapshot, ref configrevision.Reference) error {
	meta, err := r.metadata(ctx, ref.Kind, types.NamespacedName{Namespace: s.Rollout.Namespace, Name: ref.Name})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s %q could not be read: %w", ref.Kind, ref.Name, err)
	}
	defer func() {
		if at := r.contents.ChangedAt(meta); at.After(s.Configuration.ChangedAt) {
			s.Configuration.ChangedAt = at
		}
	}()
	if digest, known := r.contents.Digest(meta); known {
		s.contentIs(ref, digest)
		return nil
	}
	object, err := r.read(ctx, s, ref)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	digest := digestOf(object)
	r.contents.Learn(object, digest, s.Now)
	s.contentIs(ref, digest)
	return nil
}

// contentIs notes a digest; "" is a content that can't be kept.
func (s *snapshot) contentIs(ref configrevision.Reference, digest string) {
	if digest != "" {
		s.present[ref] = configrevision.CopyName(ref.Name, s.deployment.UID, digest)
	}
}

func digestOf(object client.Object) string {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		return configrevision.DigestConfigMap(o)
	case *corev1.Secret:
		if configrevision.Keepable(o) {
			return configrevision.DigestSecret(o)
		}
	}
	return ""
}

// read reads a content from the API server, so that it is never held for longer
// than one look.
func (r *Reconciler) read(ctx context.Context, s *snapshot, ref configrevision.Reference) (client.Object, error) {
	object := holder(ref.Kind, metav1.ObjectMeta{})
	err := r.options.Configuration.Reader.Get(ctx, types.NamespacedName{Namespace: s.Rollout.Namespace, Name: ref.Name}, object)
	if err != nil {
		return nil, fmt.Errorf("%s %q could not be read: %w", ref.Kind, ref.Name, err)
	}
	return object, nil
}

func partial(kind v1alpha1.ConfigurationKind) *metav1.PartialObjectMetadata {
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind)))
	return meta
}

// metadata reads from a cache, which begins to watch a place when it is first read.
func (r *Reconciler) metadata(ctx context.Context, kind v1alpha1.ConfigurationKind, key types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	cached, err := r.contents.Watch(ctx, contents.Place{Kind: kind, Namespace: key.Namespace})
	if err != nil {
		return nil, err
	}
	meta := partial(kind)
	return meta, cached.Get(ctx, key, meta)
}

// copies are those that were made for the Deployment.
func (r *Reconciler) copies(ctx context.Context, s *snapshot, kinds []v1alpha1.ConfigurationKind) (out []configrevision.Copy, err error) {
	for _, kind := range kinds {
		cached, err := r.contents.Watch(ctx, contents.Place{Kind: kind, Namespace: s.Rollout.Namespace})
		if err != nil {
			return nil, err
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(string(kind) + "List"))
		err = cached.List(ctx, list, client.InNamespace(s.Rollout.Namespace),
			client.MatchingLabels{v1alpha1.LabelRole: v1alpha1.RoleConfiguration})
		if err != nil {
			return nil, fmt.Errorf("objects of kind %s could not be listed: %w", kind, err)
		}
		for i := range list.Items {
			if o := &list.Items[i]; o.DeletionTimestamp.IsZero() && (ownedBy(o, s.deployment.UID) || lostOwner(o, s.Rollout)) {
				out = append(out, configrevision.Copy{Kind: kind, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion})
			}
		}
	}
	return out, nil
}

func ownedBy(o metav1.Object, uid types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// lostOwner reports whether a copy was made for the Rollout and belongs to nothing, as after the restore
// of a backup.
func lostOwner(copied metav1.Object, ro *v1alpha1.Rollout) bool {
	return len(copied.GetOwnerReferences()) == 0 && copied.GetLabels()[v1alpha1.LabelRollout] == ro.Name
}

// uncached keeps the client from watching whole objects for the sake of its own
// writes: of ConfigMaps and Secrets only the metadata are held in memory.
const uncached = client.DisableReadYourWritesConsistency

// applyConfiguration carries out what concerns contents.
func (r *Reconciler) applyConfiguration(ctx context.Context, s snapshot, action kit.Action) error {
	switch a := action.(type) {
	case state.KeepContent:
		return r.keepContent(ctx, s, configrevision.Reference{Kind: a.Kind, Name: a.Name})
	case state.SetConfiguration:
		return r.setConfiguration(ctx, s, a.Value)
	case state.DropContent:
		return r.writer(s).Delete(ctx, a.Object, holder(a.Kind, named(s, a.Name)), uncached)
	}
	return fmt.Errorf("%w: %T", shell.ErrUnknownAction, action)
}

// holder is an object of a kind that holds configuration.
func holder(kind v1alpha1.ConfigurationKind, meta metav1.ObjectMeta) client.Object {
	if kind == v1alpha1.ConfigurationSecret {
		return &corev1.Secret{ObjectMeta: meta}
	}
	return &corev1.ConfigMap{ObjectMeta: meta}
}

var errChangedAgain = errors.New("its content has changed again")

// keepContent copies the very content that was decided about.
func (r *Reconciler) keepContent(ctx context.Context, s snapshot, ref configrevision.Reference) error {
	source, err := r.read(ctx, &s, ref)
	if err != nil {
		return err
	}
	owner := configrevision.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: s.deployment.Name, UID: s.deployment.UID}
	var kept client.Object
	switch o := source.(type) {
	case *corev1.ConfigMap:
		kept = configrevision.MakeConfigMap(o, s.Rollout.Name, owner)
	case *corev1.Secret:
		kept = configrevision.MakeSecret(o, s.Rollout.Name, owner)
	}
	if kept.GetName() != s.present[ref] {
		return apierrors.NewConflict(corev1.Resource(string(ref.Kind)), ref.Name, errChangedAgain)
	}
	err = r.client.Create(ctx, kept, client.FieldOwner(v1alpha1.FieldManager), uncached)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Most likely the cache has not shown it yet.
	if err := r.options.Configuration.Reader.Get(ctx, client.ObjectKeyFromObject(kept), kept); err != nil {
		return fmt.Errorf("%s %q could not be read: %w", ref.Kind, kept.GetName(), err)
	}
	if ownedBy(kept, s.deployment.UID) && kept.GetLabels()[v1alpha1.LabelRole] == v1alpha1.RoleConfiguration {
		return nil
	}
	return fmt.Errorf("a %s %q that Serin did not make has the name that the copy needs; delete it: %w", ref.Kind, kept.GetName(), err)
}

// setConfiguration changes the very template that was seen. It removes any client's
// annotation too, which an apply of Serin's own fields could not.
func (r *Reconciler) setConfiguration(ctx context.Context, s snapshot, value string) error {
	annotations := map[string]any{v1alpha1.AnnotationConfiguration: value}
	if value == "" {
		annotations[v1alpha1.AnnotationConfiguration] = nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.deployment.UID, "resourceVersion": s.deployment.ResourceVersion},
		"spec":     map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": annotations}}},
	})
	if err != nil {
		return fmt.Errorf("encode the patch: %w", err)
	}
	d := &appsv1.Deployment{ObjectMeta: named(s, s.deployment.Name)}
	return r.client.Patch(ctx, d, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.FieldManager+"-configuration"))
}
