// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// as is a client that impersonates a user.
func as(t *testing.T, user string) client.Client {
	t.Helper()
	cfg := rest.CopyConfig(plane.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groupsOf(user)}
	c, err := client.New(cfg, client.Options{Scheme: admin.Scheme(), Mapper: admin.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// groupsOf are those that the API server puts a user into.
func groupsOf(user string) []string {
	groups := []string{"system:authenticated"}
	if namespace, _, err := serviceaccount.SplitUsername(user); err == nil {
		groups = append(groups, serviceaccount.MakeGroupNames(namespace)...)
	}
	return groups
}

func user(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
}

func (s *scene) bindClusterRole(name, role string) {
	s.Helper()
	b := &rbacv1.RoleBinding{Subjects: user(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
	b.GenerateName = role + "-"
	s.create(b)
}

// allow gives rules in the namespace to a user.
func (s *scene) allow(name string, rules ...rbacv1.PolicyRule) {
	s.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{GenerateName: name + "-"}, Rules: rules}
	s.create(role)
	s.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: user(name),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	})
}

// promote is the rule that the message of a refusal asks for.
func promote(names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"serin.dev"}, Resources: []string{"rollouts"}, ResourceNames: names, Verbs: []string{"promote"}}
}

// may is a right over a resource of Serin or of the core group, such as
// "canaryreleases/status", or over one object of it.
type may struct{ verb, resource, name string }

// allowed asks the API server's authorizer; namespace is empty for all of them.
func allowed(ctx context.Context, user, namespace string, m may) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, Groups: []string{"system:authenticated"},
		ResourceAttributes: m.attributes(namespace),
	}}
	err := admin.Create(ctx, review)
	return review.Status.Allowed, err
}

// attributes are what the authorizer is asked.
func (m may) attributes(namespace string) *authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(m.resource, "/")
	group, version := "serin.dev", "v1alpha1"
	if resource == "serviceaccounts" || resource == "secrets" {
		group, version = "", "v1"
	}
	return &authorizationv1.ResourceAttributes{
		Namespace: namespace, Group: group, Version: version, Verb: m.verb, Resource: resource, Subresource: sub, Name: m.name,
	}
}

// waitRights waits until the API server has taken notice of roles and bindings.
func (s *scene) waitRights(user string, rights ...may) {
	s.Helper()
	for _, m := range rights {
		err := wait.PollUntilContextTimeout(s.Context(), 20*time.Millisecond, neverAfter, true, func(ctx context.Context) (bool, error) {
			return allowed(ctx, user, s.namespace, m)
		})
		if err != nil {
			s.Fatalf("%s may never %v: %v", user, m, err)
		}
	}
}

func TestRolesOfTheClusterGiveWhatIsFitOverReleases(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, role := range []string{"view", "edit", "admin", release + "-promoter"} {
		s.bindClusterRole(role, role)
		s.waitRights(role, may{"get", "rollouts", ""})
	}
	s.waitRights("edit", may{"patch", "rollouts", ""})
	s.waitRights("admin", may{"promote", "rollouts", ""})
	for _, test := range []struct {
		verb, resource string
		want           []string
	}{
		{"watch", "rollouts", []string{"view", "edit", "admin", release + "-promoter"}},
		{"update", "rollouts", []string{"edit", "admin"}},
		{"delete", "rollouts", []string{"edit", "admin"}},
		{"patch", "rollouts", []string{"edit", "admin", release + "-promoter"}},
		{"promote", "rollouts", []string{"admin", release + "-promoter"}},
		{"watch", "canaryreleases", []string{"view", "edit", "admin", release + "-promoter"}},
		{"create", "canaryreleases", []string{"edit", "admin"}},
		{"patch", "canaryreleases", []string{"edit", "admin", release + "-promoter"}},
		{"update", "canaryreleases", []string{"edit", "admin"}},
		{"promote", "canaryreleases", []string{"admin", release + "-promoter"}},
		{"delete", "canaryreleases", []string{"edit", "admin"}},
		{"update", "canaryreleases/status", nil},
		{"create", "freezes", nil},
	} {
		for _, role := range []string{"view", "edit", "admin", release + "-promoter"} {
			got, err := allowed(t.Context(), role, s.namespace, may{test.verb, test.resource, ""})
			if want := slices.Contains(test.want, role); err != nil || got != want {
				t.Errorf("%s may %s %s: %v, want %v (%v)", role, test.verb, test.resource, got, want, err)
			}
		}
	}
}

func TestTheManagerMayServeCanaryReleasesAndReadsNoSecretForThem(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	manager := "system:serviceaccount:" + operatorSpace + ":" + release
	s.waitRights(manager, may{"list", "canaryreleases", ""})
	for m, want := range map[may]bool{
		{"get", "canaryreleases", ""}:                    true,
		{"watch", "canaryreleases", ""}:                  true,
		{"patch", "canaryreleases", ""}:                  true,
		{"update", "canaryreleases/status", ""}:          true,
		{"create", "canaryreleases", ""}:                 false,
		{"update", "canaryreleases", ""}:                 false,
		{"delete", "canaryreleases", ""}:                 false,
		{"impersonate", "serviceaccounts", helmAccount}:  true,
		{"impersonate", "serviceaccounts", "default"}:    false,
		{"get", "secrets", ""}:                           false,
		{"list", "secrets", ""}:                          false,
		{"create", "serviceaccounts/token", helmAccount}: false,
		{"deletecollection", "canaryreleases", ""}:       false,
	} {
		if got, err := allowed(t.Context(), manager, s.namespace, m); err != nil || got != want {
			t.Errorf("the manager may %s %s %q: %v, want %v (%v)", m.verb, m.resource, m.name, got, want, err)
		}
	}
}

func TestFreezesAreWrittenByThePlatformTeamAndReadByWhoeverMayViewTheCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for name, role := range map[string]string{
		"viewer-of-all": "view", "editor-of-all": "edit", "admin-of-all": "admin",
		"developer": release + "-freeze-viewer", "platform": release + "-freezer",
	} {
		b := &rbacv1.ClusterRoleBinding{Subjects: user(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}}
		b.GenerateName = name + "-"
		if err := admin.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := admin.Delete(context.WithoutCancel(t.Context()), b); err != nil {
				t.Error(err)
			}
		})
		s.waitRights(name, may{"list", "freezes", ""})
		for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
			got, err := allowed(t.Context(), name, "", may{verb, "freezes", ""})
			if want := name == "platform"; err != nil || got != want {
				t.Errorf("%s may %s freezes: %v, want %v (%v)", name, verb, got, want, err)
			}
		}
	}
}
