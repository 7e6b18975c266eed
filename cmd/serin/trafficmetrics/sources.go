// SPDX-License-Identifier: Apache-2.0

package trafficmetrics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	proxies "github.com/serin-dev/serin/analysis/source/scrape"
	"github.com/serin-dev/serin/cmd/build"
	"github.com/serin-dev/serin/metricsapi/observe"
	"github.com/serin-dev/serin/metricsapi/source/prometheus"
	"github.com/serin-dev/serin/metricsapi/source/scrape"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// sourceOptions are the flags that say how traffic is measured.
type sourceOptions struct {
	profile, profileFile   string
	window, scrapeInterval time.Duration
	server                 prometheus.Server
}

func (o *sourceOptions) bind(flags *pflag.FlagSet) {
	flags.DurationVar(&o.window, "window", 0, "length of a window; 0: 15s with --source=scrape, 30s with prometheus")
	flags.StringVar(&o.server.Address, "prometheus-address", "", "URL of the Prometheus, such as http://prometheus.monitoring:9090")
	flags.StringVar(&o.server.CAFile, "prometheus-ca-file", "", "file with certificates that verify the one of the Prometheus; those of the system when empty")
	flags.StringVar(&o.server.TokenFile, "prometheus-token-file", "", "file with the bearer token to send to the Prometheus")
	flags.StringVar(&o.server.CertFile, "prometheus-cert-file", "", "file with the client certificate to present to the Prometheus")
	flags.StringVar(&o.server.KeyFile, "prometheus-key-file", "", "file with the key of that certificate")
	flags.StringVar(&o.profile, "prometheus-profile", "", "data plane whose metrics the Prometheus has: "+strings.Join(prometheus.Names(), ", "))
	flags.StringVar(&o.profileFile, "prometheus-profile-file", "", "file with a profile of your own, such as a mounted ConfigMap")
	flags.DurationVar(&o.scrapeInterval, "prometheus-scrape-interval", 15*time.Second, "how often the Prometheus scrapes; a window has to be at least twice as long")
}

// newScrapeSource reads Serin's own proxies until ctx ends.
func newScrapeSource(ctx context.Context, parts sourceParts) (observe.Source, error) {
	selector, err := scrape.Selector()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(parts.Cluster)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = selector.String()
	}))
	list, err := scrape.Proxies(factory.Core().V1().Pods().Lister(), conf.AgentPort)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	source := scrape.New(scrape.Options{
		Reader: proxies.New(proxies.Options{MaxBody: scrape.MaxBody}), Proxies: list, Clock: parts.Clock, Window: parts.Settings.window,
		Locate: parts.Inventory.Pod,
	})
	go func() {
		factory.WaitForCacheSync(ctx.Done())
		source.Run(ctx)
	}()
	return source, nil
}

func newPrometheusSource(_ context.Context, parts sourceParts) (observe.Source, error) {
	o := parts.Settings
	profile, err := o.readProfile()
	if err != nil {
		return nil, err
	}
	o.server.UserAgent = "serin/" + build.Version()
	api, err := prometheus.NewAPI(o.server)
	if err != nil {
		return nil, fmt.Errorf("--prometheus-%w", err)
	}
	return prometheus.New(prometheus.Options{
		API: api, Profile: profile, Clock: parts.Clock, Window: o.window, ScrapeInterval: o.scrapeInterval,
		Services: func(name types.NamespacedName) bool { return parts.Inventory.Exists(observe.Services, name) },
	})
}

func (o *sourceOptions) readProfile() (prometheus.Profile, error) {
	switch {
	case (o.profile == "") == (o.profileFile == ""):
		return prometheus.Profile{}, errors.New("--prometheus-profile: give it or --prometheus-profile-file")
	case o.profile != "":
		p, err := prometheus.Builtin(o.profile)
		if err != nil {
			return p, fmt.Errorf("--prometheus-%w", err)
		}
		return p, nil
	}
	text, err := os.ReadFile(o.profileFile)
	if err != nil {
		return prometheus.Profile{}, fmt.Errorf("--prometheus-profile-file: %w", err)
	}
	p, err := prometheus.Load(text)
	if err != nil {
		return p, fmt.Errorf("--prometheus-profile-file: %w", err)
	}
	return p, nil
}
