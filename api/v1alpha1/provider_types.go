// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// MetricProvider is where and what to measure: the field that type names.
//
// +kubebuilder:validation:XValidation:rule="has(self.trafficMetrics) == (self.type == 'trafficMetrics')",message="trafficMetrics: belongs to type trafficMetrics; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.prometheus) == (self.type == 'prometheus')",message="prometheus: belongs to type prometheus; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.web) == (self.type == 'web')",message="web: belongs to type web; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.job) == (self.type == 'job')",message="job: belongs to type job; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.datadog) == (self.type == 'datadog')",message="datadog: belongs to type datadog; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.cloudWatch) == (self.type == 'cloudWatch')",message="cloudWatch: belongs to type cloudWatch; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.newRelic) == (self.type == 'newRelic')",message="newRelic: belongs to type newRelic; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.graphite) == (self.type == 'graphite')",message="graphite: belongs to type graphite; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.influxDB) == (self.type == 'influxDB')",message="influxDB: belongs to type influxDB; give both or neither"
// +kubebuilder:validation:XValidation:rule="!has(self.providerRef) || !(self.type in ['trafficMetrics', 'web', 'job'])",message="providerRef: is for systems that a ClusterMetricProvider can name, not for trafficMetrics, web and job; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || has(self.prometheus.address) != has(self.providerRef)",message="prometheus.address: give it or providerRef, not both and not neither"
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || !has(self.prometheus.credentialsRef) || !has(self.providerRef)",message="prometheus.credentialsRef: providerRef has its own; remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.graphite) || has(self.graphite.address) != has(self.providerRef)",message="graphite.address: give it or providerRef, not both and not neither"
// +kubebuilder:validation:XValidation:rule="!has(self.graphite) || !has(self.graphite.credentialsRef) || !has(self.providerRef)",message="graphite.credentialsRef: providerRef has its own; remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.influxDB) || has(self.influxDB.address) != has(self.providerRef)",message="influxDB.address: give it or providerRef, not both and not neither"
// +kubebuilder:validation:XValidation:rule="!has(self.influxDB) || has(self.influxDB.credentialsRef) != has(self.providerRef)",message="influxDB.credentialsRef: give it or providerRef, not both and not neither"
// +kubebuilder:validation:XValidation:rule="!has(self.datadog) || has(self.datadog.credentialsRef) != has(self.providerRef)",message="datadog.credentialsRef: give it or providerRef, not both and not neither"
// +kubebuilder:validation:XValidation:rule="!has(self.newRelic) || has(self.newRelic.credentialsRef) != has(self.providerRef)",message="newRelic.credentialsRef: give it or providerRef, not both and not neither"
// +kubebuilder:validation:XValidation:rule="!has(self.cloudWatch) || !has(self.cloudWatch.address) || !has(self.providerRef)",message="cloudWatch.address: providerRef has its own; remove one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.cloudWatch) || has(self.cloudWatch.credentialsRef) != has(self.providerRef)",message="cloudWatch.credentialsRef: give it or providerRef, not both and not neither"
type MetricProvider struct {
	// type of the provider: the name of the other field that is given.
	// +required
	// +kubebuilder:validation:Enum=trafficMetrics;prometheus;web;job;datadog;cloudWatch;newRelic;graphite;influxDB
	Type ProviderType `json:"type"`

	BasicProviders `json:",inline"`

	// datadog measures with a query of Datadog's metrics.
	// +optional
	Datadog *DatadogQuery `json:"datadog,omitempty"`

	// cloudWatch measures with an expression of Amazon CloudWatch.
	// +optional
	CloudWatch *CloudWatchQuery `json:"cloudWatch,omitempty"`

	// newRelic measures with a query in NRQL.
	// +optional
	NewRelic *NewRelicQuery `json:"newRelic,omitempty"`

	// graphite measures with a target of Graphite.
	// +optional
	Graphite *GraphiteQuery `json:"graphite,omitempty"`

	// influxDB measures with a query in Flux.
	// +optional
	InfluxDB *InfluxDBQuery `json:"influxDB,omitempty"`
}

