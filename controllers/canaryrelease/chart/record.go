// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	helm "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/serin-dev/serin/controllers/canaryrelease/releases"
)

// maxRecord bounds a record in memory: a megabyte of a Secret can unpack to a thousand,
// and a record that is read takes several times its size.
const maxRecord = 8 << 20

func recordName(release string, version int) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", release, version)
}

// record is one revision as Helm stored it, packed.
type record struct {
	release *helm.Release
	packed  []byte
}

func (s *session) record(ctx context.Context, release string, version int) (*record, error) {
	secret, err := s.client.CoreV1().Secrets(s.namespace).Get(ctx, recordName(release, version), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, releases.Invalid(fieldVersion, fmt.Sprintf("there is no revision %d of release %s in namespace %s: name the one that is deployed (helm history)", version, release, s.namespace))
	}
	if err != nil {
		return nil, err
	}
	return unpackSecret(secret)
}

func unpackSecret(secret *corev1.Secret) (*record, error) {
	r := &record{packed: secret.Data["release"]}
	var err error
	if r.release, err = unpack(r.packed); err != nil {
		return nil, unreadable(secret, err)
	}
	return r, nil
}

func unreadable(secret *corev1.Secret, why error) error {
	return releases.Invalid(fieldVersion, "Secret "+secret.Name+" holds no Helm record that can be read: "+why.Error())
}

// fresh is an unchanged chart; Helm changes a chart as it renders it.
func (r *record) fresh() (*helm.Release, error) { return unpack(r.packed) }

// unpack reads a record. Its errors say nothing of the content.
func unpack(packed []byte) (*helm.Release, error) {
	raw, err := unzip(packed)
	if err != nil {
		return nil, err
	}
	release := &helm.Release{}
	if err := json.Unmarshal(raw, release); err != nil {
		return nil, errors.New("it is not the JSON of a release")
	}
	if release.Info == nil || release.Chart == nil || release.Chart.Metadata == nil {
		return nil, errors.New("it holds no chart")
	}
	return release, nil
}

// unzip is the JSON of a record, whose size is bounded.
func unzip(packed []byte) ([]byte, error) {
	reader, err := plain(packed)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(reader, maxRecord+1))
	if err != nil {
		return nil, errors.New("its gzip is damaged")
	}
	return raw, bounded(int64(len(raw)))
}

// measure refuses a record that is too large, without keeping what it unpacks to. Helm
// itself skips a record that is damaged.
func measure(secret *corev1.Secret) error {
	reader, err := plain(secret.Data["release"])
	if err != nil {
		return nil //nolint:nilerr // Helm says what is wrong with it
	}
	size, _ := io.Copy(io.Discard, io.LimitReader(reader, maxRecord+1)) // as far as it can be read
	if err := bounded(size); err != nil {
		return unreadable(secret, err)
	}
	return nil
}

func bounded(size int64) error {
	if size > maxRecord {
		return fmt.Errorf("it is larger than %d MiB: make the chart smaller, for instance by removing files that it does not use", maxRecord>>20)
	}
	return nil
}

// plain reads a record without its packing. Before Helm compressed its records there was
// only base64.
func plain(packed []byte) (io.Reader, error) {
	raw, err := base64.StdEncoding.AppendDecode(nil, packed)
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	if !bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		return bytes.NewReader(raw), nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("it is not gzip")
	}
	return reader, nil
}
