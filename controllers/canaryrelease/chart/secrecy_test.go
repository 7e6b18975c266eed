// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

const hidden = "sw0rdfish"

func TestValuesAppearInNoError(t *testing.T) {
	w := newWorld()
	c := load(t, "shop")
	for _, f := range c.Raw {
		if f.Name == "values.yaml" {
			f.Data = []byte("web: {tag: " + hidden + "}\nredis: {tag: '7'}\n")
		}
	}
	w.install(t, "shop", map[string]any{"greeting": hidden})
	w.pack(t, c)
	for _, config := range []string{
		hidden, "[" + hidden + "]", "{a: " + hidden, "a: !!int " + hidden, "a: &a " + hidden + "\nb: *c", "\t" + hidden,
		"a: 1\n" + hidden + ": 1\n" + hidden + ": 2", "{web: " + hidden + "}", "{web: {tag: {a: " + hidden + "}}}", "{web: {replicas: " + hidden + "}}",
		"{web: {tag: '" + strings.ToUpper(hidden) + "'}}", "{redis: {replicas: {a: " + hidden + "}}}", "{greeting: \"" + hidden + "\\n\\t- [\"}",
		"{redis: {tag: \"a\\n  - [ " + hidden + "\"}}", "{web: null}", "{redis: {tag: '', password: " + hidden + "}}",
		"{web: {tag: b, password: " + hidden + "}}",
	} {
		p, err := w.helm().Propose(t.Context(), ask("shop", "", config))
		text := fmt.Sprint(err, p.Refused, p.Later, p.Digest)
		var textSb46 strings.Builder
		for _, copied := range p.Copies {
			textSb46.WriteString(copied.GetName())
		}
		text += textSb46.String()
		if strings.Contains(strings.ToLower(text), hidden) {
			t.Errorf("config %q is shown: %s", config, text)
		}
		if err := w.helm().Adopt(t.Context(), ask("shop", "", config+"\n---\n"+config)); err == nil || strings.Contains(strings.ToLower(err.Error()), hidden) {
			t.Errorf("config %q twice: %v", config, err)
		}
	}
}

func FuzzConfig(f *testing.F) {
	w := newWorld()
	w.install(f, "shop", map[string]any{})
	w.pack(f, load(f, "shop"))
	for _, seed := range [][2]string{{"tag: §", "web"}, {"[§", ""}, {"a: {§: §}", "redis/"}, {"---\n§", "/"}, {"web: {replicas: §}", ""}, {"&a [*a, §]", "web/web"}} {
		f.Add([]byte(seed[0]), seed[1])
	}
	f.Fuzz(func(t *testing.T, config []byte, path string) {
		// What stands for a value is nothing that the texts themselves have.
		secretive := bytes.ReplaceAll(config, []byte("§"), []byte(hidden))
		q := ask("shop", path, "")
		q.Config = secretive
		p, err := w.helm().Propose(t.Context(), q)
		if text := fmt.Sprint(err, p.Refused, p.Later, p.Digest); strings.Contains(text, hidden) && !keyed(secretive) {
			t.Errorf("config %q at %q is shown: %s", secretive, path, text)
		}
	})
}

// keyed tells that the secret is, or may be, the name of a value and no value: names are shown.
func keyed(config []byte) bool {
	for _, part := range bytes.Split(config, []byte(hidden))[1:] {
		if rest := bytes.TrimLeft(part, "\"' \t\r\n"); bytes.HasPrefix(rest, []byte(":")) || bytes.Contains(config, []byte("?")) {
			return true
		}
	}
	return false
}