// InlineProvider is where and what to measure: the field that type names.
//
// +kubebuilder:validation:XValidation:rule="has(self.trafficMetrics) == (self.type == 'trafficMetrics')",message="trafficMetrics: belongs to type trafficMetrics; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.prometheus) == (self.type == 'prometheus')",message="prometheus: belongs to type prometheus; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.web) == (self.type == 'web')",message="web: belongs to type web; give both or neither"
// +kubebuilder:validation:XValidation:rule="has(self.job) == (self.type == 'job')",message="job: belongs to type job; give both or neither"
// +kubebuilder:validation:XValidation:rule="!has(self.providerRef) || !(self.type in ['trafficMetrics', 'web', 'job'])",message="providerRef: is for systems that a ClusterMetricProvider can name, not for trafficMetrics, web and job; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || has(self.prometheus.address) != has(self.providerRef)",message="prometheus.address: give it or providerRef, not both and not neither"
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || !has(self.prometheus.credentialsRef) || !has(self.providerRef)",message="prometheus.credentialsRef: providerRef has its own; remove one of them"
type InlineProvider struct {
	// type of the provider: the name of the other field that is given.
	// +required
	// +kubebuilder:validation:Enum=trafficMetrics;prometheus;web;job
	Type ProviderType `json:"type"`

	BasicProviders `json:",inline"`
}

// BasicProviders are those that need no account elsewhere.
type BasicProviders struct {
	// providerRef names the ClusterMetricProvider that is queried: it has the address and
	// the credentials, and its type is that of the metric. Not for trafficMetrics, web and
	// job.
	// +optional
	ProviderRef *MetricProviderReference `json:"providerRef,omitempty"`

	// trafficMetrics is what Serin measures of the canary's requests in any case: by its own
	// proxies with the router nginx, and by the TrafficMetrics API with any other router.
	// +optional
	TrafficMetrics *TrafficMetricsQuery `json:"trafficMetrics,omitempty"`

	// prometheus measures with PromQL.
	// +optional
	Prometheus *PrometheusQuery `json:"prometheus,omitempty"`

	// web reads a number from the JSON of any HTTP endpoint.
	// +optional
	Web *WebQuery `json:"web,omitempty"`

	// job runs a Job. It passes when the Job succeeds.
	// +optional
	Job *JobQuery `json:"job,omitempty"`
}

// ProviderType names a provider.
type ProviderType string

// Providers of metrics.
const (
	ProviderTrafficMetrics ProviderType = "trafficMetrics"
	ProviderPrometheus     ProviderType = "prometheus"
	ProviderWeb            ProviderType = "web"
	ProviderJob            ProviderType = "job"
	ProviderDatadog        ProviderType = "datadog"
	ProviderCloudWatch     ProviderType = "cloudWatch"
	ProviderNewRelic       ProviderType = "newRelic"
	ProviderGraphite       ProviderType = "graphite"
	ProviderInfluxDB       ProviderType = "influxDB"
)

