// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/serin-dev/serin/controllers/kit/bounds"
)

// operator is a manager with Serin's controllers in this process, under the
// rights of the chart's service account, with traffic and proxies made up.
type operator struct {
	// view is its cache.
	view client.Reader
	// passes are those over splits, where they are counted.
	passes *passes
	ctx    context.Context
	cancel context.CancelFunc
	done   chan error
	once   sync.Once
}

// managerConfig acts as the ServiceAccount of the chart.
func managerConfig(t *testing.T) *rest.Config {
	t.Helper()
	cfg, err := accountConfig()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// operatorUser is the chart's ServiceAccount.
const operatorUser = "system:serviceaccount:" + operatorSpace + ":" + release

func accountConfig() (*rest.Config, error) {
	return plane.ConfigFor(operatorUser, "system:serviceaccounts", "system:authenticated")
}

// userAgent is what the operators of a scene call themselves: by it the audit log tells
// their requests.
func (s *scene) userAgent() string { return operatorAgent + s.namespace }

const operatorAgent = "serin-manager/"

// newManager makes a manager without controllers, which sees the namespaces that are
// named, or all.
func (s *scene) newManager(log logr.Logger, byObject map[client.Object]cache.ByObject, namespaces ...string) ctrl.Manager {
	s.Helper()
	mgr, err := ctrl.NewManager(s.managerOptions(log, byObject, namespaces...))
	if err != nil {
		s.Fatal(err)
	}
	return mgr
}

// managerOptions are those of a manager that needs no lease.
func (s *scene) managerOptions(log logr.Logger, byObject map[client.Object]cache.ByObject, namespaces ...string) (*rest.Config, ctrl.Options) {
	s.Helper()
	cfg := managerConfig(s.T)
	cfg.UserAgent = s.userAgent()
	sees := cache.Options{ByObject: byObject, DefaultNamespaces: map[string]cache.Config{}, DefaultTransform: cache.TransformStripManagedFields()}
	for _, namespace := range namespaces {
		sees.DefaultNamespaces[namespace] = cache.Config{}
	}
	return cfg, ctrl.Options{
		Logger: log, Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Cache: sees,
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		NewClient:  boundedClient,
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
}

// boundedClient reads as the manager's program does: no longer than ten seconds.
func boundedClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return bounds.NewClient(c, bounds.NewCaches(clock.RealClock{}, func(context.Context) error { return nil })), nil
}

// run has a manager run until the test ends or stop is called.
func run(t *testing.T, mgr ctrl.Manager) *operator {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	o := &operator{view: mgr.GetClient(), ctx: ctx, cancel: cancel, done: make(chan error, 1)}
	go func() { o.done <- mgr.Start(ctx) }()
	t.Cleanup(func() { o.stop(t) })
	return o
}

// stop ends the operator as a crash would: nothing is finished.
func (o *operator) stop(t *testing.T) {
	t.Helper()
	o.once.Do(func() {
		o.cancel()
		if err := <-o.done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the manager ended: %v", err)
		}
	})
}

// stopped is whether it was told to end.
func (o *operator) stopped() bool { return o.ctx.Err() != nil }

// shownLog is how much of an operator's log is shown, from its end.
const shownLog = 32 << 10

// logOf keeps what an operator logs, and shows the end of it when the test fails. Started
// before the operator, it ends after it.
func logOf(t *testing.T) logr.Logger {
	t.Helper()
	log := &logBuffer{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the operator logged, at the end:\n%s", log.tail(shownLog))
		}
	})
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(log)))
}

// logBuffer is written by many goroutines, some of which outlive their test.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

// tail is the end, from the beginning of a line.
func (b *logBuffer) tail(size int) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.text.Bytes()
	if len(all) <= size {
		return bytes.Clone(all)
	}
	end := all[len(all)-size:]
	return bytes.Clone(end[bytes.IndexByte(end, '\n')+1:])
}
