// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// Exit statuses, which scripts rely on.
const (
	exitDone  = 0
	exitError = 1 // what was asked could not be done
	exitUsage = 2 // it was not asked for in a way that can be understood
)

// groups make the commands below the root, in the order of the help.
var groups = []func() *cobra.Command{
	newRolloutCommand,
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run runs the command that the arguments name and returns the exit status.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	root := newRootCommand()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.Execute()
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(errs, "error:", err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitError
}

// newRootCommand makes the command with everything below it.
func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-traffic",
		Short:         "Look after releases by Serin",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl traffic"},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	for _, group := range groups {
		root.AddCommand(group())
	}
	return root
}

// usageError is an error in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// usage marks what is wrong with the arguments as an error of usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
		}
		return nil
	}
}
