// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Mirror says which requests are copied to one more backend.
type Mirror struct {
	// Service that gets the copies.
	Service string
	// Percent of the requests to other backends that are copied, 1 to 100.
	Percent int32
}

// mirrorOf reads the annotation; nil when there is none.
func mirrorOf(split *splitv1.TrafficSplit) (*Mirror, error) {
	value, found := split.Annotations[splitv1.AnnotationMirror]
	if !found {
		return nil, nil //nolint:nilnil // no mirror is no error
	}
	service, percent, _ := strings.Cut(value, "=")
	n, err := strconv.ParseUint(percent, 10, 8)
	if err != nil || n < 1 || n > 100 || strconv.FormatUint(n, 10) != percent || len(validation.IsDNS1123Label(service)) > 0 {
		return nil, fmt.Errorf("%s: %.100q is not a Service with a whole percentage; write it like website-canary=10, from 1 to 100, "+
			"or remove the annotation", fieldMirror, value)
	}
	return &Mirror{Service: service, Percent: int32(n)}, nil
}
