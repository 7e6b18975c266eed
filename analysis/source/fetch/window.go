// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"errors"
	"fmt"
	"time"

	"github.com/serin-dev/serin/analysis/egress"
)

// maxWindow keeps answers short.
const maxWindow = 6 * time.Hour

// CheckWindow returns an error that names the field when a query can't look back so
// far.
func CheckWindow(field string, d time.Duration) error {
	if d < time.Minute || d > maxWindow {
		return fmt.Errorf("%s: %s; give 1m to 6h", field, d)
	}
	return nil
}

// CheckAddress returns an error that names the field when an address can't be called.
func CheckAddress(address string) error {
	if err := egress.CheckURL(address); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	return nil
}

// First returns the first of several checks that failed.
func First(checks ...error) error {
	for _, err := range checks {
		if err != nil {
			return errors.Join(err)
		}
	}
	return nil
}
