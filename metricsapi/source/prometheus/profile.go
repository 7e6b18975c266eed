// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// maxQueries bounds the queries of one observation.
const maxQueries = 5

// Profile says what a data plane stores of its traffic.
type Profile struct {
	// Views are the places of measurement: each counts every request once.
	Views []View `json:"views"`
}

// View is one place of measurement.
type View struct {
	// Side at which the requests are seen: client also where a proxy in between counts.
	Side metricsv1.Side `json:"side"`
	// Counters of requests. Together they count each of them once.
	Counters []Counter `json:"counters"`
	// Latency is the histogram of the same requests, if there is one.
	Latency *Latency `json:"latency,omitempty"`
	// Client and Server are where the labels name the ends.
	Client Party `json:"client,omitzero"`
	Server Party `json:"server,omitzero"`
	// Apex is where a label names the Service that was called, and Backend the one that
	// was chosen for it.
	Apex    Name `json:"apex,omitzero"`
	Backend Name `json:"backend,omitzero"`
}

// Series are those of a metric with some labels.
type Series struct {
	// Metric is its name.
	Metric string `json:"metric"`
	// Labels that it has to have, by their names.
	Labels map[string]string `json:"labels,omitempty"`
}

// Counter counts requests of which it or a label tells the outcome. Exactly one of
// Outcome, StatusLabel and FailureLabel is set.
type Counter struct {
	Series `json:",inline"`
	// Outcome of all of the requests: success or failure.
	Outcome Outcome `json:"outcome,omitempty"`
	// StatusLabel has the status of the answer, from which failures are told as
	// everywhere in Serin.
	StatusLabel string `json:"statusLabel,omitempty"`
	// GRPCStatusLabel, in addition to StatusLabel, has the number of a call's grpc-status: a call
	// fails with the HTTP status 200. It is empty or absent for other requests.
	GRPCStatusLabel string `json:"grpcStatusLabel,omitempty"`
	// FailureLabel is failure for requests that failed.
	FailureLabel string `json:"failureLabel,omitempty"`
}

// Outcome of a request.
type Outcome string

// The outcomes of requests.
const (
	Success Outcome = "success"
	Failure Outcome = "failure"
)

// Latency is the buckets of a classic histogram.
type Latency struct {
	Series `json:",inline"`
	// Unit of its bounds: s or ms.
	Unit Unit `json:"unit"`
}

// Unit of time.
type Unit string

// The units of bounds, and how many of them are a second.
const (
	Seconds      Unit = "s"
	Milliseconds Unit = "ms"
)

// Party is where the labels name one end. Empty fields are not told.
type Party struct {
	Namespace Name `json:"namespace,omitzero"`
	Pod       Name `json:"pod,omitzero"`
	// Address of the pod, with or without a port.
	Address  Name `json:"address,omitzero"`
	Workload Name `json:"workload,omitzero"`
	// WorkloadKind is the plural of the workload's kind, such as deployments; where it
	// is empty the cluster is asked.
	WorkloadKind string `json:"workloadKind,omitempty"`
	Service      Name   `json:"service,omitzero"`
}

// Name is where a name is.
type Name struct {
	// Label that has it.
	Label string `json:"label,omitempty"`
	// Form in which it does; as it is when empty.
	Form Form `json:"form,omitempty"`
}

// Form is how a label has a name.
type Form string

// The forms of names.
const (
	// Plain is the name itself.
	Plain Form = ""
	// Host is a name of DNS with or without a port: SERVICE.NAMESPACE.svc.cluster.local.
	Host Form = "host"
	// Joined is NAMESPACE-SERVICE-PORT@PROVIDER, as Traefik names its services. Which
	// hyphen divides them is found out by the Services that there are.
	Joined Form = "joined"
)

//go:embed profiles/*.yaml
var builtin embed.FS

// Names are those of the profiles that Builtin knows, in order.
func Names() []string {
	entries, err := builtin.ReadDir("profiles")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Builtin returns the profile of a data plane.
func Builtin(name string) (Profile, error) {
	if !slices.Contains(Names(), name) {
		return Profile{}, fmt.Errorf("profile: %q; give one of %s, or a file of your own", name, strings.Join(Names(), ", "))
	}
	text, err := builtin.ReadFile(path.Join("profiles", name+".yaml"))
	if err != nil {
		return Profile{}, err
	}
	return Load(text)
}

// Load reads a profile in YAML. The error names the field and the fix.
func Load(text []byte) (Profile, error) {
	var p Profile
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		return p, fmt.Errorf("the profile can't be read: %w", err)
	}
	return p, p.validate()
}

