// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/view"
)

// user is the name under which the cluster knows the viewer; "" where it does not say.
func (v *Viewer) user(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := v.API.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// allowed asks the cluster whether the viewer has a right.
func (v *Viewer) allowed(ctx context.Context, verb string, of authorizationv1.ResourceAttributes) (bool, error) {
	of.Verb = verb
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &of}}
	err := v.API.Create(ctx, review)
	return review.Status.Allowed, err
}

// canaryRights asks the cluster what the viewer may do about a CanaryRelease.
func (v *Viewer) canaryRights(ctx context.Context, cr *v1alpha1.CanaryRelease) (view.Rights, error) {
	rights := view.Rights{User: v.user(ctx)}
	of := authorizationv1.ResourceAttributes{Namespace: cr.Namespace, Group: v1alpha1.GroupVersion.Group, Resource: "canaryreleases", Name: cr.Name}
	promote, err := v.allowed(ctx, "promote", of)
	if err == nil {
		rights.Promote = promote
		rights.Patch, err = v.allowed(ctx, "patch", of)
	}
	rights.Unknown = err != nil
	return rights, err
}

// rights asks the cluster what the viewer may do about a Rollout.
func (v *Viewer) rights(ctx context.Context, ro *v1alpha1.Rollout) (view.Rights, error) {
	rights := view.Rights{User: v.user(ctx)}
	rollout := authorizationv1.ResourceAttributes{Namespace: ro.Namespace, Group: v1alpha1.GroupVersion.Group, Resource: "rollouts", Name: ro.Name}
	apps := authorizationv1.ResourceAttributes{Namespace: ro.Namespace, Group: "apps"}
	for _, ask := range []struct {
		verb, resource string
		of             authorizationv1.ResourceAttributes
		answer         *bool
	}{
		{"promote", "rollouts", rollout, &rights.Promote},
		{"patch", "rollouts", rollout, &rights.Patch},
		{"update", "rollouts", rollout, &rights.Update},
		{"patch", "deployments", apps, &rights.PatchDeployment},
		{"get", "replicasets", apps, &rights.GetReplicaSet},
	} {
		var err error
		ask.of.Resource = ask.resource
		if *ask.answer, err = v.allowed(ctx, ask.verb, ask.of); err != nil {
			rights.Unknown = true
			return rights, err
		}
	}
	return rights, nil
}
