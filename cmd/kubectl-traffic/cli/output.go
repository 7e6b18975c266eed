// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// Forms of output.
const (
	AsTable = ""
	AsWide  = "wide"
	AsName  = "name"
	AsJSON  = "json"
	AsYAML  = "yaml"
)

// Output is the flag -o.
type Output struct {
	Form  string
	forms []string
}

// AddOutput adds the flag --output with the formats that a command knows.
func AddOutput(cmd *cobra.Command, forms ...string) *Output {
	o := &Output{forms: forms}
	cmd.Flags().StringVarP(&o.Form, "output", "o", "", "output format: "+strings.Join(forms, "|"))
	Complete(cmd, "output", Fixed(forms...))
	return o
}

// Check refuses a format that the command does not know.
func (o *Output) Check() error {
	if o.Form != "" && !slices.Contains(o.forms, o.Form) {
		return UsageErrorf("--output: %q is not one of %s", o.Form, strings.Join(o.forms, ", "))
	}
	return nil
}

// Object is whether the output is the object itself.
func (o *Output) Object() bool { return o.Form == AsJSON || o.Form == AsYAML || o.Form == AsName }

// Print prints an object as JSON, as YAML or by its name, and a list by the names of what
// it holds.
func (o *Output) Print(out io.Writer, scheme *runtime.Scheme, object runtime.Object) error {
	if o.Form == AsName && meta.IsListType(object) {
		return meta.EachListItem(object, func(item runtime.Object) error { return o.Print(out, scheme, item) })
	}
	var printer printers.ResourcePrinter = &printers.JSONPrinter{}
	switch o.Form {
	case AsYAML:
		printer = &printers.YAMLPrinter{}
	case AsName:
		printer = &printers.NamePrinter{}
	}
	return printers.NewTypeSetter(scheme).ToPrinter(printer).PrintObj(object, out)
}

// Column of a table. One that is wide is shown with -o wide only.
type Column struct {
	name string
	wide bool
}

// Columns are columns that are always printed.
func Columns(names ...string) []Column {
	list := make([]Column, 0, len(names))
	for _, name := range names {
		list = append(list, Column{name: name})
	}
	return list
}

// Wide are columns that only the format wide prints.
func Wide(names ...string) []Column {
	list := Columns(names...)
	for i := range list {
		list[i].wide = true
	}
	return list
}

// Table prints rows below each other. What the server has sent stays within its cell.
func (o *Output) Table(out io.Writer, heads []Column, rows [][]string) error {
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
			cells[i] = OneLine(cell)
		}
		t.Rows = append(t.Rows, metav1.TableRow{Cells: cells})
	}
	return printers.NewTablePrinter(printers.PrintOptions{Wide: o.Form == AsWide}).PrintObj(t, out)
}

// OneLine keeps text of the server from forging rows and columns.
func OneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// OrNone shows that a cell is empty on purpose.
func OrNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// PrintValue prints a value as JSON or YAML.
func PrintValue(out io.Writer, form string, value any) error {
	text, err := json.MarshalIndent(value, "", "    ")
	if err == nil && form == AsYAML {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, strings.TrimSuffix(string(text), "\n"))
	return err
}
