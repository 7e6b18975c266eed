// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/serin-dev/serin/e2e/images"
	"github.com/serin-dev/serin/e2e/images/publish"
	"github.com/serin-dev/serin/e2e/release"
	"github.com/serin-dev/serin/e2e/tools"
)

func main() { os.Exit(run()) }

// run returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

// newCommand is the command line.
func newCommand() *cobra.Command {
	options := publish.Options{Out: os.Stderr, Images: images.Published}
	root := &cobra.Command{
		Use: "release", Short: "Make and publish what a release of Serin consists of",
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) (err error) {
			if options.Registry.Host == "" {
				return errors.New("--registry is missing: name the registry that images and chart are for (REGISTRY=… of make)")
			}
			options.Version = strings.TrimPrefix(options.Version, "v")
			options.Builder, options.Invocation = builder(os.Getenv)
			if options.Dist == "" {
				options.Dist, err = defaultDist()
			}
			return err
		},
	}
	flags := root.PersistentFlags()
	flags.StringVar(&options.Registry.Host, "registry", "", "registry that images and chart are for, with a path if all repositories are to be below one")
	flags.BoolVar(&options.Registry.Insecure, "insecure", false, "speak HTTP with the registry; on loopback that is so anyway")
	flags.BoolVar(&options.Push, "push", false, "push to the registry, with the credentials of `docker login`")
	flags.StringVar(&options.Dist, "dist", "", "folder for what is made (default dist at the root of the checkout)")
	flags.StringSliceVar(&options.Architectures, "architectures", publish.Architectures, "architectures of the images")
	flags.BoolVar(&options.Changed, "changed", false, "build although files differ from the revision that images and archives name")
	root.AddCommand(newImages(&options), newAll(&options), newOutdated(&options))
	return root
}

func newImages(options *publish.Options) *cobra.Command {
	demo := false
	command := &cobra.Command{
		Use: "images", Args: cobra.NoArgs, Short: "Build the images",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if demo {
				options.Images = images.Table
			}
			publisher, err := publish.New(cmd.Context(), *options)
			if err != nil {
				return err
			}
			_, err = publisher.Images(cmd.Context())
			return err
		},
	}
	command.Flags().StringVar(&options.Version, "tag", "dev", "tag of the images, and the version that their programs print")
	command.Flags().BoolVar(&demo, "demo", false, "build the images of the demo too")
	return command
}

func newAll(options *publish.Options) *cobra.Command {
	command := &cobra.Command{
		Use: "all", Args: cobra.NoArgs, Short: "Make all of a release",
		RunE: func(cmd *cobra.Command, _ []string) error { return release.Make(cmd.Context(), *options) },
	}
	command.Flags().StringVar(&options.Version, "version", "", "version of the release, such as 0.2.0")
	_ = command.MarkFlagRequired("version") // the flag is bound in the line above
	return command
}

func newOutdated(options *publish.Options) *cobra.Command {
	command := &cobra.Command{
		Use: "outdated", Args: cobra.NoArgs, Short: "Fail when Debian has newer packages than the published images",
		Long: `Compare the packages of Debian that the images in the registry hold, which their SBOMs
name, with the newest ones, and fail when some are newer: then it is time for a release.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return publish.Outdated(cmd.Context(), *options) },
	}
	command.Flags().StringVar(&options.Version, "tag", "", "tag of the images")
	_ = command.MarkFlagRequired("tag") // the flag is bound in the line above
	return command
}

func defaultDist() (string, error) {
	checkout, err := tools.Locate()
	return filepath.Join(checkout.Root, "dist"), err
}

// builder is who builds, by the environment of GitHub's workflows, and the run of it.
func builder(env func(string) string) (id, invocation string) {
	if env("GITHUB_ACTIONS") != "true" {
		return images.Homepage + "/blob/main/docs/release.md#by-hand", ""
	}
	server := env("GITHUB_SERVER_URL")
	return server + "/" + env("GITHUB_WORKFLOW_REF"), fmt.Sprintf("%s/%s/actions/runs/%s/attempts/%s", server, env("GITHUB_REPOSITORY"), env("GITHUB_RUN_ID"), env("GITHUB_RUN_ATTEMPT"))
}
