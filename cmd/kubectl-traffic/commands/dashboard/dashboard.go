// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
)

// serving has the flags of the command.
type serving struct {
	cluster  *cli.Cluster
	port     uint16
	noOpen   bool
	readOnly bool
}

// New makes the command dashboard.
func New(c *cli.Cluster) *cobra.Command {
	s := &serving{cluster: c}
	cmd := &cobra.Command{
		Use:   "dashboard [ROLLOUT]",
		Short: "Open the dashboard in the browser",
		Long: `Dashboard serves a page on this machine and opens it in the browser. The page lists all Rollouts that you may list,
and shows each release with its steps, evidence, events and history, and with buttons for decisions. It also shows the
declared, programmed and measured shares of each TrafficSplit, the canaries of Helm releases, and the calendar of
releases. With the name of a Rollout, it opens the page of that Rollout.

The page uses the Kubernetes API with your own permissions. It can be reached from this machine only, and only at the
printed address: the address contains a secret that is valid until the command ends. Buttons ask for confirmation, and
are disabled where you lack the permission; --read-only disables all of them.

The command runs until you interrupt it.`,
		Example: `  kubectl traffic dashboard
  kubectl traffic dashboard website -n shop
  kubectl traffic dashboard --port=8080 --no-open --read-only`,
		Args: cli.Usage(cobra.MaximumNArgs(1)), ValidArgsFunction: cli.First(c.Rollouts),
		RunE: func(cmd *cobra.Command, args []string) error { return s.run(cmd, args) },
	}
	cmd.Flags().Uint16Var(&s.port, "port", 0, "port on this machine; a free one if 0")
	cmd.Flags().BoolVar(&s.noOpen, "no-open", false, "print the address, but do not open a browser")
	cmd.Flags().BoolVar(&s.readOnly, "read-only", false, "refuse every change")
	cli.Complete(cmd, "port", cobra.NoFileCompletions)
	return cmd
}

func (s *serving) run(cmd *cobra.Command, args []string) error {
	viewer, err := s.viewer()
	if err != nil {
		return err
	}
	at := ""
	if len(args) == 1 {
		at = "/rollouts/" + url.PathEscape(viewer.Namespace) + "/" + url.PathEscape(cli.RolloutName(args[0]))
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(s.port))))
	if err != nil {
		return fmt.Errorf("serve the page; choose another --port: %w", err)
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	loopback := dashboard.NewLoopback(viewer, port)
	origins := []string{"http://127.0.0.1:" + port, "http://localhost:" + port}
	handler := loopback.Handler(dashboard.Options{Viewers: loopback, Origins: origins, ReadOnly: s.readOnly, Skew: s.cluster.CheckSkew, Clock: clock.RealClock{}})
	first := loopback.FirstURL(origins[0], at)
	fmt.Fprintf(cmd.OutOrStdout(), "The dashboard is at %s\nInterrupt the command to end it.\n", first)
	if !s.noOpen {
		file, err := fileFor(first)
		defer func() { _ = os.Remove(file) }() // there may be none
		go func() {
			if err == nil {
				err = openBrowser(file)
			}
			if err != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "No browser could be opened: %v. Open the address yourself.\n", err)
			}
		}()
	}
	return dashboard.Serve(cmd.Context(), listener, handler)
}

// viewer is the user that the flags of kubectl choose.
func (s *serving) viewer() (*dashboard.Viewer, error) {
	namespace, err := s.cluster.Namespace()
	if err != nil {
		return nil, err
	}
	api, err := s.cluster.Watcher()
	if err != nil {
		return nil, err
	}
	metrics, err := s.cluster.Metrics()
	if err != nil {
		return nil, err
	}
	name, err := s.cluster.Name()
	return &dashboard.Viewer{API: api, Metrics: metrics, Namespace: namespace, Cluster: name}, err
}
