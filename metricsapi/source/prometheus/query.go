// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is one question, and what its answer means.
type query struct {
	view *View
	// counter is nil for the latency of the view.
	counter *Counter
	text    string
}

// queries are those of a profile, confined to the traffic from or to a namespace; of all
// namespaces if it is "", or if the labels do not tell namespaces.
func (p Profile) queries(namespace string, window time.Duration) ([]query, error) {
	var all []query
	for i := range p.Views {
		v := &p.Views[i]
		for j := range v.Counters {
			c := &v.Counters[j]
			text, err := v.render(c.Series, namespace, window, c.StatusLabel, c.GRPCStatusLabel, c.FailureLabel)
			if err != nil {
				return nil, err
			}
			all = append(all, query{view: v, counter: c, text: text})
		}
		if v.Latency == nil {
			continue
		}
		text, err := v.render(v.Latency.Series, namespace, window, model.BucketLabel)
		if err != nil {
			return nil, err
		}
		all = append(all, query{view: v, text: text})
	}
	return all, nil
}

// render makes the query for the increases of some series in a window, summed up over
// all but the labels that name the ends and some more.
func (v *View) render(s Series, namespace string, window time.Duration, more ...string) (string, error) {
	var increases parser.Expr
	for _, label := range v.confining(namespace) {
		matchers, err := s.matchers(label, namespace)
		if err != nil {
			return "", err
		}
		increase := increased(s.Metric, matchers, lasting(more), window)
		if increases != nil {
			increase = or(increases, increase)
		}
		increases = increase
	}
	sum := &parser.AggregateExpr{Op: parser.SUM, Expr: increases, Grouping: v.grouping(more)}
	return sum.String(), nil
}

// confining are the labels that have the namespace of an end; the only one is "" where
// the query is not to be confined, or can't be: a client of which only the address is
// known may be of the namespace, whatever the server is of.
func (v *View) confining(namespace string) []string {
	if namespace == "" || v.Server.Namespace.Label == "" || v.Server.Namespace.Form != Plain ||
		v.Client.Address.Label != "" && v.Client.Namespace.Label == "" {
		return []string{""}
	}
	list := []string{v.Server.Namespace.Label}
	if n := v.Client.Namespace; n.Label != "" && n.Form == Plain && n.Label != list[0] {
		list = append(list, n.Label)
	}
	return list
}

// grouping are the labels to keep, each once and in order.
func (v *View) grouping(more []string) []string {
	kept := map[string]bool{}
	for _, n := range v.names() {
		kept[n.Label] = true
	}
	for _, label := range more {
		kept[label] = true
	}
	delete(kept, "")
	return slices.Sorted(maps.Keys(kept))
}

// matchers select the series, with one more label unless its name is "".
func (s Series) matchers(label, value string) ([]*labels.Matcher, error) {
	wanted := maps.Clone(s.Labels)
	if wanted == nil {
		wanted = map[string]string{}
	}
	if label != "" {
		wanted[label] = value
	}
	var matchers []*labels.Matcher
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		m, err := labels.NewMatcher(labels.MatchEqual, name, wanted[name])
		if err != nil {
			return nil, fmt.Errorf("label %s: %w", name, err)
		}
		matchers = append(matchers, m)
	}
	return matchers, nil
}

// Labels of Prometheus for the target that a series was scraped from.
const (
	instanceLabel = "instance"
	jobLabel      = "job"
)

// increased is the increase of each series: the difference of its values; all of its
// value where it is new at a target that is not; or the estimate of increase() where
// neither is known, because the series was reset or the target is new.
func increased(metric string, matchers, lasting []*labels.Matcher, window time.Duration) parser.Expr {
	selector := func(offset time.Duration) *parser.VectorSelector {
		return &parser.VectorSelector{Name: metric, LabelMatchers: matchers, OriginalOffset: offset}
	}
	difference := &parser.ParenExpr{Expr: &parser.BinaryExpr{
		Op: parser.SUB, LHS: selector(0), RHS: selector(window), VectorMatching: &parser.VectorMatching{Card: parser.CardOneToOne},
	}}
	grown := &parser.ParenExpr{Expr: &parser.BinaryExpr{Op: parser.GTE, LHS: difference, RHS: &parser.NumberLiteral{Val: 0}}}
	estimate := &parser.Call{
		Func: parser.Functions["increase"],
		Args: parser.Expressions{&parser.MatrixSelector{VectorSelector: selector(0), Range: window}},
	}
	return or(or(grown, begun(metric, matchers, lasting, window)), estimate)
}

// lasting select, among the series of a metric, those that can show that a target goes on:
// it has to be known, and one bucket of a histogram tells as much as all.
func lasting(kept []string) []*labels.Matcher {
	list := []*labels.Matcher{labels.MustNewMatcher(labels.MatchNotEqual, instanceLabel, "")}
	if slices.Contains(kept, model.BucketLabel) {
		list = append(list, labels.MustNewMatcher(labels.MatchEqual, model.BucketLabel, "+Inf"))
	}
	return list
}

// begun are the series that began in the window, such as that of the first failure, at
// targets where another series of the metric goes on. Without one that goes on, the
// target may have counted for long before it was scraped, or have new labels.
func begun(metric string, matchers, lasting []*labels.Matcher, window time.Duration) parser.Expr {
	selector := func(offset time.Duration, more ...*labels.Matcher) *parser.VectorSelector {
		return &parser.VectorSelector{Name: metric, LabelMatchers: slices.Concat(matchers, more), OriginalOffset: offset}
	}
	added := set(parser.LUNLESS, selector(0), selector(window))
	goesOn := set(parser.LAND, selector(0, lasting...), selector(window, lasting...))
	there := set(parser.LAND, &parser.ParenExpr{Expr: added}, &parser.ParenExpr{Expr: goesOn})
	there.VectorMatching.On, there.VectorMatching.MatchingLabels = true, []string{instanceLabel, jobLabel}
	return &parser.ParenExpr{Expr: there}
}

// or takes what the left side has, and of the right side what it lacks.
func or(left, right parser.Expr) parser.Expr { return set(parser.LOR, left, right) }

// set puts the series of two sides together by an operator on sets.
func set(op parser.ItemType, left, right parser.Expr) *parser.BinaryExpr {
	return &parser.BinaryExpr{Op: op, LHS: left, RHS: right, VectorMatching: &parser.VectorMatching{Card: parser.CardManyToMany}}
}
