// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"regexp"
	"strings"
)

// text writes nginx's configuration language: simple directives and blocks.
// Names and arguments are this package's own constants or values that were
// checked; quoting is the second line of defence.
type text struct {
	out   []byte
	depth int
}

var plainArgument = regexp.MustCompile(`^[A-Za-z0-9_./:@=*%,+~$\[\]-]+$`)

// quote writes an argument so that nginx's tokenizer reads back exactly one
// token. A $ keeps its meaning: callers pass variables on purpose and no value
// that comes from an API object has one.
func quote(arg string) string {
	if plainArgument.MatchString(arg) {
		return arg
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(arg) + `"`
}

// line writes a simple directive.
func (t *text) line(name string, args ...string) {
	t.start(name, args)
	t.write(";\n")
}

// lines writes directives of one argument each, given as pairs.
func (t *text) lines(pairs ...[2]string) {
	for _, p := range pairs {
		t.line(p[0], p[1])
	}
}

// block writes a block directive; body writes what is inside.
func (t *text) block(name string, args []string, body func()) {
	t.start(name, args)
	t.write(" {\n")
	t.depth++
	body()
	t.depth--
	t.indent()
	t.write("}\n")
}

// entries writes a block whose lines are pairs of a key and a value.
func (t *text) entries(name string, args []string, pairs ...[2]string) {
	t.block(name, args, func() { t.lines(pairs...) })
}

func (t *text) start(name string, args []string) {
	t.indent()
	t.write(quote(name))
	for _, a := range args {
		t.write(" ", quote(a))
	}
}

func (t *text) indent() {
	for range t.depth {
		t.write("    ")
	}
}

func (t *text) write(parts ...string) {
	for _, p := range parts {
		t.out = append(t.out, p...)
	}
}
