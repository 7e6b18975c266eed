// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
	"sigs.k8s.io/yaml"
)

// settings are entries of argocd-cm.
type settings map[string]string

func readSettings(t *testing.T, file string) settings {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "config", "gitops", file))
	if err != nil {
		t.Fatal(err)
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &cm); err != nil {
		t.Fatal(err)
	}
	if cm.Name != "argocd-cm" {
		t.Fatalf("%s is the ConfigMap %q; Argo CD reads argocd-cm", file, cm.Name)
	}
	return cm.Data
}

// keyOf is how Argo CD names a kind in keys of argocd-cm.
func keyOf(o *unstructured.Unstructured) string {
	return o.GroupVersionKind().Group + "_" + o.GetKind()
}

type health struct{ Status, Message string }

func (s settings) health(t *testing.T, o *unstructured.Unstructured) health {
	t.Helper()
	script := s["resource.customizations.health."+keyOf(o)]
	if script == "" {
		t.Fatalf("no health rule for %s", keyOf(o))
	}
	var h health
	runLua(t, script, o, &h)
	switch h.Status {
	case "Healthy", "Progressing", "Suspended", "Degraded":
	default:
		t.Fatalf("Argo CD knows no health %q", h.Status)
	}
	return h
}

// actions is the form of resource.customizations.actions.
type actions struct {
	Discovery   string `json:"discovery.lua"`
	Definitions []struct {
		Name   string `json:"name"`
		Action string `json:"action.lua"`
	} `json:"definitions"`
}

func (s settings) actions(t *testing.T, o *unstructured.Unstructured) actions {
	t.Helper()
	var a actions
	if err := yaml.UnmarshalStrict([]byte(s["resource.customizations.actions."+keyOf(o)]), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

// offered are the actions that a user of Argo CD may choose.
func (a actions) offered(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	var out json.RawMessage
	runLua(t, a.Discovery, o, &out)
	offered := map[string]any{}
	if bytes.Equal(out, []byte("[]")) { // an empty table
		return offered
	}
	if err := json.Unmarshal(out, &offered); err != nil {
		t.Fatal(err)
	}
	return offered
}

// do is the object that an action makes of another.
func (a actions) do(t *testing.T, action string, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, d := range a.Definitions {
		if d.Name == action {
			out := map[string]any{}
			runLua(t, d.Action, o, &out)
			return &unstructured.Unstructured{Object: cleaned(out, o.Object)}
		}
	}
	t.Fatalf("the action %q has no definition", action)
	return nil
}

// runLua runs a script as Argo CD does: with the libraries base, table, package, and of os
// nothing but the time. What the script returns is read into out.
func runLua(t *testing.T, script string, o *unstructured.Unstructured, out any) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.OsLibName: openTime,
	} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	l.SetGlobal("obj", luaValue(l, o.Object))
	if err := l.DoString(script); err != nil {
		t.Fatal(err)
	}
	if l.Get(-1).Type() != lua.LTTable {
		t.Fatalf("the script returns a %s; Argo CD wants a table", l.Get(-1).Type())
	}
	text, err := luajson.Encode(l.Get(-1))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// openTime is what Argo CD leaves of the library os. The hour is always the same.
func openTime(l *lua.LState) int {
	l.Push(l.RegisterModule(lua.OsLibName, map[string]lua.LGFunction{
		"date": func(l *lua.LState) int {
			if f := l.CheckString(1); f != "!%Y-%m-%dT%H:%M:%SZ" {
				l.ArgError(1, "this test does not know the format "+f)
			}
			l.Push(lua.LString(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Format(time.RFC3339)))
			return 1
		},
	}))
	return 1
}

func luaValue(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case bool:
		return lua.LBool(v)
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case int64:
		return lua.LNumber(v)
	case []any:
		list := l.CreateTable(len(v), 0)
		for _, item := range v {
			list.Append(luaValue(l, item))
		}
		return list
	case map[string]any:
		table := l.CreateTable(0, len(v))
		for key, item := range v {
			table.RawSetH(lua.LString(key), luaValue(l, item))
		}
		return table
	}
	return lua.LNil
}
