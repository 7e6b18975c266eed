// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Exit statuses, which scripts rely on.
const (
	exitDone   = 0
	exitError  = 1 // what was asked could not be done
	exitUsage  = 2 // it was not asked for in a way that can be understood
	exitMissed = 3 // what was waited for did not come
)

// usageError is an error in how the command was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// missedError says that what was waited for did not come.
type missedError struct{ error }

func (e missedError) Unwrap() error { return e.error }

// status is the exit status after an error.
func status(err error) int {
	if err == nil {
		return exitDone
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[missedError](err); ok {
		return exitMissed
	}
	return exitError
}

// denial is what the API server's authorizer says.
var denial = regexp.MustCompile(`User "(.*)" cannot ([a-z]+) resource "([^"]*)" in API group "([^"]*)"(?: in the namespace "([^"]*)")?`)

// explained is the error with what to do about it, where the server does not say that.
func explained(err error) error {
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
