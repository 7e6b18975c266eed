// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/binary"
	"errors"
	"math"
)

// codec writes values into data or reads them from it, in the one order that
// both directions share. After an error it reads zeros.
type codec struct {
	data    []byte
	reading bool
	err     error
}

var errTruncated = errors.New("the wrong number of values")

// float is a number in full precision.
func (c *codec) float(x *float64) {
	if b := c.bytes(8); b != nil {
		*x = math.Float64frombits(binary.BigEndian.Uint64(b))
	} else if !c.reading {
		c.data = binary.BigEndian.AppendUint64(c.data, math.Float64bits(*x))
	}
}

// stored are numbers that storable returned, and rough those that rough did.
func (c *codec) stored(values ...*float64) { c.leading(5, values) }
func (c *codec) rough(values ...*float64)  { c.leading(4, values) }

// leading keeps the first bytes of each number.
func (c *codec) leading(size int, values []*float64) {
	for _, x := range values {
		var wide [8]byte
		if b := c.bytes(size); b != nil {
			copy(wide[:], b)
			*x = math.Float64frombits(binary.BigEndian.Uint64(wide[:]))
		} else if !c.reading {
			binary.BigEndian.PutUint64(wide[:], math.Float64bits(*x))
			c.data = append(c.data, wide[:size]...)
		}
	}
}

// count is a whole number; small ones take one byte.
func (c *codec) count(values ...*int64) {
	for _, x := range values {
		if !c.reading {
			c.data = binary.AppendVarint(c.data, *x)
			continue
		}
		v, n := binary.Varint(c.data)
		if n <= 0 || c.err != nil {
			c.fail()
			*x = 0
			continue
		}
		*x, c.data = v, c.data[n:]
	}
}

// near is a number that is likely to be near another one.
func (c *codec) near(x *int64, other int64) {
	distance := other - *x
	c.count(&distance)
	*x = other - distance
}

// key is a hash.
func (c *codec) key(x *uint64) {
	if b := c.bytes(8); b != nil {
		*x = binary.BigEndian.Uint64(b)
	} else if !c.reading {
		c.data = binary.BigEndian.AppendUint64(c.data, *x)
	}
}

// small is a whole number of a narrower type. What does not fit is an error.
func small[T ~uint8 | ~int32 | ~uint32](c *codec, x *T) {
	wide := int64(*x)
	c.count(&wide)
	*x = T(wide) // checked in the next line
	if int64(*x) != wide {
		c.fail()
	}
}

// flag is a truth value.
func (c *codec) flag(x *bool) {
	var v uint8
	if *x {
		v = 1
	}
	small(c, &v)
	*x = v == 1
	if v > 1 {
		c.fail()
	}
}

// bytes takes the next n bytes when reading; nil when writing or when there are fewer.
func (c *codec) bytes(n int) []byte {
	switch {
	case !c.reading:
		return nil
	case c.err != nil || len(c.data) < n:
		c.fail()
		return make([]byte, n)
	}
	b := c.data[:n]
	c.data = c.data[n:]
	return b
}

func (c *codec) fail() { c.err = errors.Join(errTruncated) }

// hash mixes words and text into 64 bits without allocating. It distinguishes what
// users name; nothing depends on it being hard to forge.
type hash uint64

func newHash() hash { return 0xcbf29ce484222325 }

func (h *hash) add(word uint64) {
	const odd = 0x9e3779b97f4a7c15 // 2^64 / golden ratio, as in splitmix64
	x := (uint64(*h) ^ word) * odd
	*h = hash(x ^ x>>29)
}

func (h *hash) addString(s string) {
	h.add(uint64(len(s)))
	for i := range len(s) {
		h.add(uint64(s[i]))
	}
}
