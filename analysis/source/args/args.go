// SPDX-License-Identifier: Apache-2.0

package args

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// placeholder is where an argument goes.
var placeholder = regexp.MustCompile(`\{\{\s*args\.([A-Za-z0-9_-]{1,63})\s*\}\}`)

// opening marks what a user meant as a placeholder.
const opening = "{{"

// In reports whether a user meant to put an argument into a text.
func In(text string) bool { return strings.Contains(text, opening) }

// Names are the arguments that a text names, in their order, each as often as it is
// named.
func Names(text string) []string {
	var names []string
	for _, match := range placeholder.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// Quote says how a value is written at some place, or why it can't be there.
type Quote func(value string) (string, error)

// Expand fills in the arguments. Its error names the argument and the fix. What was
// filled in is not looked at again.
func Expand(text string, values map[string]string, quote Quote) (string, error) {
	if opening := strings.Contains(placeholder.ReplaceAllString(text, ""), opening); opening {
		return "", errors.New("what is between {{ and }} is not args.NAME; correct it")
	}
	var failed error
	expanded := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		name := placeholder.FindStringSubmatch(match)[1]
		value, found := values[name]
		if !found {
			failed = errors.Join(failed, fmt.Errorf("there is no argument %s; declare it in args", name))
			return ""
		}
		quoted, err := quote(value)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("argument %s: %w", name, err))
		}
		return quoted
	})
	if failed != nil {
		return "", failed
	}
	return expanded, nil
}

// Verbatim is for places whose text is not interpreted, such as the value of a
// label in a parsed query.
func Verbatim(value string) (string, error) { return value, nil }

// plain are values that mean nothing special in any query language.
var plain = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)

// Plain is for query languages without a parser here: names only.
func Plain(value string) (string, error) {
	if !plain.MatchString(value) || strings.Contains(value, "..") || strings.Contains(value, "--") {
		return "", errors.New("only letters, digits and single - _ . between them can be put into this query; write another value")
	}
	return value, nil
}

// URL fills the arguments into the path and the query of a URL, never into the scheme,
// the host or the port.
func URL(text string, values map[string]string) (string, error) {
	if !In(text) {
		return text, nil
	}
	scheme, rest, _ := strings.Cut(text, "://")
	slash := strings.IndexAny(rest, "/?#")
	if slash < 0 || In(scheme+rest[:slash]) {
		return "", errors.New("an argument can only be in the path or the query, not in the host")
	}
	authority, rest := rest[:slash], rest[slash:]
	path, query, asked := strings.Cut(rest, "?")
	path, err := Expand(path, values, pathSegment)
	if err != nil {
		return "", err
	}
	if query, err = Expand(query, values, func(v string) (string, error) { return url.QueryEscape(v), nil }); err != nil {
		return "", err
	}
	if asked {
		query = "?" + query
	}
	return scheme + "://" + authority + path + query, nil
}

// pathSegment refuses what would lead to another path: dots name the parent, also once
// they are escaped, and an empty value makes two slashes.
func pathSegment(value string) (string, error) {
	if strings.Trim(value, ".") == "" {
		return "", errors.New("is empty or only dots, which can't be a part of a path; write another value")
	}
	return url.PathEscape(value), nil
}
