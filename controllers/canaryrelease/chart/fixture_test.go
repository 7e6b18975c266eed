// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/kube"
	kubefake "helm.sh/helm/v4/pkg/kube/fake"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

const namespace = "shop"

// world is a namespace with Helm's records in it. What Helm applies goes nowhere.
type world struct {
	client *fake.Clientset
	kube   *kubefake.FailingKubeClient
	lookup *dynamicfake.FakeDynamicClient
	// trouble is what the guard would have noted.
	trouble error
}

func newWorld(objects ...runtime.Object) *world {
	return &world{
		client: fake.NewClientset(objects...),
		kube:   &kubefake.FailingKubeClient{PrintingKubeClient: kubefake.PrintingKubeClient{Out: discard{}}},
		lookup: dynamicfake.NewSimpleDynamicClient(clientgoscheme.Scheme, objects...),
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func (w *world) session() *session {
	return &session{
		namespace: namespace, client: w.client, kubeClient: w.kube, lookups: w,
		labels: func(ctx context.Context, selector string) ([]metav1.ObjectMeta, error) {
			list, err := w.client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			if err != nil {
				return nil, err
			}
			var all []metav1.ObjectMeta
			for i := range list.Items {
				all = append(all, list.Items[i].ObjectMeta)
			}
			return all, nil
		},
		capabilities: func() (*common.Capabilities, error) { return common.DefaultCapabilities, nil },
		trouble:      func() error { return w.trouble },
	}
}

func (w *world) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	if apiVersion != "v1" || kind != "Secret" {
		return nil, false, errors.New("no such kind")
	}
	return w.lookup.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}), true, nil
}

func (w *world) helm() *Helm {
	return &Helm{open: func(context.Context, string, bool) (*session, error) { return w.session(), nil }}
}

// state is what the controller knows of a release.
func (w *world) state(t testing.TB, name string) (Release, error) {
	t.Helper()
	return releases.State(t.Context(), w.session().labels, name)
}

func load(t testing.TB, name string) *chartv2.Chart {
	t.Helper()
	c, err := loader.LoadDir("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) configuration(t testing.TB) *action.Configuration {
	t.Helper()
	c, err := w.session().configuration(driver.NewSecrets(w.client.CoreV1().Secrets(namespace)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// install makes revision 1 as helm install would.
func (w *world) install(t testing.TB, name string, values map[string]any) {
	t.Helper()
	in := action.NewInstall(w.configuration(t))
	in.ReleaseName, in.Namespace, in.WaitStrategy = name, namespace, kube.HookOnlyStrategy
	in.SkipSchemaValidation, in.SkipCRDs = true, true // a schema of the charts refers to a URL
	if _, err := in.Run(load(t, name), values); err != nil {
		t.Fatal(err)
	}
}

// upgrade makes the next revision as a user would.
func (w *world) upgrade(t testing.TB, name string, values map[string]any) {
	t.Helper()
	up := action.NewUpgrade(w.configuration(t))
	up.Namespace, up.WaitStrategy, up.SkipSchemaValidation = namespace, kube.HookOnlyStrategy, true
	if _, err := up.Run(name, load(t, name), values); err != nil {
		t.Fatal(err)
	}
}

// pack puts the archive of a chart where its release looks for it.
func (w *world) pack(t testing.TB, c *chartv2.Chart) {
	t.Helper()
	file, err := chartutil.Save(c, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.archive(t, "shop", archive)
}

func (w *world) archive(t testing.TB, name string, archive []byte) {
	t.Helper()
	configMaps := w.client.CoreV1().ConfigMaps(namespace)
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ArchiveName(name)}, BinaryData: map[string][]byte{"chart.tgz": archive}}
	if _, err := configMaps.Create(t.Context(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// stored is one revision as Helm reads it.
func (w *world) stored(t testing.TB, name string, revision int) *helm.Release {
	t.Helper()
	r, err := driver.NewSecrets(w.client.CoreV1().Secrets(namespace)).Get(recordName(name, revision))
	if err != nil {
		t.Fatal(err)
	}
	return r.(*helm.Release)
}

// mark sets the status of a revision, as a crash or a user leaves it.
func (w *world) mark(t testing.TB, name string, revision int, status string) {
	t.Helper()
	r := w.stored(t, name, revision)
	r.Info.Status = statusOf(status)
	if err := driver.NewSecrets(w.client.CoreV1().Secrets(namespace)).Update(recordName(name, revision), r); err != nil {
		t.Fatal(err)
	}
}

func ask(name, path, config string) Request {
	return Request{Namespace: namespace, Release: name, Version: 1, Path: path, Config: []byte(config), UID: "u1", Name: "try"}
}

// zipped is a gzip of that many zeros.
func zipped(t testing.TB, size int) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}
