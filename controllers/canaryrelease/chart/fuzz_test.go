// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// FuzzRecord reads what may lie in a Secret in place of Helm's record.
func FuzzRecord(f *testing.F) {
	for _, seed := range []string{
		`{"info":{"status":"deployed"},"chart":{"metadata":{"name":"a"},"templates":[{"name":"b","data":"Yw=="}]},"manifest":"a: 1"}`,
		`{"info":{},"chart":{"metadata":{"dependencies":[null]},"lock":{"dependencies":[null]}},"hooks":[{"path":"a/charts/b/c"}]}`, `{"chart":null}`, `[]`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, plain []byte, zip bool) {
		packed := plain
		if zip {
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			if _, err := w.Write(plain); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			packed = b.Bytes()
		}
		release, err := unpack([]byte(base64.StdEncoding.EncodeToString(packed)))
		if err == nil {
			_ = recordedSubCharts(release)
		}
		_, _ = unpack(packed)
	})
}

// FuzzArchive reads what may lie in a ConfigMap in place of a chart's archive.
func FuzzArchive(f *testing.F) {
	limitArchives()
	w := newWorld()
	w.install(f, "shop", nil)
	release := w.stored(f, "shop", 1)
	file, err := chartutil.Save(load(f, "shop"), f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(archive)
	f.Add(archive[:len(archive)/2])
	f.Add(zipped(f, 1<<20))
	f.Fuzz(func(t *testing.T, packed []byte) {
		source, err := checked(packed, "a", release)
		if err != nil {
			return
		}
		if _, err := source(); err != nil {
			t.Errorf("an archive that was checked can't be read: %v", err)
		}
	})
}

// FuzzTemplate renders what a tenant writes. What can harm by its size is stopped by the limits
// of the process and not here.
func FuzzTemplate(f *testing.F) {
	w := newWorld()
	w.install(f, "tcp", nil)
	for _, seed := range []string{`{{ .Values.a }}`, `{{ include "a" . }}`, `a: &b [*b]`, "kind: List\nitems: [null]", `{{ lookup "v1" "Secret" "" "a" }}`, "---\n---"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, template string) {
		for _, loops := range []string{"range", "repeat", "until", "seq", "include", "template", "rand", "gen", "derive", "crypt", "indent", "print"} {
			if strings.Contains(template, loops) {
				return
			}
		}
		c := load(t, "tcp")
		c.Templates = append(c.Templates, &common.File{Name: "templates/fuzz.yaml", Data: []byte(template)})
		r := &rendering{session: w.session(), release: "tcp", revision: 2, capabilities: common.DefaultCapabilities}
		_, _ = r.render(c, map[string]any{"a": "b"}, nil)
	})
}
