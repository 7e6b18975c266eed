// SPDX-License-Identifier: Apache-2.0

package certificate_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	certutil "k8s.io/client-go/util/cert"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/serin-dev/serin/certificate"
)

var (
	hosts = []string{"serin-metrics.serin-system.svc"}
	began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// trusted is whether a client that has the authorities trusts a certificate.
func trusted(certificatePEM, keyPEM, authorities []byte, host string, now time.Time) error {
	pair, err := tls.X509KeyPair(certificatePEM, keyPEM)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
	return err
}

func TestACertificateIsTrustedByItsNameAlone(t *testing.T) {
	b, err := certificate.Make(hosts, began, certificate.Bundle{})
	if err != nil {
		t.Fatal(err)
	}
	if err := trusted(b.Certificate, b.Key, b.Authorities, hosts[0], began); err != nil {
		t.Error(err)
	}
	if err := trusted(b.Certificate, b.Key, b.Authorities, "kubernetes.default.svc", began); err == nil {
		t.Error("it is trusted by the name of another Service")
	}
	if authorities, err := certutil.ParseCertsPEM(b.Authorities); err != nil || len(authorities) != 1 || !authorities[0].IsCA {
		t.Errorf("authorities %v, %v", authorities, err)
	}
	if strings.Count(string(b.Key), "PRIVATE KEY") != 2 || strings.Contains(string(b.Authorities), "PRIVATE") {
		t.Error("there is to be the key of the certificate, and none of the authority")
	}
}

func TestWhatMustBeReplaced(t *testing.T) {
	b, err := certificate.Make(hosts, began, certificate.Bundle{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := certificate.Make(hosts, began, certificate.Bundle{})
	if err != nil {
		t.Fatal(err)
	}
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		bundle certificate.Bundle
		hosts  []string
		at     time.Time
		due    string
	}{
		"a new one":                        {bundle: b, at: began},
		"one at half its life":             {bundle: b, at: began.Add(45 * day)},
		"one at two thirds of its life":    {bundle: b, at: began.Add(60 * day), due: "valid until"},
		"one that has expired":             {bundle: b, at: began.Add(91 * day), due: "valid until"},
		"one for another name":             {bundle: b, at: began, hosts: []string{"elsewhere.serin-system.svc"}, due: "elsewhere"},
		"one that another authority knows": {bundle: certificate.Bundle{Certificate: b.Certificate, Key: b.Key, Authorities: other.Authorities}, at: began, due: "authority"},
		"one with the key of another":      {bundle: certificate.Bundle{Certificate: b.Certificate, Key: other.Key, Authorities: b.Authorities}, at: began, due: "can't be read"},
		"none":                             {at: began, due: "there is none"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := hosts
			if test.hosts != nil {
				wanted = test.hosts
			}
			got := test.bundle.Due(wanted, test.at)
			if (got == "") != (test.due == "") || !strings.Contains(got, test.due) {
				t.Errorf("got %q, want %q", got, test.due)
			}
		})
	}
}

// cluster is the Secret and the APIService that all replicas share.
type cluster struct {
	bundle               certificate.Bundle
	version              int
	announced            []byte
	failLoad             error
	failSave             error
	failAnnounce         error
	beforeSave           func()
	saves, announcements int
}

func (c *cluster) Load(context.Context) (certificate.Bundle, string, error) {
	return c.bundle, strconv.Itoa(c.version), c.failLoad
}

func (c *cluster) Save(_ context.Context, b certificate.Bundle, version string) error {
	if f := c.beforeSave; f != nil {
		c.beforeSave = nil
		f()
	}
	if c.failSave != nil {
		return c.failSave
	}
	if version != strconv.Itoa(c.version) {
		return certificate.ErrConflict
	}
	c.bundle, c.version, c.saves = b, c.version+1, c.saves+1
	return nil
}

func (c *cluster) Announce(_ context.Context, authorities []byte) error {
	if c.failAnnounce != nil {
		return c.failAnnounce
	}
	c.announced, c.announcements = authorities, c.announcements+1
	return nil
}

func replica(t *testing.T, c *cluster, now *clocktesting.FakeClock) *certificate.Rotator {
	t.Helper()
	return certificate.NewRotator(certificate.Options{Hosts: hosts, Store: c, Announcer: c, Clock: now, Log: testr.New(t)})
}

func step(t *testing.T, k *certificate.Rotator) time.Duration {
	t.Helper()
	pause, err := k.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return pause
}

// check fails unless a client with what was announced trusts the replica.
func check(t *testing.T, c *cluster, k *certificate.Rotator, now time.Time) {
	t.Helper()
	cert, key := k.CurrentCertKeyContent()
	if err := trusted(cert, key, c.announced, hosts[0], now); err != nil {
		t.Errorf("at %s: %v", now, err)
	}
	if err := k.Ready(); err != nil {
		t.Error(err)
	}
}

func TestReplicasThatBeginTogetherShareOneCertificate(t *testing.T) {
	c, now := &cluster{}, clocktesting.NewFakeClock(began)
	a, b := replica(t, c, now), replica(t, c, now)
	c.beforeSave = func() { step(t, b) } // b is faster
	if pause := step(t, a); pause != 0 {
		t.Errorf("the slower one looks again after %s", pause)
	}
	step(t, a)
	certA, _ := a.CurrentCertKeyContent()
	certB, _ := b.CurrentCertKeyContent()
	if c.saves != 1 || string(certA) != string(certB) || len(certA) == 0 {
		t.Errorf("%d certificates", c.saves)
	}
	check(t, c, a, began)
	check(t, c, b, began)
}

// For a year, two replicas look at their own pace, and clients trust each of them at any
// time.
func TestClientsTrustEveryReplicaWhileCertificatesAreRenewed(t *testing.T) {
	c, now := &cluster{}, clocktesting.NewFakeClock(began)
	replicas := []*certificate.Rotator{replica(t, c, now), replica(t, c, now)}
	next := []time.Time{began, began.Add(17 * time.Second)}
	for end := began.AddDate(1, 0, 0); now.Now().Before(end); {
		for i, k := range replicas {
			if !now.Now().Before(next[i]) {
				pause := step(t, k)
				if pause == time.Minute { // nothing is under way: skip ahead
					pause = time.Duration(6+i) * time.Hour
				}
				next[i] = now.Now().Add(pause)
			}
			if cert, _ := k.CurrentCertKeyContent(); len(cert) > 0 {
				check(t, c, k, now.Now())
			}
		}
		wait := min(next[0].Sub(now.Now()), next[1].Sub(now.Now()))
		now.Step(max(wait, time.Second))
	}
	if c.saves != 7 {
		t.Errorf("%d certificates in a year, want one every 60 days", c.saves)
	}
}

func TestANewCertificateIsShownAfterItsAuthorityIsKnown(t *testing.T) {
	c, now := &cluster{}, clocktesting.NewFakeClock(began)
	k := replica(t, c, now)
	step(t, k)
	before, _ := k.CurrentCertKeyContent()
	c.bundle = certificate.Bundle{} // another client empties the Secret
	pause := step(t, k)
	if cert, _ := k.CurrentCertKeyContent(); string(cert) != string(before) {
		t.Error("the new certificate is shown at once")
	}
	check(t, c, k, now.Now())
	now.Step(pause)
	step(t, k)
	if cert, _ := k.CurrentCertKeyContent(); string(cert) == string(before) {
		t.Error("the new certificate is not shown")
	}
	check(t, c, k, now.Now())
}

func TestTroubleKeepsWhatThereIs(t *testing.T) {
	c, now := &cluster{}, clocktesting.NewFakeClock(began)
	k := replica(t, c, now)
	if err := k.Ready(); err == nil {
		t.Error("ready without a certificate")
	}
	c.failAnnounce = errors.New("forbidden")
	if _, err := k.Step(t.Context()); err == nil || k.Ready() == nil {
		t.Error("ready although no client knows the authority")
	}
	c.failAnnounce = nil
	step(t, k)
	check(t, c, k, began)
	now.Step(61 * 24 * time.Hour)
	for _, fail := range []*error{&c.failLoad, &c.failSave} {
		*fail = errors.New("the API is away")
		if _, err := k.Step(t.Context()); err == nil {
			t.Error("no error is returned")
		}
		check(t, c, k, now.Now())
		*fail = nil
	}
	now.Step(30 * 24 * time.Hour)
	if err := k.Ready(); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("expired, it says %v", err)
	}
	step(t, k)
	check(t, c, k, now.Now())
}

func TestRunBeginsOnceThereIsACertificate(t *testing.T) {
	c, now := &cluster{failLoad: errors.New("not yet")}, clocktesting.NewFakeClock(began)
	k := replica(t, c, now)
	ctx, cancel := context.WithCancel(t.Context())
	begun, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		k.Run(ctx, func() { close(begun) })
	}()
	for !now.HasWaiters() {
		select {
		case <-begun:
			t.Fatal("begun without a certificate")
		case <-t.Context().Done():
			t.Fatal("it never waits")
		default:
		}
	}
	c.failLoad = nil
	now.Step(time.Minute)
	<-begun
	cancel()
	<-done
}
