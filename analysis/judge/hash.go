// SPDX-License-Identifier: Apache-2.0

package judge

// hash mixes words and text into 64 bits without allocating. It tells apart what
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
