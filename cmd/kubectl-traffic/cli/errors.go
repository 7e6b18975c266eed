// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit statuses, which scripts rely on.
const (
	ExitDone   = 0
	ExitError  = 1 // what was asked could not be done
	ExitUsage  = 2 // it was not asked for in a way that can be understood
	ExitMissed = 3 // what was waited for did not come
)

// UsageError is an error in how the command was called.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// WrongUsage marks an error as one of usage.
func WrongUsage(err error) error { return UsageError{err} }

// UsageErrorf makes an error of usage.
func UsageErrorf(format string, args ...any) error { return WrongUsage(fmt.Errorf(format, args...)) }

// MissedError says that what was waited for did not come.
type MissedError struct{ error }

func (e MissedError) Unwrap() error { return e.error }

// Missed marks an error as that of what was waited for.
func Missed(err error) error { return MissedError{err} }

// Status is the exit status after an error.
func Status(err error) int {
	if err == nil {
		return ExitDone
	}
	if _, ok := errors.AsType[UsageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[MissedError](err); ok {
		return ExitMissed
	}
	return ExitError
}

// denial is what the API server's authorizer says.
var denial = regexp.MustCompile(`User "(.*)" cannot ([a-z]+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// Explained is the error with what to do about it, where the server does not say that.
func Explained(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	parts := denial.FindStringSubmatch(err.Error())
	if parts == nil {
		return err // a policy, which says itself what is missing
	}
	resource := strings.TrimSuffix(parts[3]+"."+parts[4], ".")
	where := "in the whole cluster"
	if parts[5] != "" {
		where = "in the namespace " + parts[5]
	}
	return fmt.Errorf("the user %q may not %s %s %s: ask for a role with the verb %q for %q", parts[1], parts[2], resource, where, parts[2], resource)
}
