// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"crypto/sha256"
	"encoding/binary"
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
	d := make(digest, 0, usualTemplate)
	d.value(reflect.ValueOf(withoutHash(t)).Elem())
	return sha256.Sum256(d)
}

// usualTemplate is more bytes than most templates are written in.
const usualTemplate = 4 << 10

// digest are values that are written so that no two that differ are written alike. What is
// written of a value is as long as itself says.
type digest []byte

func (d *digest) number(n uint64) { *d = binary.AppendUvarint(*d, n) }

func (d *digest) text(s string) {
	d.number(uint64(len(s)))
	*d = append(*d, s...)
}

func (d *digest) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		d.structure(v)
	case reflect.Pointer:
		d.pointer(v)
	case reflect.Slice:
		d.number(uint64(v.Len())) //nolint:gosec // no length is negative; an empty one means the same as none
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

var (
	typeQuantity  = reflect.TypeFor[resource.Quantity]()
	typeTime      = reflect.TypeFor[metav1.Time]()
	typeMicroTime = reflect.TypeFor[metav1.MicroTime]()
	typeFieldsV1  = reflect.TypeFor[metav1.FieldsV1]()
)

// structure writes the fields of a value, but for the types whose values may be the same
// without being equal. Of no other one an interface is made, which copies the whole value.
func (d *digest) structure(v reflect.Value) {
	switch v.Type() {
	case typeQuantity:
		d.text(number(v.Interface().(resource.Quantity))) //nolint:forcetypeassert // it has this type
	case typeTime:
		d.text(v.Interface().(metav1.Time).UTC().Format(time.RFC3339Nano)) //nolint:forcetypeassert // it has this type
	case typeMicroTime:
		d.text(v.Interface().(metav1.MicroTime).UTC().Format(time.RFC3339Nano)) //nolint:forcetypeassert // it has this type
	case typeFieldsV1:
		d.text(v.Addr().Interface().(*metav1.FieldsV1).GetRawString())
	default:
		for i := range v.NumField() { //nolint:modernize // Fields also makes a description of each field
			d.value(v.Field(i))
		}
	}
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

func (d *digest) pointer(v reflect.Value) {
	if v.IsNil() {
		d.number(0)
		return
	}
	d.number(1)
	d.value(v.Elem())
}

// entries writes a map in the order of its keys, which are strings in all API types.
func (d *digest) entries(v reflect.Value) {
	d.number(uint64(v.Len())) //nolint:gosec // no length is negative
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		d.text(key.String())
		d.value(v.MapIndex(key))
	}
}

func (d *digest) scalar(v reflect.Value) {
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
