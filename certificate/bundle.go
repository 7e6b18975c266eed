// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// Validity of a certificate and of its authority.
	Validity = 90 * 24 * time.Hour
	// renewAt is the part of its life after which a certificate is replaced: 2/3, so
	// that a month is left for whatever keeps it from being replaced.
	renewAt = Validity / 3 * 2
	// skew is how far before now a certificate begins, for clocks that are behind.
	skew = time.Hour
	// serialBits is the size of serial numbers: random ones do not collide.
	serialBits = 127
)

// Bundle is a serving certificate with all that is needed to use it, in PEM.
type Bundle struct {
	// Certificate and its private Key.
	Certificate, Key []byte
	// Authorities by which clients know the certificate, the newest first. Those of
	// the certificates before it are kept while they are valid: another replica may
	// show one of these.
	Authorities []byte
}

// Make makes a certificate for DNS names, and an authority that signs it and nothing
// else ever. The authorities of previous that are still valid are kept.
func Make(hosts []string, now time.Time, previous Bundle) (Bundle, error) {
	if len(hosts) == 0 {
		return Bundle{}, errors.New("a serving certificate needs a DNS name")
	}
	authority := template(pkix.Name{CommonName: hosts[0] + "-ca"}, now)
	authority.IsCA, authority.BasicConstraintsValid, authority.MaxPathLenZero = true, true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	// What could be signed with the key, while it exists, is limited too.
	authority.PermittedDNSDomainsCritical, authority.PermittedDNSDomains = true, hosts
	leaf := template(pkix.Name{CommonName: hosts[0]}, now)
	leaf.DNSNames = hosts
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	signedAuthority, authorityKey, err := sign(authority, authority, nil)
	if err != nil {
		return Bundle{}, fmt.Errorf("make an authority: %w", err)
	}
	signed, key, err := sign(leaf, authority, authorityKey)
	if err != nil {
		return Bundle{}, fmt.Errorf("make a serving certificate: %w", err)
	}
	encodedKey, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return Bundle{}, fmt.Errorf("encode the key of a serving certificate: %w", err)
	}
	authorities, err := certutil.EncodeCertificates(append([]*x509.Certificate{signedAuthority}, valid(previous.Authorities, now)...)...)
	if err != nil {
		return Bundle{}, fmt.Errorf("encode the authorities: %w", err)
	}
	certificate, err := certutil.EncodeCertificates(signed)
	return Bundle{Certificate: certificate, Key: encodedKey, Authorities: authorities}, err
}

// Due says why a bundle must be replaced; "" while it need not be.
func (b Bundle) Due(hosts []string, now time.Time) string {
	if len(b.Certificate) == 0 && len(b.Key) == 0 {
		return "there is none"
	}
	pair, err := tls.X509KeyPair(b.Certificate, b.Key)
	if err != nil {
		return "it can't be read: " + err.Error()
	}
	if now.Sub(pair.Leaf.NotBefore) > renewAt {
		return "it is valid until " + pair.Leaf.NotAfter.Format(time.RFC3339)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(b.Authorities)
	for _, host := range hosts {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now}); err != nil {
			return err.Error()
		}
	}
	return ""
}

// Expired is whether clients refuse the certificate at a time.
func (b Bundle) Expired(now time.Time) bool {
	pair, err := tls.X509KeyPair(b.Certificate, b.Key)
	return err != nil || now.After(pair.Leaf.NotAfter)
}

// same is whether it is the same certificate.
func (b Bundle) same(other Bundle) bool {
	return bytes.Equal(b.Certificate, other.Certificate) && bytes.Equal(b.Key, other.Key)
}

// valid are the certificates of a list that can be read and have not expired, at most
// as many as a life of a certificate can see twice over.
func valid(list []byte, now time.Time) []*x509.Certificate {
	const most = 4
	all, err := certutil.ParseCertsPEM(list)
	if err != nil {
		return nil // there are none, or another writer replaced them
	}
	var kept []*x509.Certificate
	for _, c := range all {
		if now.Before(c.NotAfter) && len(kept) < most {
			kept = append(kept, c)
		}
	}
	return kept
}

func template(subject pkix.Name, now time.Time) *x509.Certificate {
	return &x509.Certificate{Subject: subject, NotBefore: now.Add(-skew).UTC(), NotAfter: now.Add(Validity).UTC()}
}

// sign makes a key, and a certificate of it that parent signs; itself without parentKey.
func sign(c, parent *x509.Certificate, parentKey crypto.Signer) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parentKey == nil {
		parentKey = key
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(der)
	return signed, key, err
}
