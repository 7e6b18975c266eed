// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"github.com/prometheus/client_golang/prometheus"
	certutil "k8s.io/client-go/util/cert"
)

// Shown has the certificate that clients see, PEM.
type Shown interface {
	CurrentCertKeyContent() (certificate, key []byte)
}

// Expiry measures until when the certificate of a server is valid that clients see: "metrics"
// or "webhook".
func Expiry(server string, s Shown) prometheus.Collector {
	return expiry{s, prometheus.NewDesc("serin_"+server+"_certificate_expiry_timestamp_seconds",
		"Time until which the certificate of the "+server+" server is valid, in seconds since 1970.", nil, nil)}
}

type expiry struct {
	shown Shown
	desc  *prometheus.Desc
}

func (e expiry) Describe(ch chan<- *prometheus.Desc) { ch <- e.desc }

// Collect sends nothing while there is no certificate: 0 would be a time long ago.
func (e expiry) Collect(ch chan<- prometheus.Metric) {
	content, _ := e.shown.CurrentCertKeyContent()
	chain, err := certutil.ParseCertsPEM(content)
	if err != nil {
		return
	}
	until := chain[0].NotAfter // the first is the server's own
	ch <- prometheus.MustNewConstMetric(e.desc, prometheus.GaugeValue, float64(until.Unix()))
}
