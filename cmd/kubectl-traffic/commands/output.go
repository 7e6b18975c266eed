// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
)

// Forms of output.
const (
	asTable = ""
	asWide  = "wide"
	asName  = "name"
	asJSON  = "json"
	asYAML  = "yaml"
)

// output is the flag -o.
type output struct {
	form  string
	forms []string
}

func addOutput(cmd *cobra.Command, forms ...string) *output {
	o := &output{forms: forms}
	cmd.Flags().StringVarP(&o.form, "output", "o", "", "output format: "+strings.Join(forms, "|"))
	complete(cmd, "output", fixed(forms...))
	return o
}

func (o *output) check() error {
	if o.form != "" && !slices.Contains(o.forms, o.form) {
		return usageErrorf("--output: %q is none of %s", o.form, strings.Join(o.forms, ", "))
	}
	return nil
}

// object is whether the output is the object itself.
func (o *output) object() bool { return o.form == asJSON || o.form == asYAML || o.form == asName }

// print prints an object as JSON, as YAML or by its name, and a list by the names of what
// it holds.
func (o *output) print(out io.Writer, scheme *runtime.Scheme, object runtime.Object) error {
	if o.form == asName && meta.IsListType(object) {
		return meta.EachListItem(object, func(item runtime.Object) error { return o.print(out, scheme, item) })
	}
	var printer printers.ResourcePrinter = &printers.JSONPrinter{}
	switch o.form {
	case asYAML:
		printer = &printers.YAMLPrinter{}
	case asName:
		printer = &printers.NamePrinter{}
	}
	return printers.NewTypeSetter(scheme).ToPrinter(printer).PrintObj(object, out)
}

// column of a table. One that is wide is shown with -o wide only.
type column struct {
	name string
	wide bool
}

func columns(names ...string) []column {
	list := make([]column, 0, len(names))
	for _, name := range names {
		list = append(list, column{name: name})
	}
	return list
}

func wide(names ...string) []column {
	list := columns(names...)
	for i := range list {
		list[i].wide = true
	}
	return list
}

// table prints rows below each other. What the server has sent stays within its cell.
func (o *output) table(out io.Writer, heads []column, rows [][]string) error {
	t := &metav1.Table{}
	for _, h := range heads {
		d := metav1.TableColumnDefinition{Name: h.name, Type: "string"}
		if h.wide {
			d.Priority = 1
		}
		t.ColumnDefinitions = append(t.ColumnDefinitions, d)
	}
	for _, row := range rows {
		cells := make([]any, len(row))
		for i, cell := range row {
			cells[i] = oneLine(cell)
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: o.form == asWide}).PrintObj(t, out)
}

// oneLine keeps text of the server from forging rows and columns.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// orNone shows that a cell is empty on purpose.
func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
