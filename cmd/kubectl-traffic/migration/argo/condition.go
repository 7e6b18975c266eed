// SPDX-License-Identifier: Apache-2.0

package argo

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/migration/target"
)

// limits are what a condition means for one number.
type limits struct {
	min, max *float64
	// strict is whether a limit itself did not fulfil the condition.
	strict bool
	// orMissing is whether missing data fulfilled it.
	orMissing bool
}

const (
	// measured is the number in a condition, as Argo's expressions name it.
	measured = `(?:asFloat|float)?\(?(?:default\()?result(?:\[0\])?(?:,[-0-9.]+\))?\)?`
	decimal  = `-?[0-9]+(?:\.[0-9]+)?`
)

var (
	compared  = regexp.MustCompile(`^` + measured + `(>=|<=|==|>|<)(` + decimal + `)$`)
	reversed  = regexp.MustCompile(`^(` + decimal + `)(>=|<=|==|>|<)` + measured + `$`)
	everyItem = regexp.MustCompile(`^all\(result,\{?#(>=|<=|==|>|<)(` + decimal + `)\}?\)$`)
	missing   = regexp.MustCompile(`^(?:len\(result\)==0|isNaN\(result(?:\[0\])?\)|isNil\(result\)|result==nil)$`)
	present   = regexp.MustCompile(`^(?:len\(result\)>0|len\(result\)!=0|!isNaN\(result(?:\[0\])?\)|!isNil\(result\)|result!=nil)$`)
	turned    = map[string]string{">=": "<=", "<=": ">=", ">": "<", "<": ">", "==": "=="}
	negated   = map[string]string{">=": "<", "<=": ">", ">": "<=", "<": ">="}
)

// success reads a condition that holds for a good number; false when it can't be two limits.
func success(condition string) (l limits, understood bool) {
	for alternative := range strings.SplitSeq(compact(condition), "||") {
		if missing.MatchString(unwrapped(alternative)) {
			l.orMissing = true
			continue
		}
		if l.min != nil || l.max != nil {
			return l, false
		}
		for part := range strings.SplitSeq(alternative, "&&") {
			if present.MatchString(unwrapped(part)) {
				continue
			}
			operator, number, found := comparison(part)
			if !found || !l.add(operator, number) {
				return l, false
			}
		}
	}
	return l, l.min != nil || l.max != nil
}

// failure reads a condition that holds for a bad number.
func failure(condition string) (l limits, understood bool) {
	for alternative := range strings.SplitSeq(compact(condition), "||") {
		found := false
		for part := range strings.SplitSeq(alternative, "&&") {
			if present.MatchString(unwrapped(part)) {
				continue
			}
			operator, number, is := comparison(part)
			if found || !is || negated[operator] == "" || !l.add(negated[operator], number) {
				return l, false
			}
			found = true
		}
	}
	return l, l.min != nil || l.max != nil
}

// comparison is what the number is compared with, from the number's side.
func comparison(part string) (operator string, number float64, found bool) {
	part = unwrapped(part)
	var value string
	if m := compared.FindStringSubmatch(part); m != nil {
		operator, value = m[1], m[2]
	} else if m := everyItem.FindStringSubmatch(part); m != nil {
		operator, value = m[1], m[2]
	} else if m := reversed.FindStringSubmatch(part); m != nil {
		operator, value = turned[m[2]], m[1]
	}
	number, err := strconv.ParseFloat(value, 64)
	return operator, number, err == nil && !math.IsInf(number, 0)
}

// add adds a limit; false when there is one on that side already.
func (l *limits) add(operator string, number float64) bool {
	l.strict = l.strict || operator == ">" || operator == "<"
	if operator != "<" && operator != "<=" {
		if l.min != nil {
			return false
		}
		l.min = &number
	}
	if operator != ">" && operator != ">=" {
		if l.max != nil {
			return false
		}
		l.max = &number
	}
	return true
}

func (l *limits) settings(s *v1alpha1.MetricSettings) {
	if l.min != nil {
		s.Min = target.Decimal(*l.min)
	}
	if l.max != nil {
		s.Max = target.Decimal(*l.max)
	}
}

func compact(condition string) string { return strings.Join(strings.Fields(condition), "") }

// unwrapped is a part without parentheses around all of it.
func unwrapped(part string) string {
	for len(part) > 1 && part[0] == '(' && part[len(part)-1] == ')' && strings.Count(part, "(") == strings.Count(part, ")") && !strings.Contains(part[1:len(part)-1], ")(") {
		part = part[1 : len(part)-1]
	}
	return part
}
