// SPDX-License-Identifier: Apache-2.0

// Package secretkey reads one key of one Secret, for those who send something on behalf
// of a user. It reads past every cache, since the operator may not list Secrets, and what it says
// about a failure tells the user what to do and can be shown.
package secretkey
