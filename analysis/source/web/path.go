// SPDX-License-Identifier: Apache-2.0

package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/serin-dev/serin/analysis/source"
)

// path finds the number in a document.
type path struct{ text string }

// newPath parses a JSONPath such as {.data.value} or $.data.value.
func newPath(text string) (path, error) {
	if strings.Trim(text, "{ }") == "" {
		return path{}, errors.New("is empty; write the place of the number, such as {.data.value}")
	}
	if !strings.HasPrefix(text, "{") {
		text = "{" + text + "}"
	}
	parsed, err := jsonpath.Parse("path", text)
	if err != nil {
		return path{}, errors.New("is not a JSONPath; write one such as {.data.value}")
	}
	if len(parsed.Root.Nodes) != 1 {
		return path{}, errors.New("must be one path without text around it, such as {.data.value}")
	}
	if err := check(parsed.Root); err != nil {
		return path{}, err
	}
	return path{text: text}, nil
}

// check refuses what multiplies the work: a short path could otherwise keep the
// operator busy for years with a document of one megabyte.
func check(node jsonpath.Node) error {
	switch n := node.(type) {
	case *jsonpath.ListNode:
		for _, child := range n.Nodes {
			if err := check(child); err != nil {
				return err
			}
		}
		return nil
	case *jsonpath.FilterNode:
		if err := check(n.Left); err != nil {
			return err
		}
		return check(n.Right)
	case *jsonpath.RecursiveNode:
		return errors.New("can't contain ..; name the fields")
	case *jsonpath.UnionNode:
		return errors.New("can't contain several indices; write one")
	case *jsonpath.IdentifierNode:
		return errors.New("can't contain range; write one path")
	default:
		return nil
	}
}

// number finds the only number. A text that is one counts, since many write numbers
// as texts to keep their digits.
func (p path) number(body []byte) (value float64, err error) {
	var document any
	if json.Unmarshal(body, &document) != nil {
		return 0, source.Wrong("is no JSON")
	}
	// The library reflects over the document: what it did not foresee must not end the
	// operator.
	defer func() {
		if recover() != nil {
			err = source.Wrong("can't be searched with this path")
		}
	}()
	// It keeps state while it searches, so there is one for each search.
	searcher := jsonpath.New("path").AllowMissingKeys(true)
	if searcher.Parse(p.text) != nil {
		return 0, source.Wrong("can't be searched with this path")
	}
	found, err := searcher.FindResults(document)
	if err != nil {
		return 0, source.Wrong("does not have the shape that the path expects")
	}
	var values []reflect.Value
	for _, list := range found {
		values = append(values, list...)
	}
	switch {
	case len(values) == 0:
		return 0, &source.MissingError{Reason: source.NoData, Message: "the path leads to nothing in the answer"}
	case len(values) > 1:
		return 0, &source.MissingError{Reason: source.SeveralSeries, Message: fmt.Sprintf("the path leads to %d values; write one that leads to one", len(values))}
	}
	return numberIn(values[0])
}

func numberIn(v reflect.Value) (float64, error) {
	if !v.IsValid() || !v.CanInterface() {
		return 0, &source.MissingError{Reason: source.NoData, Message: "the path leads to null"}
	}
	switch x := v.Interface().(type) {
	case nil:
		return 0, &source.MissingError{Reason: source.NoData, Message: "the path leads to null"}
	case float64:
		return x, nil
	case string:
		if n, err := strconv.ParseFloat(strings.TrimSpace(x), 64); err == nil {
			return n, nil
		}
	}
	return 0, &source.MissingError{Reason: source.NotANumber, Message: "the path leads to something that is not a number"}
}
