// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
)

// Sticky says how clients come back to the backend that they were given first.
type Sticky struct {
	// Cookie is the name of the cookie by which a client is known.
	Cookie string
	// MaxAge of the cookie, in seconds; 0 for as long as the client's session lasts.
	MaxAge int64 `json:",omitempty"`
}

// fieldSticky is the field of a split that asks for it.
const fieldSticky = "metadata.annotations[" + splitv1.AnnotationStickyCookie + "]"

// maxStickyAge is a year.
const maxStickyAge = 365 * 24 * time.Hour

// cookieName is what every data plane can look up: less than what RFC 6265 allows.
var cookieName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// stickyOf reads the annotation; nil when there is none.
func stickyOf(split *splitv1.TrafficSplit) (*Sticky, error) {
	value, found := split.Annotations[splitv1.AnnotationStickyCookie]
	if !found {
		return nil, nil //nolint:nilnil // that clients are not sticky is no error
	}
	name, age, limited := strings.Cut(value, "=")
	if !cookieName.MatchString(name) {
		return nil, fmt.Errorf("%s: %.100q is not the name of a cookie; write a letter followed by letters, digits and _, at most 64, "+
			"such as version, or remove the annotation", fieldSticky, name)
	}
	if !limited {
		return &Sticky{Cookie: name}, nil
	}
	d, err := time.ParseDuration(age)
	if err != nil || d < time.Second || d > maxStickyAge || d%time.Second != 0 {
		return nil, fmt.Errorf("%s: %.50q is not the age of a cookie; write whole seconds from 1s to 8760h, such as %s=12h, "+
			"or the name alone for the client's session", fieldSticky, age, name)
	}
	return &Sticky{Cookie: name, MaxAge: int64(d / time.Second)}, nil
}

// checkSticky refuses an annotation that can't be read.
func checkSticky(split *splitv1.TrafficSplit) []Problem {
	if _, err := stickyOf(split); err != nil {
		return []Problem{refuse(splitv1.ReasonInvalid, "%s", err.Error())}
	}
	return nil
}
