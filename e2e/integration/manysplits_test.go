// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

var manySplits = flag.String("splits", "16", "numbers of splits of one namespace, from which TestTheWorkGrowsWithTheNumberOfSplits takes its measure")

// mostPasses is how many passes a split may take until it is in effect. Where each
// event of a Service leads to a pass over all splits, it is several for each of them.
const mostPasses = 30

// A split leads to no more passes when its namespace has many others. The large numbers
// are for make bench-splits.
func TestTheWorkGrowsWithTheNumberOfSplits(t *testing.T) {
	t.Parallel()
	for text := range strings.SplitSeq(*manySplits, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("-splits: %v", err)
		}
		t.Run(text, func(t *testing.T) { measureSplits(t, n) })
	}
}

// measureSplits counts the passes of each split until it is in effect, until a change of
// its weights is, and for Services that concern none.
func measureSplits(t *testing.T, n int) {
	t.Helper()
	s := newScene(t)
	s.reader = cached
	counted := s.startOperator(newMeasurements(), counted).passes
	s.serveProxies()
	for i := range n {
		s.createApp(appName(i))
	}
	created := counted.during(func() {
		for i := range n {
			name := appName(i)
			s.create(split(name, name, splitv1.Backend{Service: name + "-v1", Weight: 9}, splitv1.Backend{Service: name + "-v2", Weight: 1}))
		}
		s.allInEffect(n)
	})
	changed := counted.during(func() {
		for i := range n {
			s.setBackends(appName(i), splitv1.Backend{Service: appName(i) + "-v1", Weight: 1})
		}
		s.allInEffect(n)
	})
	touched := s.passesOfTheUntouched(counted, n)
	t.Logf("%d splits, passes for each: %.1f until it is in effect, %.1f until a change of its weights is",
		n, float64(created)/float64(n), float64(changed)/float64(n))
	if created > mostPasses*n || changed > mostPasses*n {
		t.Errorf("%d splits take %d passes until they are in effect, and %d until a change is", n, created, changed)
	}
	if touched > 0 {
		t.Errorf("%d passes for Services that concern no split", touched)
	}
}

func appName(i int) string { return fmt.Sprintf("app-%03d", i) }

// createApp creates the Services of an app in two versions.
func (s *scene) createApp(name string) {
	s.Helper()
	for suffix, version := range map[string]string{"": "", "-v1": "v1", "-v2": "v2"} {
		o := service(name + suffix)
		o.Spec.Selector = map[string]string{"app": name}
		if version != "" {
			o.Spec.Selector["version"] = version
		}
		s.create(o)
	}
}

// passesOfTheUntouched changes a Service of each app that no split names any more, and
// then one that the last split does: when that has led to a pass, the events before it
// have led to theirs.
func (s *scene) passesOfTheUntouched(counted *passes, n int) (others int) {
	s.Helper()
	last := appName(n - 1)
	s.eventually("what led to the passes so far is over", func(context.Context) bool { return counted.quiet() })
	before := counted.all()
	for i := range n {
		s.annotate(appName(i)+"-v2", "team", "shop")
	}
	change(s, last, &corev1.Service{}, func(o *corev1.Service) { o.Spec.Ports[0].Name = "web" })
	s.eventually("a pass of the split whose Service has changed", func(context.Context) bool { return counted.all()[last] > before[last] })
	for name, now := range counted.all() {
		if name != last {
			others += now - before[name]
		}
	}
	return others
}

func (s *scene) allInEffect(n int) {
	s.Helper()
	// Of hundreds, it takes longer than anything else here.
	for range 2 {
		if s.poll(func(context.Context) bool { return s.inEffectNow() == n }) {
			return
		}
	}
	s.Fatalf("%d of %d splits are in effect", s.inEffectNow(), n)
}

func (s *scene) inEffectNow() (n int) {
	s.Helper()
	list := &splitv1.TrafficSplitList{}
	if err := s.reader.List(s.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.Fatal(err)
	}
	for i := range list.Items {
		c := meta.FindStatusCondition(list.Items[i].Status.Conditions, splitv1.ConditionProgrammed)
		if c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == list.Items[i].Generation {
			n++
		}
	}
	return n
}

// passes are those of the controller of TrafficSplits of one operator, by the name of
// the split: what the controller runtime logs.
type passes struct {
	mu   sync.Mutex
	of   map[string]int
	last int
	// since is when the sum became last.
	since time.Time
}

// told counts a line of the log, which has a value behind each key.
func (p *passes) told(message string, values []any) {
	if message != "Reconciling" {
		return
	}
	known := map[any]any{}
	for i := 0; i+1 < len(values); i += 2 {
		known[values[i]] = values[i+1]
	}
	name, ok := known["name"].(string)
	if !ok || known["controller"] != "trafficsplit" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of[name]++
}

func (p *passes) all() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.of)
}

func (p *passes) sum() (n int) {
	for _, of := range p.all() {
		n += of
	}
	return n
}

// during is how many there are while something happens.
func (p *passes) during(act func()) int {
	before := p.sum()
	act()
	return p.sum() - before
}

// restsFor is longer than the controller puts a pass off.
const restsFor = 4 * time.Second

// quiet is whether there was none for some time.
func (p *passes) quiet() bool {
	now := p.sum()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now != p.last || p.since.IsZero() {
		p.last, p.since = now, time.Now()
	}
	return time.Since(p.since) > restsFor
}

// counting passes a log on, and tells of each line.
type counting struct {
	logr.LogSink
	passes *passes
	values []any
}

func (c counting) Enabled(int) bool { return true }

func (c counting) Info(level int, message string, values ...any) {
	c.passes.told(message, append(slices.Clone(c.values), values...))
	if c.LogSink.Enabled(level) {
		c.LogSink.Info(level, message, values...)
	}
}

func (c counting) WithValues(values ...any) logr.LogSink {
	return counting{c.LogSink.WithValues(values...), c.passes, append(slices.Clone(c.values), values...)}
}

func (c counting) WithName(name string) logr.LogSink {
	return counting{c.LogSink.WithName(name), c.passes, c.values}
}
