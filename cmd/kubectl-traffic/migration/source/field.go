// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	kjson "sigs.k8s.io/json"
)

// Field is a field of an object. To ask for its value marks it as read.
type Field struct {
	object  *Object
	path    string
	value   any
	present bool
}

// At is a field below it.
func (f Field) At(names ...string) Field {
	for _, name := range names {
		m, is := f.value.(map[string]any)
		if f.present && f.value != nil && !is {
			f.Fail("must have fields")
		}
		value, present := m[name]
		f = Field{object: f.object, path: join(f.path, name), value: value, present: present && value != nil}
	}
	return f
}

// Present is whether the field is given; it does not mark it as read.
func (f Field) Present() bool { return f.present }

// Path of the field.
func (f Field) Path() string { return f.path }

// Read marks the field, and what is below it, as read.
func (f Field) Read() Field {
	if f.present {
		f.object.read[f.path] = true
	}
	return f
}

// Text is a string, "" when it is not given.
func (f Field) Text() string {
	s, is := f.Read().value.(string)
	if f.present && !is {
		f.Fail("%v is not a string: put it in quotes", f.value)
	}
	return s
}

// Flag is a truth value, with what it is when it is not given.
func (f Field) Flag(unset bool) bool {
	if !f.present {
		return unset
	}
	b, is := f.Read().value.(bool)
	if !is {
		f.Fail("%v is not true or false", f.value)
	}
	return b
}

// Number is a number, 0 when it is not given.
func (f Field) Number() float64 {
	switch n := f.Read().value.(type) {
	case float64:
		return n
	case int64:
		return float64(n)
	case int:
		return float64(n)
	case nil:
	default:
		f.Fail("%v is not a number", f.value)
	}
	return 0
}

// Int is a whole number within bounds; unset when it is not given.
func (f Field) Int(unset, lowest, highest int32) int32 {
	if !f.present {
		return unset
	}
	n := f.Number()
	if n != math.Trunc(n) || n < float64(lowest) || n > float64(highest) {
		f.Fail("%v is not a whole number from %d to %d", f.value, lowest, highest)
		return lowest
	}
	return int32(n)
}

// Duration is a length of time: a text such as 90s or 1h30m, or a number of seconds. It is
// 0 when it is not given.
func (f Field) Duration() time.Duration {
	if !f.present {
		return 0
	}
	said := fmt.Sprint(f.Read().value)
	if seconds, err := strconv.ParseInt(said, 10, 32); err == nil && seconds >= 0 {
		return time.Duration(seconds) * time.Second
	}
	d, err := time.ParseDuration(said)
	if err != nil || d < 0 {
		f.Fail("%q is not a duration: write whole numbers with h, m or s, such as 90s or 1h30m", said)
	}
	return d
}

// Items are those of a list. They are not marked as read.
func (f Field) Items() (list []Field) {
	items, is := f.value.([]any)
	if f.present && !is {
		f.Read().Fail("is not a list")
	}
	if is && len(items) == 0 {
		f.Read()
	}
	for i, item := range items {
		list = append(list, Field{object: f.object, path: fmt.Sprintf("%s[%d]", f.path, i), value: item, present: item != nil})
	}
	return list
}

// Keys are the names below the field, sorted. They are not marked as read.
func (f Field) Keys() []string {
	m, is := f.value.(map[string]any)
	if f.present && !is {
		f.Read().Fail("must have fields")
	}
	if is && len(m) == 0 {
		f.Read()
	}
	return slices.Sorted(maps.Keys(m))
}

// Texts are a map of texts.
func (f Field) Texts() map[string]string {
	texts := map[string]string{}
	for _, key := range f.Keys() {
		texts[key] = f.At(key).Text()
	}
	return texts
}

// Decode reads the field with everything below it into a type of Kubernetes. Fields that
// the type does not have are errors.
func (f Field) Decode(into any) {
	content, err := json.Marshal(f.Read().value)
	if err != nil {
		f.Fail("can't be read: %v", err)
		return
	}
	strict, err := kjson.UnmarshalStrict(content, into)
	for _, e := range append(strict, err) {
		if e != nil {
			f.Fail("%s: correct its name, or remove it", strings.TrimPrefix(e.Error(), "json: "))
		}
	}
}

// Value is the field as it was read.
func (f Field) Value() any { return f.Read().value }

// Fail says what is wrong with the field, and what to do.
func (f Field) Fail(format string, args ...any) {
	f.object.report.fail(f.object.item(f.path, "", fmt.Sprintf(format, args...)))
}

// Missing says that a field must be given, and which.
func (f Field) Missing(fix string) { f.Fail("is missing: %s", fix) }

// Note reports what became of the field. One that has no equivalent is marked as read.
func (f Field) Note(kind Kind, format string, args ...any) {
	if kind == NoEqual {
		f.Read()
	}
	f.object.report.add(f.object.item(f.path, kind, fmt.Sprintf(format, args...)))
}
