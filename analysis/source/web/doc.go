// SPDX-License-Identifier: Apache-2.0

// Package web measures by a number in the JSON of any HTTP endpoint. The place of the
// number is given by a JSONPath, without those parts of the language that can visit a
// document more often than once.
package web
