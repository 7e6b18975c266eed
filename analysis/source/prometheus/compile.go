// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"errors"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/serin-dev/serin/analysis/source/args"
)

// Scope is what a query is filled in with.
type Scope struct {
	// Args are the values for {{args.NAME}}.
	Args map[string]string
	// Namespace that every selector is confined to; "" for queries that are trusted.
	Namespace string
	// NamespaceLabel is the label that carries the namespace; "namespace" when empty.
	NamespaceLabel string
}

// compile parses a query, fills in its arguments and confines it to its namespace. The
// query is not changed in any other way.
//
//	where the placeholder is                  then
//	in the value of a matcher with = or !=    filled in
//	the value of a matcher with =~ or !~   refused: a value would become an expression
//	in another string, or nowhere in a string refused: it could change what the query does
func compile(query string, s Scope) (parser.Expr, error) {
	expr, err := parse(query)
	if err != nil {
		return nil, err
	}
	return expr, parser.Walk(s, expr, nil)
}

// Visit fills in one node; the parser calls it for each.
func (s Scope) Visit(node parser.Node, _ []parser.Node) (parser.Visitor, error) {
	switch n := node.(type) {
	case *parser.VectorSelector:
		return s, s.fill(n)
	case *parser.StringLiteral:
		return s, noPlaceholder(n.Val)
	case *parser.AggregateExpr:
		return s, noPlaceholder(n.Grouping...)
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			return s, noPlaceholder(slices.Concat(n.VectorMatching.MatchingLabels, n.VectorMatching.Include)...)
		}
	}
	return s, nil
}

// parse leaves the parser's own words out: they quote the query, which is long, and
// the position is enough to find the mistake.
func parse(query string) (parser.Expr, error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err == nil {
		return expr, nil
	}
	var list parser.ParseErrors
	if errors.As(err, &list) && len(list) > 0 {
		return nil, fmt.Errorf("is not PromQL at character %d; correct it", int(list[0].PositionRange.Start)+1)
	}
	return nil, errors.New("is not PromQL; correct it")
}

// fill puts the arguments into the matchers of a selector, and confines it.
func (s Scope) fill(selector *parser.VectorSelector) error {
	for i, m := range selector.LabelMatchers {
		if err := noPlaceholder(m.Name); err != nil {
			return err
		}
		if !args.In(m.Value) {
			continue
		}
		if m.Type != labels.MatchEqual && m.Type != labels.MatchNotEqual {
			return fmt.Errorf("label %s: an argument can't be part of a regular expression; use = or !=", m.Name)
		}
		if m.Name == model.MetricNameLabel {
			return errors.New("the name of a metric can't be an argument; write it")
		}
		value, err := args.Expand(m.Value, s.Args, args.Verbatim)
		if err != nil {
			return fmt.Errorf("label %s: %w", m.Name, err)
		}
		// A copy: the parser owns the matcher of the query without arguments.
		selector.LabelMatchers[i] = &labels.Matcher{Type: m.Type, Name: m.Name, Value: value}
	}
	return s.confine(selector)
}

// confine adds the namespace to what a selector asks for. Whatever else it asks for,
// it finds nothing outside of it.
func (s Scope) confine(selector *parser.VectorSelector) error {
	if s.Namespace == "" {
		return nil
	}
	name := s.NamespaceLabel
	if name == "" {
		name = "namespace"
	}
	only, err := labels.NewMatcher(labels.MatchEqual, name, s.Namespace)
	if err != nil {
		return fmt.Errorf("namespace: %w", err)
	}
	for _, m := range selector.LabelMatchers {
		if m.Name == name && m.Type == labels.MatchEqual && m.Value == s.Namespace {
			return nil
		}
	}
	selector.LabelMatchers = append(selector.LabelMatchers, only)
	return nil
}

func noPlaceholder(texts ...string) error {
	if slices.ContainsFunc(texts, args.In) {
		return errors.New("an argument can only be the value of a label matcher with = or !=")
	}
	return nil
}

// number compiles a query that gives one number.
func number(query string, s Scope) (string, error) {
	expr, err := compile(query, s)
	if err != nil {
		return "", err
	}
	switch expr.Type() {
	case parser.ValueTypeScalar, parser.ValueTypeVector:
		return expr.String(), nil
	default:
		return "", fmt.Errorf("gives a %s, not a number; use a function over it, such as rate or max_over_time", parser.DocumentedType(expr.Type()))
	}
}

// counter compiles the selector of raw counters into the query for all of their
// samples of the last stretch of time.
func counter(query string, s Scope, over string) (string, error) {
	expr, err := compile(query, s)
	if err != nil {
		return "", err
	}
	selector, ok := expr.(*parser.VectorSelector)
	if !ok {
		return "", errors.New("is more than a selector; write the raw counter, such as http_requests_total{service=\"{{args.service}}\"}: Serin computes the increase itself")
	}
	if selector.OriginalOffset != 0 || selector.OriginalOffsetExpr != nil || selector.Timestamp != nil || selector.StartOrEnd != 0 {
		return "", errors.New("has an offset or @; remove it")
	}
	return selector.String() + "[" + over + "]", nil
}
