// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1alpha4 "github.com/serin-dev/serin/api/split/v1alpha4"
	serinv1alpha1 "github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/e2e/diagnosis"
)

const (
	// Release is the name of Serin's Helm release.
	Release = "serin"
	// SystemNamespace is where Serin itself runs.
	SystemNamespace = "serin-system"
	// installLimit bounds how long Helm waits for Serin to become ready, on any cluster and in the
	// middle of a release too. What is promised of an installation is less: TestHelmInstallIsReadyWithinAMinute.
	installLimit = 2 * time.Minute
)

// Options say where the story is played.
type Options struct {
	// Kubeconfig and Context name the cluster.
	Kubeconfig, Context string
	// Kubectl and Helm are the paths of the programs.
	Kubectl, Helm string
	// Root is the folder of the repository.
	Root string
	// Installed tells that Serin is on the cluster already. It is neither installed nor removed then.
	Installed bool
	// Say tells which commands are run.
	Say func(line string)
	// Clock tells the time.
	Clock clock.Clock
}

// Stage plays the story on a cluster. It implements story.Stage and
// story.Observer.
type Stage struct {
	options Options
	config  *rest.Config
	api     client.Client
	core    kubernetes.Interface
	killer  killer
	watcher *watcher
	pull    *Pull
}

// New connects to the cluster.
func New(options Options) (*Stage, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = options.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: options.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &Stage{
		options: options, config: config, api: api, core: core,
		killer: newKiller(core), watcher: newWatcher(options.Clock, core),
	}, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, serinv1alpha1.AddToScheme, splitv1alpha4.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register the kinds: %w", err)
		}
	}
	return scheme, nil
}

// Install implements story.Stage: helm install from the chart, with the images
// that were built here. Only then are there kinds to watch.
func (s *Stage) Install(ctx context.Context) error {
	if err := s.InstallRelease(ctx); err != nil {
		return err
	}
	return s.watcher.start(ctx, s.config, s.api.Scheme())
}

// InstallRelease installs Serin where it is not on the cluster already.
func (s *Stage) InstallRelease(ctx context.Context) error {
	if s.options.Installed {
		return nil
	}
	if err := s.allowPulls(ctx, SystemNamespace); err != nil {
		return err
	}
	return s.release(ctx, "install")
}

// UpgradeRelease upgrades Serin, or installs it where it is not. More flags go
// after those of the installation.
func (s *Stage) UpgradeRelease(ctx context.Context, flags ...string) error {
	return s.release(ctx, "upgrade", append([]string{"--install"}, flags...)...)
}

// UninstallRelease removes Serin and leaves what it made, as its documents say for an
// installation that comes back. More flags go after its own.
func (s *Stage) UninstallRelease(ctx context.Context, flags ...string) error {
	return s.helm(ctx, append([]string{"uninstall", Release, "--namespace", SystemNamespace, "--no-hooks", "--wait"}, flags...)...)
}

// release has Helm bring Serin to the cluster, and waits until it is ready.
func (s *Stage) release(ctx context.Context, command string, flags ...string) error {
	args := append([]string{
		command, Release, filepath.Join("charts", "serin"), "--namespace", SystemNamespace, "--create-namespace",
		"--set", "image.tag=dev", "--wait", "--timeout", installLimit.String(),
	}, s.pullFlags()...)
	if err := s.helm(ctx, append(args, flags...)...); err != nil {
		return fmt.Errorf("%w\n%s", err, diagnosis.Explain(ctx, s.core))
	}
	return nil
}

// Apply implements story.Stage.
func (s *Stage) Apply(ctx context.Context, file string) error {
	if file == "load.yaml" {
		s.watcher.expectLoad()
	}
	path := filepath.Join("examples", "demo", file)
	if s.pull == nil {
		return s.kubectl(ctx, "apply", "-f", path)
	}
	if err := s.applyPulled(ctx, path); err != nil {
		return err
	}
	return s.allowPulls(ctx, Namespace)
}

// kubectl runs the command and tells it as a person would type it.
func (s *Stage) kubectl(ctx context.Context, args ...string) error {
	s.options.Say(commandLine("kubectl", args))
	return s.run(ctx, nil, s.options.Kubectl, s.connection("--context", args))
}

func (s *Stage) helm(ctx context.Context, args ...string) error {
	s.options.Say(commandLine("helm", args))
	return s.run(ctx, nil, s.options.Helm, s.connection("--kube-context", args))
}

// connection adds the flags that name the cluster.
func (s *Stage) connection(contextFlag string, args []string) []string {
	if s.options.Kubeconfig != "" {
		args = append(args, "--kubeconfig", s.options.Kubeconfig)
	}
	if s.options.Context != "" {
		args = append(args, contextFlag, s.options.Context)
	}
	return args
}

func (s *Stage) run(ctx context.Context, stdin io.Reader, program string, args []string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir, command.Stdin = s.options.Root, stdin
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", commandLine(filepath.Base(program), args), err, output)
	}
	return nil
}
