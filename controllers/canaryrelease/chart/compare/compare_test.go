// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// web is a Deployment whose pod template is the given YAML, indented by four.
func web(spec, pods string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
%s
  template:
    metadata: {labels: {app: web}}
    spec:
%s
`, spec, pods)
}

func image(tag string) string { return "      containers: [{name: web, image: web:" + tag + "}]" }

func configMap(data string) string {
	return "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, labels: {chart: shop}}\ndata: {a: '" + data + "'}\n"
}

func secret(data string) string {
	return "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {a: '" + data + "'}\n"
}

const service = "\n---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"

func object(apiVersion, kind, rest string) string {
	return fmt.Sprintf("\n---\napiVersion: %s\nkind: %s\nmetadata: {name: x}\n%s\n", apiVersion, kind, rest)
}

func parse(t *testing.T, manifest string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Parse(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func compareManifests(t *testing.T, now, next, again string) Result {
	t.Helper()
	return Compare(Input{
		Namespace: "shop", Current: parse(t, now), First: parse(t, next), Second: parse(t, again), Key: []byte("key"),
		Claims: map[string][]corev1.PersistentVolumeAccessMode{"one": {corev1.ReadWriteOnce}, "many": {corev1.ReadWriteMany}, "read": {corev1.ReadOnlyMany}},
	})
}

func TestEveryChangeIsACanaryOrLaterOrRefused(t *testing.T) {
	pod := func(image string) string {
		return "spec: {template: {spec: {containers: [{name: a, image: '" + image + "'}]}}}"
	}
	reading := func(tag string) string {
		return "      containers: [{name: web, image: web:" + tag + ", envFrom: [{configMapRef: {name: settings}}, {secretRef: {name: key}}]}]"
	}
	elsewhere := func(object string) string { return strings.Replace(object, "{name: ", "{namespace: other, name: ", 1) }
	other := strings.Replace(web("", reading("1")), "{name: web}", "{name: x}", 1)
	before := web("", image("1"))
	for _, test := range []struct {
		name, now, next string
		// again is the second render, next when it is "".
		again                    string
		canaries, later, refused string
	}{
		{name: "nothing changes", now: before, next: before, refused: "config changes nothing that runs"},
		{name: "the order and style of a manifest is no change", now: before + service, next: service + strings.ReplaceAll(before, "{name: web}", `{"name": "web"}`), refused: "config changes nothing that runs"},
		{name: "a new image is a canary", now: before, next: web("", image("2")), canaries: "web"},
		{name: "replicas are changed by the adoption", now: web("  replicas: 1", image("1")), next: web("  replicas: 2", image("1")), later: "Deployment/web", refused: "config changes no pods of a Deployment, only Deployment/web: upgrade"},
		{name: "replicas beside a new image come later", now: web("  replicas: 1", image("1")), next: web("  replicas: 2", image("2")), canaries: "web", later: "Deployment/web (outside of its template)"},
		{name: "a Deployment that is new or goes comes later", now: before + object("apps/v1", "Deployment", pod("1")), next: web("", image("2")), canaries: "web", later: "Deployment/x (deleted)"},
		{name: "a new Deployment comes later", now: before, next: web("", image("2")) + object("apps/v1", "Deployment", pod("1")), canaries: "web", later: "Deployment/x (new)"},
		{name: "a selector is immutable", now: before, next: strings.ReplaceAll(web("", image("2")), "app: web", "app: www"), refused: "Deployment/web: config changes its spec.selector"},
		{name: "a StatefulSet's pods", now: before + object("apps/v1", "StatefulSet", pod("1")), next: web("", image("2")) + object("apps/v1", "StatefulSet", pod("2")), refused: "StatefulSet/x: config changes its pods, and a StatefulSet has no second set"},
		{name: "a StatefulSet's replicas", now: before + object("apps/v1", "StatefulSet", "spec: {replicas: 1, template: {}}"), next: web("", image("2")) + object("apps/v1", "StatefulSet", "spec: {replicas: 2, template: {}}"), canaries: "web", later: "StatefulSet/x"},
		{name: "a StatefulSet's volumes", now: before + object("apps/v1", "StatefulSet", "spec: {template: {}}"), next: web("", image("2")) + object("apps/v1", "StatefulSet", "spec: {template: {}, volumeClaimTemplates: [{metadata: {name: a}}]}"), refused: "StatefulSet/x: config changes its spec.volumeClaimTemplates"},
		{name: "a StatefulSet's selector", now: before + object("apps/v1", "StatefulSet", "spec: {template: {}, selector: {matchLabels: {a: b}}}"), next: web("", image("2")) + object("apps/v1", "StatefulSet", "spec: {template: {}, selector: {matchLabels: {a: c}}}"), refused: "StatefulSet/x: config changes its spec.selector"},
		{name: "a StatefulSet's Service and order", now: before + object("apps/v1", "StatefulSet", "spec: {template: {}}"), next: web("", image("2")) + object("apps/v1", "StatefulSet", "spec: {template: {}, serviceName: a, podManagementPolicy: Parallel}"), refused: "StatefulSet/x: config changes its spec.podManagementPolicy and spec.serviceName"},
		{name: "a DaemonSet's pods", now: before + object("apps/v1", "DaemonSet", pod("1")), next: web("", image("2")) + object("apps/v1", "DaemonSet", pod("2")), refused: "DaemonSet/x: config changes its pods"},
		{name: "a Job's pods can't be changed", now: before + object("batch/v1", "Job", pod("1")), next: web("", image("2")) + object("batch/v1", "Job", pod("2")), refused: "Job/x: config changes its pods"},
		{name: "a CronJob comes later", now: before + object("batch/v1", "CronJob", "spec: {schedule: a}"), next: web("", image("2")) + object("batch/v1", "CronJob", "spec: {schedule: b}"), canaries: "web", later: "CronJob/x"},
		{name: "a bare Pod comes later", now: before + object("v1", "Pod", "spec: {containers: [{image: a}]}"), next: web("", image("2")) + object("v1", "Pod", "spec: {containers: [{image: b}]}"), canaries: "web", later: "Pod/x"},
		{name: "rights, budgets and objects of the cluster come later", now: before + object("rbac.authorization.k8s.io/v1", "Role", ""), next: web("", image("2")) + object("rbac.authorization.k8s.io/v1", "Role", "rules: []") + object("policy/v1", "PodDisruptionBudget", "") + object("rbac.authorization.k8s.io/v1", "ClusterRole", ""), canaries: "web", later: "ClusterRole/x (new) PodDisruptionBudget/x (new) Role/x"},
		{name: "a Service's ports", now: before + service, next: web("", image("2")) + strings.Replace(service, "80", "81", 1), refused: "Service/web: config changes its spec.ports"},
		{name: "a Service's selector", now: before + service, next: web("", image("2")) + strings.Replace(service, "app: web", "app: www", 1), refused: "Service/web: config changes its spec.selector"},
		{name: "a Service that becomes headless", now: before + service, next: web("", image("2")) + strings.Replace(service, "spec: {", "spec: {clusterIP: None, ", 1), refused: "Service/web: config changes its spec.clusterIP"},
		{name: "a Service's type comes later", now: before + service, next: web("", image("2")) + strings.Replace(service, "spec: {", "spec: {type: NodePort, ", 1), canaries: "web", later: "Service/web"},
		{name: "a Service that goes", now: before + service, next: web("", image("2")), refused: "Service/web would be deleted"},
		{name: "a new Service comes later", now: before, next: web("", image("2")) + service, canaries: "web", later: "Service/web (new)"},
		{name: "a random value in the template", now: before, next: web("", image("2")), again: web("", image("3")), refused: "Deployment/web is rendered differently each time"},
		{name: "a Deployment that is not rendered again", now: before, next: web("", image("2")), again: service, refused: "Deployment/web is rendered differently each time"},
		{name: "a random value that no pod reads", now: before + secret("1"), next: web("", image("2")) + secret("2"), again: web("", image("2")) + secret("3"), canaries: "web", later: "Secret/key"},
		{name: "a random value that a canary reads", now: web("", reading("1")) + secret("1"), next: web("", reading("2")) + secret("2"), again: web("", reading("2")) + secret("3"), refused: "Secret/key, which pods of Deployment/web read, is rendered differently each time"},
		{name: "a random value that other pods read", now: web("", reading("1")) + secret("1"), next: web("", reading("1")) + secret("2"), again: web("", reading("1")) + secret("3"), later: "Deployment/web", refused: "Secret/key, which pods of Deployment/web read, is rendered differently each time"},
		{name: "what pods read changes under them", now: web("", reading("1")) + configMap("1"), next: web("", reading("1")) + configMap("2"), refused: "Deployment/web reads ConfigMap/settings, which config changes, but the pod template stays the same"},
		{name: "labels of a ConfigMap are no content", now: web("", reading("1")) + configMap("1"), next: web("", reading("2")) + strings.Replace(configMap("1"), "shop", "other", 1), canaries: "web", later: "ConfigMap/settings"},
		{name: "a ConfigMap that no pod reads comes later", now: before + configMap("1"), next: web("", image("2")) + configMap("2"), canaries: "web", later: "ConfigMap/settings"},
		{name: "the type of a Secret is content", now: web("", reading("1")) + secret("1"), next: web("", reading("2")) + secret("1") + "type: example.com/key\n", canaries: "web"},
		{name: "a ConfigMap of another namespace is not what pods read", now: web("", reading("1")) + elsewhere(configMap("1")), next: web("", reading("2")) + elsewhere(configMap("2")), canaries: "web", later: "ConfigMap/settings"},
		{name: "pods of another namespace don't read it", now: before + elsewhere(other) + configMap("1"), next: web("", image("2")) + elsewhere(other) + configMap("2"), canaries: "web", later: "ConfigMap/settings"},
		{name: "an immutable ConfigMap", now: before + configMap("1") + "immutable: true\n", next: web("", image("2")) + configMap("2") + "immutable: true\n", refused: "ConfigMap/settings is immutable"},
		{name: "a token of a service account", now: web("", reading("1")), next: web("", reading("2")) + secret("1") + "type: kubernetes.io/service-account-token\n", refused: "Secret/key, which pods of Deployment/web read, is the token"},
		{name: "the network of the node", now: before, next: web("", image("2")+"\n      hostNetwork: true"), refused: "Deployment/web: its pods use the network of their node"},
		{name: "a port of the node", now: before, next: web("", "      containers: [{name: web, ports: [{containerPort: 80, hostPort: 80}]}]"), refused: "Deployment/web: its pods use ports of their node (hostPort 80)"},
		{name: "a port of the node of a container that begins first", now: before, next: web("", image("2")+"\n      initContainers: [{name: log, restartPolicy: Always, ports: [{containerPort: 81, hostPort: 81}]}]"), refused: "Deployment/web: its pods use ports of their node (hostPort 81)"},
		{name: "a port of the pod", now: before, next: web("", "      containers: [{name: web, ports: [{containerPort: 80}]}]"), canaries: "web"},
		{name: "a strategy without two versions at a time", now: before, next: web("  strategy: {type: Recreate}", image("2")), refused: "Deployment/web: its strategy is Recreate"},
		{name: "a claim of one node", now: before, next: web("", image("2")+"\n      volumes: [{name: a, persistentVolumeClaim: {claimName: one}}]"), refused: "Deployment/web: its pods mount PersistentVolumeClaim/one, which only one node"},
		{name: "a claim of many nodes", now: before, next: web("", image("2")+"\n      volumes: [{name: a, persistentVolumeClaim: {claimName: many}}]"), canaries: "web"},
		{name: "a claim that many nodes read", now: before, next: web("", image("2")+"\n      volumes: [{name: a, persistentVolumeClaim: {claimName: read}}]"), canaries: "web"},
		{name: "a claim that is not there", now: before, next: web("", image("2")+"\n      volumes: [{name: a, persistentVolumeClaim: {claimName: none}}]"), refused: "Deployment/web: its pods mount PersistentVolumeClaim/none, which does not exist"},
		{name: "a claim that is new", now: before, next: web("", image("2")+"\n      volumes: [{name: a, persistentVolumeClaim: {claimName: x}}]") + object("v1", "PersistentVolumeClaim", ""), refused: "PersistentVolumeClaim/x, which config adds"},
		{name: "an account that is new", now: before, next: web("", image("2")+"\n      serviceAccountName: x") + object("v1", "ServiceAccount", ""), refused: "Deployment/web: its pods run as ServiceAccount/x, which config adds"},
		{name: "an account that is new, by the old name of its field", now: before, next: web("", image("2")+"\n      serviceAccount: x") + object("v1", "ServiceAccount", ""), refused: "Deployment/web: its pods run as ServiceAccount/x, which config adds"},
		{name: "an account that is there", now: before + object("v1", "ServiceAccount", ""), next: web("", image("2")+"\n      serviceAccountName: x") + object("v1", "ServiceAccount", ""), canaries: "web"},
		{name: "another namespace", now: strings.Replace(before, "{name: web}", "{name: web, namespace: other}", 1), next: strings.Replace(web("", image("2")), "{name: web}", "{name: web, namespace: other}", 1), refused: "Deployment/web is in namespace other"},
		{name: "an object of the wrong type", now: before, next: web("  replicas: many", image("2")), refused: "Deployment/web is not a valid Deployment"},
		{name: "a list of objects", now: "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: x}}]" + before, next: web("", image("2")), canaries: "web", later: "Pod/x (deleted)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.again == "" {
				test.again = test.next
			}
			r := compareManifests(t, test.now, test.next, test.again)
			var canaries []string
			for _, c := range r.Canaries {
				canaries = append(canaries, c.Name)
			}
			if diff := cmp.Diff(test.canaries, strings.Join(canaries, " ")); diff != "" {
				t.Errorf("canaries: %s", diff)
			}
			if got := strings.Join(r.Later, " "); got != test.later && test.refused == "" {
				t.Errorf("later %q, want %q", got, test.later)
			}
			if got := strings.Join(r.Refused, "; "); !strings.Contains(got, test.refused) || (got == "") != (test.refused == "") {
				t.Errorf("refused %q, want %q", got, test.refused)
			}
			if (r.Digest == "") != (test.refused != "") {
				t.Errorf("digest %q", r.Digest)
			}
		})
	}
}

func TestACanaryReadsCopiesWhereverItsTemplateNamesTheOriginal(t *testing.T) {
	pods := func(tag string) string {
		return `      imagePullSecrets: [{name: key}, {name: other}]
      volumes:
      - {name: a, configMap: {name: settings}}
      - {name: b, secret: {secretName: key}}
      - {name: c, projected: {sources: [{configMap: {name: settings}}, {secret: {name: key}}]}}
      - {name: d, csi: {driver: d, nodePublishSecretRef: {name: key}}}
      - {name: e, configMap: {name: unchanged}}
      initContainers: [{name: i, env: [{name: A, valueFrom: {secretKeyRef: {name: key, key: a}}}]}]
      containers: [{name: web, image: "web:` + tag + `", env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}], envFrom: [{secretRef: {name: key}}, {configMapRef: {name: settings}}]}]`
	}
	r := compareManifests(t, web("", pods("1"))+configMap("1"), web("", pods("2"))+configMap("2")+secret("hidden"), web("", pods("2"))+configMap("2")+secret("hidden"))
	if len(r.Refused) > 0 || len(r.Canaries) != 1 || !r.Canaries[0].Rolls || len(r.Copies) != 2 || len(r.Later) != 0 {
		t.Fatalf("%+v", r)
	}
	names := map[string]string{}
	for _, c := range r.Copies {
		names[c.GetKind()] = c.GetName()
		if c.GetNamespace() != "shop" || c.GetLabels() != nil || !strings.Contains(c.GetName(), "-canary-") {
			t.Errorf("copy %s/%s", c.GetNamespace(), c.GetName())
		}
	}
	for _, c := range r.Copies {
		want := map[string]string{configMapKind: "2", secretKind: "aGlkZGVu"}[c.GetKind()]
		if v, _, _ := unstructured.NestedString(c.Object, "data", "a"); v != want {
			t.Errorf("the copy %s holds %q, want %q", c.GetName(), v, want)
		}
	}
	original, err := json.Marshal(parse(t, web("", pods("2")))[0].Object["spec"].(map[string]any)["template"])
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(`ame":"key"`, `ame":"`+names[secretKind]+`"`, `"name":"settings"`, `"name":"`+names[configMapKind]+`"`).Replace(string(original))
	var template corev1.PodTemplateSpec
	if err := json.Unmarshal([]byte(want), &template); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(template, r.Canaries[0].Template); diff != "" {
		t.Error(diff)
	}
}

func TestContentsAreNamedAnewAndCanNotBeTried(t *testing.T) {
	pods := func(tag string) string {
		return "      containers: [{name: web, image: web:" + tag + ", envFrom: [{secretRef: {name: key}}, {configMapRef: {name: settings}}]}]"
	}
	result := func(value, key string) Result {
		next := web("", pods("2")) + secret(value) + configMap(value)
		return Compare(Input{Namespace: "shop", Current: parse(t, web("", pods("1"))), First: parse(t, next), Second: parse(t, next), Key: []byte(key)})
	}
	one, same, other, keyed := result("a", "k"), result("a", "k"), result("b", "k"), result("a", "l")
	if len(one.Copies) != 2 {
		t.Fatalf("%+v", one)
	}
	for i, c := range one.Copies {
		if one.Digest != same.Digest || c.GetName() != same.Copies[i].GetName() {
			t.Errorf("the same content of a %s has two names", c.GetKind())
		}
		for name, r := range map[string]Result{"content": other, "key": keyed} {
			if one.Digest == r.Digest || c.GetName() == r.Copies[i].GetName() {
				t.Errorf("another %s of a %s makes no other name", name, c.GetKind())
			}
		}
	}
}

func TestTheNameOfACopyIsAValidOne(t *testing.T) {
	name, err := copyName(nil, reference{configMapKind, strings.Repeat("a", maxName)}, content{})
	if err != nil || len(name) != maxName || !strings.Contains(name, "a-canary-") {
		t.Errorf("%q, %v", name, err)
	}
}

func TestDeploymentsThatReadTheSameShareACopy(t *testing.T) {
	both := func(tag string) string {
		one := web("", "      containers: [{name: web, image: web:"+tag+", envFrom: [{configMapRef: {name: settings}}]}]")
		return one + strings.Replace(one, "{name: web}", "{name: api}", 1)
	}
	next := both("2") + configMap("2")
	r := compareManifests(t, both("1")+configMap("1"), next, next)
	if len(r.Canaries) != 2 || len(r.Copies) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestPodsThatReadNothingNewStayWhenContentsChange(t *testing.T) {
	r := compareManifests(t, web("", image("1")), web("", image("2")), web("", image("2")))
	if len(r.Canaries) != 1 || r.Canaries[0].Rolls {
		t.Errorf("%+v", r)
	}
}

func TestClaimsOfDeploymentsAreNamed(t *testing.T) {
	mounting := func(kind, claim string) string {
		return object("apps/v1", kind, "spec: {template: {spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: "+claim+"}}]}}}")
	}
	got := Claims(parse(t, mounting("Deployment", "b")+mounting("StatefulSet", "c")+mounting("Deployment", "a")+mounting("Deployment", "b")))
	if diff := cmp.Diff([]string{"a", "b"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTextsShowNoValues(t *testing.T) {
	const hidden = "sw0rdfish"
	next := web("  replicas: "+hidden, image(hidden)) + secret(hidden) + configMap(hidden) + object("apps/v1", "StatefulSet", "spec: "+hidden)
	r := compareManifests(t, web("", image("1"))+object("apps/v1", "StatefulSet", "spec: {}"), next, next)
	if len(r.Refused) == 0 {
		t.Fatal("what is no Deployment is not refused")
	}
	if text := fmt.Sprint(r.Refused, r.Later, r.Digest); strings.Contains(text, hidden) {
		t.Errorf("a value is shown: %s", text)
	}
}

func TestManifestsThatCanNotBeReadAreNamedByPlace(t *testing.T) {
	for name, manifest := range map[string]string{
		"no YAML": "b: [sw0rdfish", "no map": "- sw0rdfish", "not an object": "kind: sw0rdfish",
		"a list of things that are not objects": "kind: List\napiVersion: v1\nitems: [sw0rdfish]",
	} {
		objects, err := Parse(manifest)
		if err == nil {
			t.Errorf("%s is read: %v", name, objects)
		} else if !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "sw0rdfish") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestObjectsHaveAVersionAKindAndAName(t *testing.T) {
	for _, manifest := range []string{"{kind: Pod, metadata: {name: a}}", "{apiVersion: v1, metadata: {name: a}}", "{apiVersion: v1, kind: Pod}"} {
		if objects, err := Parse(manifest); err == nil {
			t.Errorf("%s is read: %v", manifest, objects)
		}
	}
}

func TestMissingObjectsAreNamed(t *testing.T) {
	got := Missing(parse(t, web("", image("1"))+service), parse(t, service), "shop")
	if diff := cmp.Diff([]string{"Deployment/web"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(web("", image("1")), service)
	f.Add("kind: List\napiVersion: v1\nitems: [1]", "---\n---")
	f.Fuzz(func(t *testing.T, now, next string) {
		current, err := Parse(now)
		if err != nil {
			return
		}
		candidate, err := Parse(next)
		if err != nil {
			return
		}
		r := Compare(Input{Namespace: "shop", Current: current, First: candidate, Second: candidate})
		if (len(r.Canaries) == 0) != (len(r.Refused) > 0) {
			t.Errorf("neither canaries nor a reason: %+v", r)
		}
	})
}
