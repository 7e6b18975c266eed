// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	specsv1 "github.com/serin-dev/serin/api/specs/v1alpha4"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/proxy/confirmation"
	"github.com/serin-dev/serin/traffic"
	"github.com/serin-dev/serin/traffic/nginx/conf"
	"github.com/serin-dev/serin/traffic/resolve"
)

const (
	// podNetwork has the addresses of the stand-in's pods.
	podNetwork = "10.250.0.0/16"
	// byAddress of a pod is its address.
	byAddress = "bench/address"
)

// serveProxies stands in for the agents of the nginx router until ctx ends: this machine
// answers at the addresses of all pods, and each ready proxy says that it serves the newest
// configuration of its split, as a real one does after it has reloaded nginx.
func serveProxies(ctx context.Context, s *stage, f fleet) error {
	if f.router != v1alpha1.RouterNginx {
		return nil
	}
	if out, err := exec.CommandContext(ctx, "ip", "route", "replace", "local", podNetwork, "dev", "lo").CombinedOutput(); err != nil {
		return fmt.Errorf("answer at the addresses of proxies, which takes root and iproute2: %w: %s", err, out)
	}
	config := rest.CopyConfig(s.plane.Config)
	config.UserAgent = agentOfProxies
	c, err := cache.New(config, cache.Options{Scheme: newScheme()})
	if err != nil {
		return fmt.Errorf("stand in for the proxies: %w", err)
	}
	err = c.IndexField(ctx, &corev1.Pod{}, byAddress, func(o client.Object) []string { return []string{o.(*corev1.Pod).Status.PodIP} })
	if err != nil {
		return fmt.Errorf("stand in for the proxies: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf(":%d", conf.AgentPort))
	if err != nil {
		return fmt.Errorf("stand in for the proxies: %w", err)
	}
	server := &http.Server{Handler: proxies{c}, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() {
		_ = server.Close() // without proxies no release goes on, which shows
		_ = exec.CommandContext(context.WithoutCancel(ctx), "ip", "route", "del", "local", podNetwork, "dev", "lo").Run()
	})
	go func() { _ = c.Start(ctx) }()
	go func() { _ = server.Serve(listener) }()
	return nil
}

type proxies struct{ client.Reader }

// ServeHTTP says what the pod serves at whose address it was asked.
func (p proxies) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pods := &corev1.PodList{}
	address, _, _ := strings.Cut(r.Host, ":")
	if err := p.List(r.Context(), pods, client.MatchingFields{byAddress: address}); err != nil || len(pods.Items) != 1 || pods.Items[0].DeletionTimestamp != nil || !podutils.IsPodReady(&pods.Items[0]) {
		http.Error(w, "no such proxy", http.StatusServiceUnavailable)
		return
	}
	pod, ts := &pods.Items[0], &splitv1.TrafficSplit{}
	if err := p.Get(r.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: pod.Labels[traffic.LabelProxy]}, ts); err != nil {
		http.Error(w, "no such split", http.StatusServiceUnavailable)
		return
	}
	confirmation.Write(w, confirmation.Served{Pod: pod.UID, Generation: ts.Generation, Configuration: p.digest(r.Context(), ts)})
}

// digest is that of what a proxy serves.
func (p proxies) digest(ctx context.Context, ts *splitv1.TrafficSplit) string {
	known := resolve.Known{Services: map[string]*corev1.Service{}, Groups: map[string]*specsv1.HTTPRouteGroup{}, Proxied: true}
	for _, name := range resolve.ServiceNames(ts) {
		if o := (&corev1.Service{}); p.Get(ctx, client.ObjectKey{Namespace: ts.Namespace, Name: name}, o) == nil {
			known.Services[name] = o
		}
	}
	resolved, _ := resolve.Split(ts, known)
	return resolved.Digest()
}
