// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"

	rcommon "helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func statusOf(s string) rcommon.Status { return rcommon.Status(s) }

// outcome is a proposal or its error in one line.
func outcome(p Proposal, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	if len(p.Refused) > 0 {
		return "refused " + strings.Join(p.Refused, "; ")
	}
	var parts []string
	for _, c := range p.Canaries {
		part := "canary " + c.Name + " " + c.Template.Spec.Containers[0].Image
		if c.Rolls {
			part += " rolls"
		}
		parts = append(parts, part)
	}
	for _, c := range p.Copies {
		parts = append(parts, "copy "+c.GetKind())
	}
	if len(p.Later) > 0 {
		parts = append(parts, "later "+strings.Join(p.Later, ", "))
	}
	return strings.Join(parts, "; ")
}

func TestWhatConfigMakesOfAReleaseIsProposed(t *testing.T) {
	for _, test := range []struct{ name, chart, path, config, want string }{
		{name: "a value of a sub-chart", chart: "shop", path: "web", config: "{tag: '2'}", want: "canary shop-web web:2"},
		{name: "a value of an aliased sub-chart", chart: "shop", path: "redis", config: "{tag: '8'}", want: "canary shop-redis redis:8"},
		{name: "the same from the chart above", chart: "shop", path: "", config: "{redis: {tag: '8'}, web: {tag: '2'}}", want: "canary shop-redis redis:8; canary shop-web web:2"},
		{name: "the chart's name is not its alias", chart: "shop", path: "cache", config: "{tag: '8'}", want: "error spec.path: chart shop has no such sub-chart: it has redis, web"},
		{name: "no sub-chart below", chart: "shop", path: "web/more", config: "{tag: '8'}", want: "error spec.path: chart web has no such sub-chart: it has none"},
		{name: "a sub-chart that config disables", chart: "shop", path: "web", config: "{enabled: false}", want: "error spec.path: sub-chart web of chart shop is disabled"},
		{name: "replicas only", chart: "shop", path: "web", config: "{replicas: 3}", want: "refused config changes no pods of a Deployment, only Deployment/shop-web"},
		{name: "a part of the release that goes", chart: "shop", path: "", config: "{redis: {enabled: false}}", want: "refused Service/shop-redis would be deleted"},
		{name: "nothing", chart: "shop", path: "web", config: "{tag: '1'}", want: "refused config changes nothing that runs"},
		{name: "a value that the schema forbids", chart: "shop", path: "web", config: "{replicas: many}", want: "error spec.config: the chart's values.schema.json does not allow the values: shop/web at /replicas is of type string but must be of type integer"},
		{name: "a value that the schema requires", chart: "shop", path: "", config: "{web: {tag: null}}", want: "error spec.config: the chart's values.schema.json does not allow the values: shop/web at / lacks tag"},
		{name: "a value that a template requires", chart: "shop", path: "redis", config: "{tag: ''}", want: "error spec.config: a template of the chart can't be rendered with config (shop/charts/redis/templates/all.yaml, line 12)"},
		{name: "a list", chart: "tcp", config: "[1]", want: "error spec.config: is not a map"},
		{name: "no YAML", chart: "tcp", config: "{a: [", want: "error spec.config: is not valid YAML, or has a key twice (line 1)"},
		{name: "a key twice", chart: "tcp", config: "a: 1\na: 2", want: "error spec.config: is not valid YAML, or has a key twice"},
		{name: "two documents", chart: "tcp", config: "a: 1\n---\nb: 2", want: "error spec.config: has several YAML documents"},
		{name: "a document with its marks", chart: "tcp", config: "---\nmaxmemory: 128mb\n---\n", want: "canary tcp redis:7"},
		{name: "no values", chart: "tcp", config: "", want: "error spec.config: is not a map"},
		{name: "a TCP server", chart: "tcp", config: "maxmemory: 128mb", want: "canary tcp redis:7"},
		{name: "what pods read, with a checksum", chart: "hpa", config: "{color: green}", want: "canary hpa app:1 rolls; copy ConfigMap"},
		{name: "a Secret and an autoscaler", chart: "hpa", config: "{password: new, maximum: 5}", want: "canary hpa app:1 rolls; copy Secret; later HorizontalPodAutoscaler/hpa"},
		{name: "a StatefulSet", chart: "rich", config: "{database: '2'}", want: "refused StatefulSet/rich-db: config changes its pods"},
		{name: "a hook is none of what runs", chart: "rich", config: "{hook: '2'}", want: "refused config changes nothing that runs"},
		{name: "a Deployment beside a hook, a StatefulSet and a kind of its own", chart: "rich", config: "{tag: '2', hook: '2'}", want: "canary rich app:2"},
		{name: "a value of the cluster", chart: "lookup", config: "{tag: '2'}", want: "canary lookup app:2"},
		{name: "a random value", chart: "lookup", config: "{tag: '2', keep: false}", want: "refused Secret/lookup-key, which pods of Deployment/lookup read, is rendered differently each time"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "lookup-key"}, Data: map[string][]byte{"key": []byte("kept")}})
			w.install(t, test.chart, map[string]any{})
			if test.chart == "shop" {
				w.pack(t, load(t, "shop"))
			}
			if got := outcome(w.helm().Propose(t.Context(), ask(test.chart, test.path, test.config))); !strings.HasPrefix(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestAProposalSaysTheSameAgainAlsoAfterTheAdoption(t *testing.T) {
	w := newWorld()
	w.install(t, "hpa", map[string]any{"password": "mine"})
	q := ask("hpa", "", "{color: green}")
	one, err := w.helm().Propose(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.helm().Adopt(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	two, err := w.helm().Propose(t.Context(), q)
	if err != nil || one.Digest == "" || one.Digest != two.Digest || one.Copies[0].GetName() != two.Copies[0].GetName() {
		t.Errorf("%+v\n%+v\n%v", one, two, err)
	}
}

func TestAChartWithSubChartsComesFromAnArchive(t *testing.T) {
	q := ask("shop", "web", "{tag: '2'}")
	other := load(t, "shop")
	other.Templates = other.Templates[:0]
	newer := load(t, "shop")
	newer.Metadata.Version = "1.3.0"
	for _, test := range []struct {
		name string
		pack func(*testing.T, *world)
		want string
	}{
		{name: "none", pack: func(*testing.T, *world) {}, want: "error spec.release: Helm keeps no sub-charts in its records (redis, web): put the archive of chart shop 1.2.0 in a ConfigMap: run helm package, then kubectl create configmap serin-chart-shop --from-file=shop-1.2.0.tgz"},
		{name: "no archive", pack: func(t *testing.T, w *world) { w.archive(t, "shop", []byte("sw0rdfish")) }, want: "error spec.release: ConfigMap serin-chart-shop holds no chart"},
		{name: "another version", pack: func(t *testing.T, w *world) { w.pack(t, newer) }, want: "error spec.release: ConfigMap serin-chart-shop holds chart shop 1.3.0, but revision 1 was made from shop 1.2.0"},
		{name: "other templates", pack: func(t *testing.T, w *world) { w.pack(t, other) }, want: "error spec.release: ConfigMap serin-chart-shop holds other files of chart shop 1.2.0"},
		{name: "the right one", pack: func(t *testing.T, w *world) { w.pack(t, load(t, "shop")) }, want: "canary shop-web web:2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			w.install(t, "shop", map[string]any{})
			test.pack(t, w)
			if got := outcome(w.helm().Propose(t.Context(), q)); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestAChartThatLacksAPartOfWhatRunsIsRefused(t *testing.T) {
	w := newWorld()
	w.install(t, "tcp", map[string]any{})
	secrets := w.client.CoreV1().Secrets(namespace)
	r := w.stored(t, "tcp", 1)
	r.Manifest += "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: more}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n"
	if err := w.configuration(t).Releases.Update(r); err != nil {
		t.Fatal(err)
	}
	got := outcome(w.helm().Propose(t.Context(), ask("tcp", "", "maxmemory: 1mb")))
	if !strings.HasPrefix(got, "error spec.version: the recorded chart no longer makes Service/more of revision 1") {
		t.Error(got)
	}
	if err := secrets.Delete(t.Context(), recordName("tcp", 1), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := outcome(w.helm().Propose(t.Context(), ask("tcp", "", "maxmemory: 1mb"))); !strings.HasPrefix(got, "error spec.version: there is no revision 1") {
		t.Error(got)
	}
}

func TestClaimsAreReadFromTheCluster(t *testing.T) {
	w := newWorld(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}},
	})
	modes, err := w.session().claims(t.Context(), []string{"data", "none"})
	if err != nil || len(modes) != 1 || modes["data"][0] != corev1.ReadWriteMany {
		t.Errorf("%v %v", modes, err)
	}
}

func TestDamagedRecordsAreNamed(t *testing.T) {
	for name, data := range map[string]string{"it is not base64": "%", "it is not the JSON of a release": "c3cwcmRmaXNo", "its gzip is damaged": "H4sIAAAAAAAA/w==", "holds no chart": "e30="} {
		w := newWorld(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: recordName("a", 1)}, Data: map[string][]byte{"release": []byte(data)}})
		_, err := w.helm().Propose(t.Context(), ask("a", "", "a: 1"))
		var invalid InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "sw0rdfish") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNoNameOfAReleaseIsInvalid(t *testing.T) {
	r := newWorld().helm()
	for _, name := range []string{"", "a/b", "A", "a,owner!=helm", strings.Repeat("a", 54)} {
		_, propose := r.Propose(t.Context(), ask(name, "", "a: 1"))
		for what, err := range map[string]error{"propose": propose, "adopt": r.Adopt(t.Context(), ask(name, "", "a: 1"))} {
			if err == nil || err.Error() != "spec.release: is not the name of a Helm release: name one that helm list shows" {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
}
