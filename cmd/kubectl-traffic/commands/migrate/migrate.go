// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/source"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// migrate has the flags of the command.
type migrate struct {
	cluster *cli.Cluster
	files   []string
	// to is the folder to write to, and report the file of the report; "" for the standard
	// output and the standard error.
	to, report string
}

// New makes the command migrate.
func New(c *cli.Cluster) *cobra.Command {
	m := migrate{cluster: c}
	cmd := &cobra.Command{
		Use:   "migrate [rollout/NAME | canary/NAME ...]",
		Short: "Convert objects of Argo Rollouts and Flagger to Serin",
		Long: `Migrate reads Rollouts and analysis templates of Argo Rollouts, Canaries, metric templates and alert providers of
Flagger, and the Deployments and Services that they refer to. It writes Deployments, Services, Rollouts,
AnalysisTemplates and routes to the standard output, as YAML in the order in which to apply them. It changes nothing
in the cluster.

It reads the files and folders that -f names, which may be repeated, or without -f the current namespace of the
cluster. With names, it converts only those Rollouts and Canaries.

The report lists each field that has no equivalent in Serin or that differs in a detail, the assumptions that were
made, and what is left for you to do. It goes to the standard error, or to the file that --report names. For input
that can't be understood, the command reports file, object, field and fix, and writes nothing.

The pages about the migration from Argo Rollouts and from Flagger explain how to switch without downtime.`,
		Example: `  kubectl traffic migrate -f rollout.yaml > serin.yaml
  kubectl traffic migrate -f deploy/ --to serin/ --report report.txt
  kubectl traffic migrate canary/website -n shop > serin.yaml`,
		Args: cli.Usage(cobra.ArbitraryArgs),
		RunE: m.run,
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&m.files, "filename", "f", nil, `file or folder with objects; "-" reads the standard input`)
	flags.StringVar(&m.to, "to", "", "folder to write a file for each object to, instead of the standard output")
	flags.StringVar(&m.report, "report", "", "file to write the report to, instead of the standard error")
	return cmd
}

func (m *migrate) run(cmd *cobra.Command, names []string) error {
	set, err := m.read(cmd)
	if err != nil {
		return err
	}
	if err := choose(set, names); err != nil {
		return err
	}
	out, err := migration.Convert(set)
	if report := m.write(cmd, set.Report); report != nil || err != nil {
		return errors.Join(err, report)
	}
	return m.writeObjects(cmd, out)
}

// writeObjects writes a stream of all objects, or a file for each.
func (m *migrate) writeObjects(cmd *cobra.Command, files []target.File) error {
	if m.to != "" {
		if err := os.MkdirAll(m.to, 0o750); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	for i, f := range files {
		var err error
		switch {
		case m.to != "":
			err = os.WriteFile(filepath.Join(m.to, f.Name), []byte(f.Text), 0o600)
		case i > 0:
			_, err = io.WriteString(cmd.OutOrStdout(), "---\n"+f.Text)
		default:
			_, err = io.WriteString(cmd.OutOrStdout(), f.Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *migrate) read(cmd *cobra.Command) (*source.Set, error) {
	if len(m.files) == 0 {
		return m.fromCluster(cmd.Context())
	}
	return fromFiles(cmd, m.files)
}

// choose leaves the Rollouts and Canaries that are named.
func choose(set *source.Set, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if !slices.ContainsFunc(set.Objects, func(o *source.Object) bool { return is(o, name) }) {
			return fmt.Errorf("there is no %s: write rollout/NAME for one of Argo Rollouts, and canary/NAME for one of Flagger", name)
		}
	}
	set.Objects = slices.DeleteFunc(set.Objects, func(o *source.Object) bool {
		workload := o.Kind() == "Rollout" || o.Kind() == "Canary"
		return workload && !slices.ContainsFunc(names, func(name string) bool { return is(o, name) })
	})
	return nil
}

// is whether an object is what KIND/NAME says, with or without the group of the kind.
func is(o *source.Object, name string) bool {
	kind, name, _ := strings.Cut(name, "/")
	short, _, _ := strings.Cut(kind, ".")
	own := strings.ToLower(o.Kind())
	return o.Name() == name && (short == own || short == own+"s" || short == "canaries" && own == "canary")
}

// write writes the report, and how many items of each kind it has.
func (m *migrate) write(cmd *cobra.Command, report *source.Report) error {
	var text bytes.Buffer
	for _, i := range report.Items {
		fmt.Fprintln(&text, i)
	}
	to := cmd.ErrOrStderr()
	if m.report != "" {
		if err := os.WriteFile(m.report, text.Bytes(), 0o600); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	} else if _, err := text.WriteTo(to); err != nil {
		return err
	}
	var counts []string
	for _, k := range []source.Kind{source.NoEqual, source.Differs, source.Assumed, source.ToDo} {
		counts = append(counts, fmt.Sprintf("%s: %d", k, report.Count(k)))
	}
	_, err := fmt.Fprintf(to, "report: %s\n", strings.Join(counts, ", "))
	return err
}
