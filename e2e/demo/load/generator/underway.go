// SPDX-License-Identifier: Apache-2.0

package generator

// underWay are the requests without an outcome, by when they were sent: the first is 1.
type underWay struct {
	begun int64
	open  map[int64]struct{}
}

// begin counts a request and returns its number.
func (u *underWay) begin() int64 {
	if u.open == nil {
		u.open = map[int64]struct{}{}
	}
	u.begun++
	u.open[u.begun] = struct{}{}
	return u.begun
}

// end notes that the request with a number has an outcome.
func (u *underWay) end(number int64) { delete(u.open, number) }

// settled is how many requests from the first on have an outcome, without a gap.
func (u *underWay) settled() int64 {
	n := u.begun
	for number := range u.open {
		n = min(n, number-1)
	}
	return n
}
