// SPDX-License-Identifier: Apache-2.0

package trafficblock

import (
	"fmt"
	"time"
)

// Candidate is the Service of a version that [Latest] may stand for.
type Candidate struct {
	Service string
	// Ready is the number of its endpoints that are ready.
	Ready int
	// Born is when the newest ReplicaSet behind those endpoints was created, or the
	// Service where no ReplicaSet is known.
	Born time.Time
}

// Newest returns the ready candidate that was born last. It is "" where none is ready,
// and an error where two are of the same age: traffic is not sent by guess.
func Newest(candidates []Candidate) (string, error) {
	var newest, rival *Candidate
	for i := range candidates {
		c := &candidates[i]
		switch {
		case c.Ready == 0:
		case newest == nil || c.Born.After(newest.Born):
			newest, rival = c, nil
		case c.Born.Equal(newest.Born):
			rival = c
		}
	}
	switch {
	case newest == nil:
		return "", nil
	case rival != nil:
		return "", fmt.Errorf("%s could be %s or %s, which have the same age; name one of them", Latest, newest.Service, rival.Service)
	}
	return newest.Service, nil
}
