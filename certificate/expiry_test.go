// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/serin-dev/serin/certificate"
)

type shown []byte

func (s shown) CurrentCertKeyContent() ([]byte, []byte) { return s, nil }

// expiries are the values of the metric.
func expiries(t *testing.T, s certificate.Shown) (values []float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(certificate.Expiry("metrics", s))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			values = append(values, m.GetGauge().GetValue())
		}
	}
	return values
}

func TestTheMetricSaysUntilWhenTheCertificateIsValid(t *testing.T) {
	b, err := certificate.Make(hosts, began, certificate.Bundle{})
	if err != nil {
		t.Fatal(err)
	}
	want := began.AddDate(0, 0, 90).Unix()
	if got := expiries(t, shown(b.Certificate)); len(got) != 1 || int64(got[0]) != want {
		t.Errorf("got %v, want %d", got, want)
	}
}

func TestWithoutACertificateThereIsNoMetric(t *testing.T) {
	if got := expiries(t, shown(nil)); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
