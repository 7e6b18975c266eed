// SPDX-License-Identifier: Apache-2.0

// Command compat plays the main stories of the integration tests on another minor version of
// Kubernetes, which it builds from Go modules.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/serin-dev/serin/e2e/compat"
	"github.com/serin-dev/serin/e2e/tools"
)

// stories are the tests that need no policy of v1beta1 and no node.
var stories = []string{
	"Webhook", "ThePodsOfThePromotedCanary", "ABadCanary", "ACrash", "DeletingTheRollout", "ADecision",
	"ANewerTemplate", "SettingAnotherImage", "TheTrafficSplit", "Definition",
}

func main() {
	minor := flag.String("version", "", "minor version of Kubernetes, such as 1.31")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *minor)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, minor string) error {
	checkout, err := tools.Locate()
	if err != nil {
		return err
	}
	version, folder, err := compat.Build(ctx, checkout.Builder(os.Stdout), minor)
	if err != nil {
		return err
	}
	fmt.Printf("playing on Kubernetes %s\n", version)
	test := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-v", "-run", strings.Join(stories, "|"), "./integration", "-args", "-kubernetes="+folder)
	test.Dir, test.Stdout, test.Stderr = filepath.Join(checkout.Root, "e2e"), os.Stdout, os.Stderr
	return test.Run()
}
