// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/proxy/agent"
	"github.com/serin-dev/serin/proxy/fdstore"
	proxyfeed "github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/traffic/nginx"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// maxWorkers that are started when no flag says how many. A pod without a CPU limit
// sees all processors of its node, and each worker takes memory.
const maxWorkers = 4

// applyTimeout bounds a start or a reload of nginx.
const applyTimeout = 15 * time.Second

// options are the flags of serin-proxy.
type options struct {
	namespace, split, pod                  string
	dir, binary, streamModule              string
	statusAddress, memory                  string
	workers, connections                   int
	drain, drainLimit, quitTimeout, settle time.Duration
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "serin-proxy",
		Short: "Run nginx for the traffic of a Service, as a TrafficSplit says",
		Long: `Run nginx for the traffic of a Service, as a TrafficSplit says.

This is what the pods of the nginx router run; you do not start it by hand.
It watches one TrafficSplit, serves its root Service's ports, says at /served
which generation it serves, and counts requests at /metrics.

The process that is started is a supervisor. It starts this command once more,
which does the work, and again when that crashes; nginx serves meanwhile.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if fdstore.Supervised() {
				return o.run(cmd.Context())
			}
			return o.supervise(cmd.Context())
		},
	}
	o.bind(cmd.Flags())
	for _, required := range []string{"namespace", "split", "pod-uid"} {
		if err := cmd.MarkFlagRequired(required); err != nil {
			panic(err) // the flag is bound four lines above
		}
	}
	return cmd
}

func (o *options) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.namespace, "namespace", "", "namespace of the TrafficSplit")
	flags.StringVar(&o.split, "split", "", "name of the TrafficSplit")
	flags.StringVar(&o.pod, "pod-uid", "", "UID of this pod, which it reports together with what it serves")
	flags.StringVar(&o.dir, "dir", string(conf.DefaultDir), "folder in memory for configuration, tables and logs; a start keeps only the live configuration and the counts in it")
	flags.StringVar(&o.binary, "nginx", "nginx", "nginx's executable")
	flags.StringVar(&o.streamModule, "stream-module", "/usr/lib/nginx/modules/ngx_stream_module.so",
		"file of nginx's stream module; if it does not exist, the module has to be built into nginx")
	flags.StringVar(&o.statusAddress, "status-address", fmt.Sprintf(":%d", conf.AgentPort), "address of probes and metrics")
	flags.IntVar(&o.workers, "workers", 0, fmt.Sprintf("number of nginx's workers; 0: as many as the CPU limit can run at the same time, at most %d", maxWorkers))
	flags.IntVar(&o.connections, "connections", 65536, "maximum number of connections of a worker; those to clients and those to backends count separately")
	flags.StringVar(&o.memory, "memory", os.Getenv(nginx.MemoryVariable), "memory limit of the pod, such as 512Mi, which bounds the number of requests in progress: a further request gets the status 503 at once; empty: no bound; default: the value of the environment variable "+nginx.MemoryVariable)
	flags.DurationVar(&o.drain, "drain", 10*time.Second, "how long at least to go on serving after a request to stop")
	flags.DurationVar(&o.drainLimit, "drain-limit", 30*time.Second, "how long at most to go on serving, while clients still connect that have not learned that this pod is leaving")
	flags.DurationVar(&o.quitTimeout, "quit-timeout", 30*time.Second, "how long requests may then take to finish")
	flags.DurationVar(&o.settle, "settle", time.Second, "how long answers ask clients to close their connections before nginx is reloaded")
}

// supervise runs this very command as the agent.
func (o *options) supervise(ctx context.Context) error {
	if _, err := o.render(ctx); err != nil {
		return err // no other start of it would find anything else
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	supervisor := fdstore.Supervisor{
		Executable: executable, Args: os.Args[1:],
		Clock: clock.RealClock{}, Log: ctrllog.FromContext(ctx).WithValues("TrafficSplit", klog.KRef(o.namespace, o.split)),
	}
	return supervisor.Run(ctx)
}

func (o *options) run(ctx context.Context) error {
	log := ctrllog.FromContext(ctx).WithValues("TrafficSplit", klog.KRef(o.namespace, o.split))
	files, err := fdstore.FromSupervisor()
	if err != nil {
		return err
	}
	render, err := o.render(ctx)
	if err != nil {
		return err
	}
	restConfig, err := config.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API: %w", err)
	}
	restConfig.UserAgent = "serin-proxy/" + build.Version()
	split := types.NamespacedName{Namespace: o.namespace, Name: o.split}
	cluster, err := proxyfeed.NewCluster(restConfig, split)
	if err != nil {
		return err
	}
	listener, err := agent.StatusListener(ctx, files, o.statusAddress)
	if err != nil {
		return fmt.Errorf("--status-address: %w", err)
	}
	wall := clock.RealClock{}
	return agent.New(agent.Options{
		Render: render, Files: files,
		Server: func(killed func(int)) (agent.Server, error) {
			return nginxproc.New(nginxproc.Options{
				Binary: o.binary, Dir: render.Dir, Workers: render.Workers, Log: os.Stderr, Killed: killed, Files: files, Clock: wall,
			})
		},
		Feed:     proxyfeed.New(proxyfeed.Options{Split: split, Cluster: cluster, Clock: wall, Log: log}),
		Pod:      types.UID(o.pod),
		Version:  build.Version(),
		Listener: listener,
		Drain:    o.drain, DrainLimit: o.drainLimit, QuitTimeout: o.quitTimeout, ApplyTimeout: applyTimeout, Settle: o.settle,
		Clock: wall, Log: log,
	}).Run(ctx)
}

// render finds out the facts that nginx's configuration depends on.
func (o *options) render(ctx context.Context) (conf.Options, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return conf.Options{}, fmt.Errorf("--dir: %w", err)
	}
	// nginx compares the paths that it finds with the paths that it was given.
	dir, err := filepath.EvalSymlinks(o.dir)
	if err != nil {
		return conf.Options{}, fmt.Errorf("--dir: %w", err)
	}
	r := conf.Options{Dir: conf.Dir(dir), Workers: o.workers, Connections: o.connections, IPv6: hasIPv6(ctx)}
	if r.Workers == 0 {
		r.Workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	if o.memory != "" {
		memory, err := resource.ParseQuantity(o.memory)
		if err != nil || memory.Sign() <= 0 {
			return r, fmt.Errorf("--memory: %q is not a quantity; write it like 512Mi", o.memory)
		}
		r.Memory = memory.Value()
	}
	if _, err := os.Stat(o.streamModule); err == nil {
		r.StreamModule = o.streamModule
	} else if !errors.Is(err, os.ErrNotExist) {
		return r, fmt.Errorf("--stream-module: %w", err)
	}
	if os.Geteuid() == 0 {
		r.User = "root" // or workers could not read what the agent writes
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return r, fmt.Errorf("limit of open files: %w", err)
	}
	r.OpenFiles = int(min(files.Max, 1<<20))
	r.Connections = min(r.Connections, r.OpenFiles/2)
	return r, nil
}

// hasIPv6 tells whether the kernel can listen on IPv6 addresses.
func hasIPv6(ctx context.Context) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp6", "[::]:0")
	if err != nil {
		return false
	}
	return l.Close() == nil
}
