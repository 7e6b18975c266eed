// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

const account = "serin-canary"

// folder of what is built, which outlives a test.
var folder string

// helm is the program itself, built once, if a test needs it.
var helm = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "serin-helm")
	build := exec.Command("go", "build", "-o", path, "github.com/serin-dev/serin/cmd/serin-helm")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", errors.Join(err, errors.New(string(said)))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "serin-helm"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(status)
}

func helmProgram(t *testing.T) string {
	t.Helper()
	path, err := helm()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// script is a program that stands for Helm.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "serin-helm")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// api stands for an API server that has one Helm release, of a chart of one template.
type api struct {
	*httptest.Server
	mu sync.Mutex
	// users are who made requests.
	users map[string]int
}

const objects = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {tag: "{{ .Values.tag }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:{{ .Values.tag }}", envFrom: [{configMapRef: {name: settings}}, {configMapRef: {name: more, optional: true}}]}]}
`

// newAPI makes an API server whose release has a ConfigMap and a Deployment that reads it. The
// chart renders more than that.
func newAPI(t *testing.T, template string, files ...[]byte) *api {
	t.Helper()
	a := &api{users: map[string]int{}}
	var packed []any
	for i, content := range files {
		packed = append(packed, map[string]any{"name": fmt.Sprint("files/", i), "data": base64.StdEncoding.EncodeToString(content)})
	}
	record := base64.StdEncoding.EncodeToString(zip(t, marshal(t, map[string]any{
		"name": "a", "namespace": "shop", "version": 1, "info": map[string]any{"status": "deployed"}, "manifest": strings.ReplaceAll(objects, "{{ .Values.tag }}", "1"),
		"chart": map[string]any{
			"metadata": map[string]any{"name": "a", "version": "1.0.0", "apiVersion": "v2"},
			"values":   map[string]any{"tag": "1"},
			"templates": []any{map[string]any{
				"name": "templates/web.yaml", "data": base64.StdEncoding.EncodeToString([]byte(objects + "---\n" + template)),
			}},
			"files": packed,
		},
	})))
	answers := map[string]any{
		"/version": map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.0"},
		"/api":     map[string]any{"kind": "APIVersions", "versions": []any{"v1"}},
		"/apis":    map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"/api/v1":  map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{}},
	}
	const record1 = "sh.helm.release.v1.a.v1"
	secret := map[string]any{
		"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"name": record1, "labels": map[string]any{"version": "1", "status": "deployed"}},
		"data": map[string]any{"release": base64.StdEncoding.EncodeToString([]byte(record))},
	}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.users[fmt.Sprint(r.Header.Get("Impersonate-User"), " by ", r.Header.Get("Authorization"))]++
		a.mu.Unlock()
		answer, found := answers[r.URL.Path]
		if filepath.Base(r.URL.Path) == record1 {
			answer, found = secret, true
		}
		w.Header().Set("Content-Type", "application/json")
		if !found {
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
		}
		_, _ = w.Write(marshal(t, answer))
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *api) config() *rest.Config { return &rest.Config{Host: a.URL, BearerToken: "managers"} }

func zip(t *testing.T, plain []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(plain)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return raw
}

// ample limits are met by no program that does not go on for ever, however busy the machine is.
func ample() Limits { return Limits{Memory: memory, Time: 5 * time.Minute, CPU: 5 * time.Minute} }

func ask(namespace string) releases.Request {
	return releases.Request{Namespace: namespace, Release: "a", Version: 1, Config: []byte("tag: '2'"), UID: "u1", Name: "try"}
}
