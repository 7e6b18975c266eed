// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/base64"
	"errors"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const tooLarge = " holds no Helm record that can be read: it is larger than 8 MiB: make the chart smaller, for instance by removing files that it does not use"

// bomb is a record of some kilobytes that unpacks to the size.
func bomb(t testing.TB, size int) *corev1.Secret {
	t.Helper()
	packed := base64.StdEncoding.EncodeToString(zipped(t, size))
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: recordName("a", 1)},
		Data:       map[string][]byte{"release": []byte(packed)},
	}
}

func TestARecordThatUnpacksToTooMuchIsRefused(t *testing.T) {
	for name, size := range map[string]int{"one byte too many": maxRecord + 1, "a bomb": 64 << 20} {
		t.Run(name, func(t *testing.T) {
			releases := newWorld(bomb(t, size)).helm()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := releases.Propose(t.Context(), ask("a", "", "a: 1"))
			runtime.ReadMemStats(&after)
			var invalid InvalidError
			if !errors.As(err, &invalid) || invalid.Message != "Secret "+recordName("a", 1)+tooLarge {
				t.Error(err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 8*maxRecord {
				t.Errorf("reading it took %d MiB", used>>20)
			}
		})
	}
	if _, err := unzip([]byte(base64.StdEncoding.EncodeToString(zipped(t, maxRecord)))); err != nil {
		t.Errorf("a record of just 8 MiB: %v", err)
	}
}

// Helm reads all records of a release when it upgrades.
func TestAnOlderRecordThatUnpacksToTooMuchIsRefused(t *testing.T) {
	w := newWorld()
	w.install(t, "shop", nil)
	w.upgrade(t, "shop", nil)
	w.pack(t, load(t, "shop"))
	secrets := w.client.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(t.Context(), recordName("shop", 1), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = bomb(t, 64<<20).Data
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	q := ask("shop", "web", "{tag: '2'}")
	q.Version = 2
	err = w.helm().Adopt(t.Context(), q)
	var invalid InvalidError
	if !errors.As(err, &invalid) || invalid.Message != "Secret "+secret.Name+tooLarge {
		t.Error(err)
	}
}