func (p Profile) validate() error {
	if len(p.Views) == 0 {
		return errors.New("views: empty; add at least one place of measurement")
	}
	queries := 0
	for i := range p.Views {
		v := &p.Views[i]
		if err := v.validate(); err != nil {
			return fmt.Errorf("views[%d].%w", i, err)
		}
		queries += len(v.Counters)
		if v.Latency != nil {
			queries++
		}
	}
	if queries > maxQueries {
		return fmt.Errorf("views: %d counters and histograms; give at most %d, each is a query", queries, maxQueries)
	}
	return nil
}

func (v *View) validate() error {
	if v.Side != metricsv1.SideClient && v.Side != metricsv1.SideServer {
		return fmt.Errorf("side: %q; give client or server", v.Side)
	}
	if len(v.Counters) == 0 {
		return errors.New("counters: empty; name the counter of requests")
	}
	for i, c := range v.Counters {
		if err := c.validate(); err != nil {
			return fmt.Errorf("counters[%d].%w", i, err)
		}
	}
	if v.Latency != nil {
		if err := v.Latency.validate(); err != nil {
			return fmt.Errorf("latency.%w", err)
		}
	}
	if v.Server == (Party{}) && v.Backend == (Name{}) {
		return errors.New("server: empty; name the labels that tell who answered")
	}
	return v.validateNames()
}

// names are all places of names, by their fields.
func (v *View) names() map[string]Name {
	return map[string]Name{
		"client.namespace": v.Client.Namespace, "client.pod": v.Client.Pod, "client.address": v.Client.Address,
		"client.workload": v.Client.Workload, "client.service": v.Client.Service,
		"server.namespace": v.Server.Namespace, "server.pod": v.Server.Pod, "server.address": v.Server.Address,
		"server.workload": v.Server.Workload, "server.service": v.Server.Service,
		"apex": v.Apex, "backend": v.Backend,
	}
}

func (v *View) validateNames() error {
	for field, n := range v.names() {
		switch {
		case n.Form != Plain && n.Form != Host && n.Form != Joined:
			return fmt.Errorf("%s.form: %q; give %s or %s, or leave it out", field, n.Form, Host, Joined)
		case n.Form != Plain && n.Label == "", n.Label != "" && !isLabel(n.Label):
			return fmt.Errorf("%s.label: %q is not the name of a label", field, n.Label)
		}
	}
	for field, kind := range map[string]string{"client": v.Client.WorkloadKind, "server": v.Server.WorkloadKind} {
		if _, known := kindOf(kind); !known {
			return fmt.Errorf("%s.workloadKind: %q; give the plural of a kind that has pods, such as deployments", field, kind)
		}
	}
	return nil
}

// kindOf finds the kind of workloads with a plural; the zero one for "".
func kindOf(plural string) (observe.Kind, bool) {
	if plural == "" {
		return observe.Kind{}, true
	}
	for _, k := range []observe.Kind{observe.Deployments, observe.StatefulSets, observe.DaemonSets, observe.Jobs, observe.ReplicaSets, observe.ReplicationControllers} {
		if k.Resource == plural {
			return k, true
		}
	}
	return observe.Kind{}, false
}

func (c *Counter) validate() error {
	set := 0
	for _, text := range []string{string(c.Outcome), c.StatusLabel, c.FailureLabel} {
		if text != "" {
			set++
		}
	}
	switch {
	case set != 1:
		return errors.New("outcome: give exactly one of outcome, statusLabel and failureLabel")
	case c.GRPCStatusLabel != "" && c.StatusLabel == "":
		return errors.New("grpcStatusLabel: only with statusLabel")
	case c.Outcome != "" && c.Outcome != Success && c.Outcome != Failure:
		return fmt.Errorf("outcome: %q; give success or failure", c.Outcome)
	}
	for field, label := range map[string]string{"statusLabel": c.StatusLabel, "grpcStatusLabel": c.GRPCStatusLabel, "failureLabel": c.FailureLabel} {
		if label != "" && !isLabel(label) {
			return fmt.Errorf("%s: %q is not the name of a label", field, label)
		}
	}
	return c.Series.validate()
}

func (l *Latency) validate() error {
	if l.Unit != Seconds && l.Unit != Milliseconds {
		return fmt.Errorf("unit: %q; give s or ms", l.Unit)
	}
	if !strings.HasSuffix(l.Metric, "_bucket") {
		return fmt.Errorf("metric: %q; give the _bucket series of a classic histogram", l.Metric)
	}
	return l.Series.validate()
}

func (s *Series) validate() error {
	if !model.LegacyValidation.IsValidMetricName(s.Metric) {
		return fmt.Errorf("metric: %q is not the name of a metric", s.Metric)
	}
	for name := range s.Labels {
		if !isLabel(name) {
			return fmt.Errorf("labels: %q is not the name of a label", name)
		}
	}
	return nil
}

func isLabel(name string) bool { return model.LegacyValidation.IsValidLabelName(name) }