// CredentialsReference names a Secret in the namespace of the Rollout. Which keys it
// needs depends on the provider. The operator must be allowed to read it.
type CredentialsReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// MetricProviderReference names a ClusterMetricProvider.
type MetricProviderReference struct {
	// name of the ClusterMetricProvider.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// URL is an http or https address without a user name.
//
// +kubebuilder:validation:MaxLength=2048
// +kubebuilder:validation:Pattern=`^https?://[^\s@]+$`
type URL string

// TrafficMetricsQuery chooses what Serin has measured of the canary's requests since the last
// measurement: by its own proxies with the router nginx, and by the TrafficMetrics API with any
// other router.
type TrafficMetricsQuery struct {
	// quantity is SuccessRate, a fraction from 0 to 1, or P50, P90 or P99 of the latency in
	// seconds, rounded up to a bound of the histogram.
	// +required
	// +kubebuilder:validation:Enum=SuccessRate;P50;P90;P99
	Quantity TrafficQuantity `json:"quantity"`
}

// TrafficQuantity is what Serin measures of requests.
type TrafficQuantity string

// Quantities of traffic.
const (
	QuantitySuccessRate TrafficQuantity = "SuccessRate"
	QuantityP50         TrafficQuantity = "P50"
	QuantityP90         TrafficQuantity = "P90"
	QuantityP99         TrafficQuantity = "P99"
)

// PrometheusQuery measures with a Prometheus, or what speaks its API. Arguments can be in
// the values of label matchers with = and !=, and nowhere else.
//
// +kubebuilder:validation:XValidation:rule="has(self.query) != has(self.counters)",message="query, counters: needs exactly one of them; remove or add one"
// +kubebuilder:validation:XValidation:rule="!has(self.range) || has(self.query)",message="range: is for a query and not for counters; remove it"
type PrometheusQuery struct {
	// address of the server, such as http://prometheus.monitoring:9090. When unset,
	// that of providerRef.
	// +optional
	Address URL `json:"address,omitempty"`

	// query in PromQL that gives one number.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query,omitempty"`

	// range evaluates the query over a period and reduces the points to one number. A gap in
	// them is missing data. When unset, the query is evaluated once.
	// +optional
	Range *QueryRange `json:"range,omitempty"`

	// counters are raw counters of both versions that are compared.
	// +optional
	Counters *CounterQuery `json:"counters,omitempty"`

	// maxAge is the greatest age of a sample. For counters, set it to at least four times the
	// scrape interval. Default 2m.
	// +optional
	// +kubebuilder:default="2m"
	MaxAge Duration `json:"maxAge,omitempty"`

	// credentialsRef names a Secret with the key token, which is sent as a bearer
	// token. When unset, none is sent.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`
}

// QueryRange is a period that ends now.
type QueryRange struct {
	// over is the length of the period, 1 to 1000 times step.
	// +required
	Over Duration `json:"over"`

	// step is the time between two points, at least 1s.
	// +required
	Step Duration `json:"step"`

	// reduce says which number is made of the points: Last, Min, Max or Mean.
	// +required
	// +kubebuilder:validation:Enum=Last;Min;Max;Mean
	Reduce string `json:"reduce"`
}

// CounterQuery are selectors of raw counters, such as
// http_requests_total{service="{{args.service}}"}, without rate() or sum(): Serin
// computes the increase of each series itself, so that no reset is hidden. They are
// evaluated for each version, with arguments that take ArmService or ArmRevision.
//
// +kubebuilder:validation:XValidation:rule="has(self.requests) || has(self.latency)",message="requests, latency: needs at least one of them; add one"
// +kubebuilder:validation:XValidation:rule="has(self.failures) || has(self.latency)",message="failures, latency: nothing to compare; add one of them"
type CounterQuery struct {
	// requests finds the counters of all requests. When unset, those that were timed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Requests string `json:"requests,omitempty"`

	// failures finds the counters of those requests that failed.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Failures string `json:"failures,omitempty"`

	// latency finds the series _bucket of a classic histogram in seconds.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Latency string `json:"latency,omitempty"`
}

// WebQuery reads a number from the JSON of any HTTP endpoint.
type WebQuery struct {
	// url that is called with GET. Arguments can be in its path and its query.
	// +required
	URL URL `json:"url"`

	// jsonPath leads to the number, such as {.data.value}. A string that holds a number counts
	// as one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	JSONPath string `json:"jsonPath"`

	// headers of the request, at most 8. Arguments can be in their values; at most one in each
	// value can be from a Secret.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Headers []WebHeader `json:"headers,omitempty"`
}

// WebHeader is a header of a request.
type WebHeader struct {
	// name of the header.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9-]+$`
	Name string `json:"name"`

	// value of the header, such as Bearer {{args.token}}.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// JobQuery runs a Job in the namespace of the Rollout for each measurement. A Job that
// fails is a failure; one that can't be made or is deleted is missing data.
type JobQuery struct {
	// template of the Job as in a CronJob: metadata and spec. The environment variables
	// SERIN_ARG_NAME hold the arguments, with the name in capitals and _ for -.
	// activeDeadlineSeconds is 10 minutes and backoffLimit 0 when unset, and at most an
	// hour and 6.
	// +required
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Template runtime.RawExtension `json:"template"`

	// repeat, when true, runs a Job at each interval, which must then be 1m or more. Default
	// false: one Job for each step.
	// +optional
	Repeat bool `json:"repeat,omitempty"`
}

// DatadogQuery is a query of Datadog's metrics. The newest point of its series is the
// measurement. An argument in the query may contain only letters, digits, -, _ and .; it
// must not begin or end with - or ., and neither may be doubled.
type DatadogQuery struct {
	// address of the Datadog API, such as https://api.datadoghq.eu for the EU site.
	// Default https://api.datadoghq.com. Ignored when providerRef is set.
	// +optional
	// +kubebuilder:default="https://api.datadoghq.com"
	Address URL `json:"address,omitempty"`

	// query in Datadog's query language, 1 to 4096 characters. It must return a single
	// series; several series, or none, are missing data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// window is the length of time before now that the query covers, 1m to 6h.
	// Default 5m.
	// +optional
	// +kubebuilder:default="5m"
	Window Duration `json:"window,omitempty"`

	// credentialsRef names a Secret with the keys apiKey and appKey. Set either this
	// field or providerRef, which has its own credentials.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`
}

// CloudWatchQuery is a metric math or Metrics Insights expression of Amazon CloudWatch.
// The newest point of its series is the measurement. An argument in the expression may
// contain only letters, digits, -, _ and .; it must not begin or end with - or ., and
// neither may be doubled.
type CloudWatchQuery struct {
	// region is the AWS region of the metrics, such as eu-central-1.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}$`
	Region string `json:"region"`

	// address of the CloudWatch API, for example of a VPC endpoint. Default: the public
	// endpoint of the region. Can't be combined with providerRef.
	// +optional
	Address URL `json:"address,omitempty"`

	// expression of 1 to 2048 characters. It must return a single series;
	// several series, or none, are missing data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Expression string `json:"expression"`

	// period is the length of time that each point covers. It must be a multiple of 1m, and at
	// most as long as window. Default 1m.
	// +optional
	// +kubebuilder:default="1m"
	Period Duration `json:"period,omitempty"`

	// window is the length of time before now that the expression covers, 1m to 6h.
	// Default 10m.
	// +optional
	// +kubebuilder:default="10m"
	Window Duration `json:"window,omitempty"`

	// credentialsRef names a Secret with the keys accessKeyID and secretAccessKey, and
	// also sessionToken if temporaryCredentials is true. Set either this field or
	// providerRef, which has its own credentials.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`

	// temporaryCredentials says that the credentials are temporary ones of AWS STS, so
	// that the Secret has the key sessionToken too. Default false.
	// +optional
	TemporaryCredentials bool `json:"temporaryCredentials,omitempty"`
}

// NewRelicQuery is a query in NRQL. The single number that it returns is the
// measurement. An argument in the query may contain only letters, digits, -, _ and .; it
// must not begin or end with - or ., and neither may be doubled.
type NewRelicQuery struct {
	// address of New Relic's GraphQL API, such as https://api.eu.newrelic.com/graphql for
	// the EU region. Default https://api.newrelic.com/graphql. Ignored when providerRef is
	// set.
	// +optional
	// +kubebuilder:default="https://api.newrelic.com/graphql"
	Address URL `json:"address,omitempty"`

	// accountID is the number of the New Relic account that is queried, at least 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	AccountID int64 `json:"accountID"`

	// query in NRQL, 1 to 4096 characters. It must return one row with one number;
	// anything else is missing data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// credentialsRef names a Secret whose key apiKey holds a New Relic user key. Set
	// either this field or providerRef, which has its own credentials.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`
}

// GraphiteQuery is a target of Graphite's render API. The newest point of its series is
// the measurement. An argument in the target may contain only letters, digits, -, _ and
// .; it must not begin or end with - or ., and neither may be doubled.
type GraphiteQuery struct {
	// address of the Graphite server, such as http://graphite.monitoring. Set either this
	// field or providerRef, which has an address of its own.
	// +optional
	Address URL `json:"address,omitempty"`

	// target to render, 1 to 4096 characters. It must give a single series; several
	// series, or none, are missing data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Target string `json:"target"`

	// window is the length of time before now that is rendered, 1m to 6h. Default 5m.
	// +optional
	// +kubebuilder:default="5m"
	Window Duration `json:"window,omitempty"`

	// credentialsRef names a Secret with the keys username and password, which are sent
	// by HTTP basic authentication. When unset, the request has no credentials. Can't be
	// combined with providerRef.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`
}

// InfluxDBQuery is a query in Flux. The newest row that it returns is the measurement.
// An argument in the query may contain only letters, digits, -, _ and .; it must not
// begin or end with - or ., and neither may be doubled.
type InfluxDBQuery struct {
	// address of the InfluxDB server, such as http://influxdb.monitoring:8086. Set either
	// this field or providerRef, which has an address of its own.
	// +optional
	Address URL `json:"address,omitempty"`

	// organization is the name or ID of the InfluxDB organization that is queried, 1 to
	// 256 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Organization string `json:"organization"`

	// query in Flux, 1 to 4096 characters. It must return a single table with the columns
	// _time and _value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`

	// maxAge is the greatest age of the newest row, 1m to 6h. An older row is missing data.
	// Default 5m.
	// +optional
	// +kubebuilder:default="5m"
	MaxAge Duration `json:"maxAge,omitempty"`

	// credentialsRef names a Secret whose key token holds an API token. Set either this
	// field or providerRef, which has its own credentials.
	// +optional
	CredentialsRef *CredentialsReference `json:"credentialsRef,omitempty"`
}
