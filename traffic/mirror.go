// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Mirror says which requests are copied to one more backend.
type Mirror struct {
	// Service that gets the mirrored requests.
	Service string
	// Percent of the requests to other backends that are mirrored, 1 to 100.
	Percent int32
}

// mirrorOf reads the mirror of a split; nil when it has none.
func mirrorOf(r splitv1.Routing) (*Mirror, error) {
	m := r.Mirror
	if m == nil {
		return nil, nil //nolint:nilnil // no mirror is no error
	}
	if m.Percent < 1 || m.Percent > 100 || len(validation.IsDNS1123Label(m.Service)) > 0 {
		return nil, fmt.Errorf("%s: %.100q with percent %d is not a Service with a percentage from 1 to 100; "+
			"write it like {service: website-canary, percent: 10}, or remove it", FieldMirror, m.Service, m.Percent)
	}
	return &Mirror{Service: m.Service, Percent: m.Percent}, nil
}
