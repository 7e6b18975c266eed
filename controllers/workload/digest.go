// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Digest of a pod template.
type Digest [sha256.Size]byte

// TemplateDigest is equal for two templates that SameTemplate calls the same. It holds
// within one process only: another version of the API types may make another one.
func TemplateDigest(t *corev1.PodTemplateSpec) Digest {
	d := digest{sha256.New()}
	d.value(reflect.ValueOf(*withoutHash(t)))
	return Digest(d.Sum(nil))
}

// digest writes values so that no two that differ are written alike. What is written of a
// value is as long as itself says.
type digest struct{ hash.Hash }

// Writing to a hash never fails.
func (d digest) number(n uint64) { _, _ = d.Write(binary.AppendUvarint(nil, n)) }

func (d digest) text(s string) {
	d.number(uint64(len(s)))
	_, _ = d.Write([]byte(s))
}

func (d digest) value(v reflect.Value) {
	if d.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			d.value(v.Field(i))
		}
	case reflect.Pointer:
		d.pointer(v)
	case reflect.Slice:
		d.number(uint64(v.Len())) // an empty one means the same as none
		for i := range v.Len() {
			d.value(v.Index(i))
		}
	case reflect.Map:
		d.entries(v)
	case reflect.String:
		d.text(v.String())
	default:
		d.scalar(v)
	}
}

// special writes the types whose values may be the same without being equal.
func (d digest) special(v reflect.Value) bool {
	switch o := v.Interface().(type) {
	case resource.Quantity:
		d.text(number(o))
	case metav1.Time:
		d.text(o.UTC().Format(time.RFC3339Nano))
	case metav1.MicroTime:
		d.text(o.UTC().Format(time.RFC3339Nano))
	case metav1.FieldsV1:
		encoded, err := json.Marshal(o)
		if err != nil {
			return false
		}
		d.text(string(encoded))
	default:
		return false
	}
	return true
}

// number writes a quantity as digits without zeros at the end, and its scale.
func number(q resource.Quantity) string {
	q = q.DeepCopy() // the next call changes it
	dec := q.AsDec()
	digits := dec.UnscaledBig().String()
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	scale := int64(dec.Scale()) - int64(len(digits)-len(trimmed))
	return string(binary.AppendVarint([]byte(trimmed+"e"), scale))
}

func (d digest) pointer(v reflect.Value) {
	if v.IsNil() {
		d.number(0)
		return
	}
	d.number(1)
	d.value(v.Elem())
}

// entries writes a map in the order of its keys, which are strings in all API types.
func (d digest) entries(v reflect.Value) {
	d.number(uint64(v.Len()))
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		d.text(key.String())
		d.value(v.MapIndex(key))
	}
}

func (d digest) scalar(v reflect.Value) {
	switch {
	case v.CanInt():
		d.number(uint64(v.Int())) //nolint:gosec // each number has one form
	case v.CanUint():
		d.number(v.Uint())
	case v.Kind() == reflect.Bool && v.Bool():
		d.number(1)
	case v.Kind() == reflect.Bool:
		d.number(0)
	default:
		panic("a pod template has a field of the type " + v.Type().String()) // a test fills every field
	}
}
