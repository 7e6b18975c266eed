// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/serin-dev/serin/analysis/egress"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/notify"
	"github.com/serin-dev/serin/controllers/trafficsplit"
)

// signingObjects are the Secret, the Role and the RoleBinding that the page shows.
func signingObjects(t *testing.T) (secret *corev1.Secret, access []client.Object) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "hooks-and-notifications.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(apiVersion: v1\nkind: Secret.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page shows no Secret")
	}
	secret = &corev1.Secret{}
	role, binding := &rbacv1.Role{}, &rbacv1.RoleBinding{}
	for i, o := range []client.Object{secret, role, binding} {
		if err := yaml.UnmarshalStrict([]byte(strings.Split(string(block[1]), "---\n")[i]), o); err != nil {
			t.Fatal(err)
		}
	}
	return secret, []client.Object{role, binding}
}

// startSender sends under the rights of the chart's service account.
func startSender(t *testing.T) *notify.Sender {
	t.Helper()
	secrets, err := client.New(managerConfig(t), client.Options{Scheme: newScheme()})
	if err != nil {
		t.Fatal(err)
	}
	local := egress.Policy{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	s := notify.New(secrets, local, clock.RealClock{}, notify.Options{
		ServiceAccount: operatorSpace + "/" + release, FirstRetry: 50 * time.Millisecond, MaxRetry: 200 * time.Millisecond,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestASigningKeyIsReadOnlyWhereThePagesRoleAllowsIt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	signatures := make(chan string, 100)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signatures <- r.Header.Get(notify.HeaderSignature)
	}))
	t.Cleanup(endpoint.Close)
	secret, access := signingObjects(t)
	if hosts := secret.Annotations[v1alpha1.AnnotationAllowedHosts]; hosts != "release-tests.ci" {
		t.Errorf("the page's Secret may go to %q", hosts)
	}
	secret.Annotations[v1alpha1.AnnotationAllowedHosts] = "127.0.0.1"
	s.create(secret)
	sender := startSender(t)
	name := types.NamespacedName{Namespace: s.namespace, Name: "website"}
	sender.Send(name, notify.Request{ID: "q", Body: []byte("{}"), Endpoint: v1alpha1.Endpoint{
		URL: endpoint.URL, SigningKeyRef: &v1alpha1.SecretKeyReference{Name: secret.Name, Key: "key"},
	}})
	result := awaitOutcome(t, sender, name, notify.Failed)
	for _, want := range []string{"create a Role in " + s.namespace, "get on the Secret " + secret.Name, operatorSpace + "/" + release} {
		if !strings.Contains(result.Message, want) {
			t.Errorf("%q does not say %q", result.Message, want)
		}
	}
	s.create(access...)
	awaitOutcome(t, sender, name, notify.Delivered)
	if signature := <-signatures; !strings.HasPrefix(signature, "sha256=") || len(signatures) > 0 {
		t.Errorf("signed %q, and %d more", signature, len(signatures))
	}
}

// awaitOutcome waits for a change of the only request.
func awaitOutcome(t *testing.T, s *notify.Sender, name types.NamespacedName, want notify.Outcome) notify.Result {
	t.Helper()
	timeout := time.After(neverAfter)
	for {
		if r := s.Results(name)["q"]; r.Outcome == want {
			return r
		}
		select {
		case <-s.Changed():
		case <-timeout:
			t.Fatalf("not %s: %+v", want, s.Results(name))
		}
	}
}

// The cache keeps little of EndpointSlices; what the policy needs has to be in it.
func TestTheAPIServerIsFoundInTheManagersCache(t *testing.T) {
	t.Parallel()
	// The API server here listens at loopback only, which it does not make known.
	const server = "192.0.2.10"
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceDefault, GenerateName: "kubernetes-", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{server}}},
	}
	if err := admin.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.Delete(context.WithoutCancel(t.Context()), slice); err != nil {
			t.Error(err)
		}
	})
	cached, err := cache.New(plane.Config, cache.Options{Scheme: newScheme(), ByObject: trafficsplit.CacheOptions()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cached.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if !cached.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not start")
	}
	addresses, err := notify.APIServer(cached)(ctx)
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{}
	if err := admin.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, service); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{service.Spec.ClusterIP, server} {
		if !slices.Contains(addresses, netip.MustParseAddr(want)) {
			t.Errorf("%v is without %s", addresses, want)
		}
	}
}
