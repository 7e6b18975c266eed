// SPDX-License-Identifier: Apache-2.0

package gatewayapi

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// pathMatch is a condition on the path of a request.
type pathMatch struct {
	Type, Value string
}

// anyPath holds for every path.
var anyPath = pathMatch{Type: typePrefix, Value: "/"}

// element is the value of a prefix without its last slash, which has no meaning: "/"
// becomes "".
func (p pathMatch) element() string { return strings.TrimSuffix(p.Value, "/") }

// under is true when a path is in the tree of a prefix, element by element: /a/b is
// under /a, /ab is not.
func under(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// holds is true for a path that meets the condition. Not for expressions, whose
// dialect is the data plane's.
func (p pathMatch) holds(path string) bool {
	if p.Type == typeExact {
		return path == p.Value
	}
	return p.Type == typePrefix && under(path, p.element())
}

// inBoth are the paths that a prefix and another condition, which is no expression,
// both hold for.
func (p pathMatch) inBoth(c pathMatch) (pathMatch, bool) {
	switch {
	case c.Type == typeExact:
		return c, p.holds(c.Value)
	case under(p.element(), c.element()):
		return p, true
	default:
		return c, under(c.element(), p.element())
	}
}

// pathSet is the paths that an expression holds for, as the Gateway API can say them.
//
// Its RegularExpression is not used: which dialect it is, whether a part of the path
// is enough, and whether it goes before a prefix is up to the data plane, and with
// some of them the prefix goes first and the expression never gets a request.
type pathSet struct {
	conditions []pathMatch
	// but are paths that are in the tree of one of the conditions and do not belong to
	// the set. An exact path goes before every prefix, so they can be distinguished.
	but []string
	// expression that the set was made from.
	expression *regexp.Regexp
}

// everyPath is the set of a match that has no condition on the path.
func everyPath() pathSet { return pathSet{conditions: []pathMatch{anyPath}} }

// maxAlternatives is how many paths an expression can stand for.
const maxAlternatives = 16

var errPath = errors.New("can't be expressed as exact paths and prefixes, and the Gateway API leaves to each data plane what an expression on a path means; " +
	"write whole elements, such as /api(/|$) for the tree of /api, or /api$ for that path alone")

// pathsOf reads an expression that a path has to match from its start.
func pathsOf(expression string) (pathSet, error) {
	if expression == "" {
		return everyPath(), nil
	}
	set := pathSet{}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return set, err
	}
	if set.expression, err = regexp.Compile("^(?:" + expression + ")"); err != nil {
		return set, err
	}
	alternatives, err := expand(parsed)
	if err != nil {
		return set, fmt.Errorf("pathRegex %q %w", expression, err)
	}
	if err := set.take(alternatives); err != nil {
		return set, fmt.Errorf("pathRegex %q %w", expression, err)
	}
	return set, nil
}

// take turns alternatives into conditions.
func (s *pathSet) take(alternatives []alternative) error {
	alternatives = largest(alternatives)
	for _, a := range alternatives {
		if !a.ended && (a.text == "" || a.text == "/") {
			s.conditions, s.but = []pathMatch{anyPath}, nil
			return nil
		}
		if err := s.takeOne(a, alternatives); err != nil {
			return err
		}
	}
	return nil
}

// takeOne turns one alternative into conditions: a path, or the tree of a path, which
// holds the path itself too. Where that is not meant, it has to be left out.
func (s *pathSet) takeOne(a alternative, all []alternative) error {
	if a.ended {
		if !slices.Contains(all, alternative{text: a.text + "/"}) {
			s.conditions = append(s.conditions, pathMatch{Type: typeExact, Value: a.text})
		}
		return checkPath(a.text)
	}
	tree, whole := strings.CutSuffix(a.text, "/")
	if !whole {
		return errPath // /api holds for /apiary
	}
	s.conditions = append(s.conditions, pathMatch{Type: typePrefix, Value: tree})
	if !slices.Contains(all, alternative{text: tree, ended: true}) {
		s.but = append(s.but, tree)
	}
	return checkPath(tree)
}

// largest leaves out what another alternative holds as well.
func largest(alternatives []alternative) []alternative {
	var kept []alternative
	for i, a := range alternatives {
		if slices.Contains(alternatives[:i], a) {
			continue
		}
		held := slices.ContainsFunc(alternatives, func(other alternative) bool {
			return !other.ended && other != a && strings.HasPrefix(a.text, other.text)
		})
		if !held {
			kept = append(kept, a)
		}
	}
	return kept
}

// pathCharacters are what the Gateway API lets a path be made of.
var pathCharacters = regexp.MustCompile(`^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*$`)

// maxPath is the most bytes of a path in a route.
const maxPath = 1024

// checkPath finds what the Gateway API refuses in a path.
func checkPath(path string) error {
	lower := strings.ToLower(path)
	for _, part := range []string{"//", "/./", "/../", "%2f"} {
		if strings.Contains(lower, part) {
			return fmt.Errorf("names the path %q, and a route's path can't hold %s; leave it out", path, part)
		}
	}
	if strings.HasSuffix(path, "/..") || strings.HasSuffix(path, "/.") || !pathCharacters.MatchString(path) || len(path) > maxPath {
		return fmt.Errorf("names %q, which can't be the path of a route; begin it with / and encode other characters", path)
	}
	return nil
}

// alternative is a path, or, when it is not ended, all paths that begin with its text.
type alternative struct {
	text  string
	ended bool
	// any stands for .* at the end of the text, after which only the end may follow.
	any bool
}

// expand lists what an expression stands for.
func expand(re *syntax.Regexp) ([]alternative, error) {
	alternatives, err := expandFrom([]alternative{{}}, re)
	for i := range alternatives {
		if alternatives[i].any { // whatever follows
			alternatives[i] = alternative{text: alternatives[i].text}
		}
	}
	return alternatives, err
}

// expandFrom appends an expression to what goes before it.
func expandFrom(before []alternative, re *syntax.Regexp) ([]alternative, error) {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return before, nil
	case syntax.OpCapture, syntax.OpConcat:
		var err error
		for _, sub := range re.Sub {
			if before, err = expandFrom(before, sub); err != nil {
				return nil, err
			}
		}
		return before, nil
	case syntax.OpAlternate:
		return fork(before, re.Sub...)
	case syntax.OpQuest:
		return fork(before, re.Sub[0], &syntax.Regexp{Op: syntax.OpEmptyMatch})
	case syntax.OpCharClass:
		return fork(before, singles(re)...)
	default:
		return appendOne(before, re)
	}
}

// fork appends each of several expressions.
func fork(before []alternative, options ...*syntax.Regexp) ([]alternative, error) {
	if len(options) == 0 || len(before)*len(options) > maxAlternatives {
		return nil, errPath
	}
	var all []alternative
	for _, option := range options {
		some, err := expandFrom(slices.Clone(before), option)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// singles are the characters of a set, none when it holds too many.
func singles(re *syntax.Regexp) []*syntax.Regexp {
	var out []*syntax.Regexp
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(out) == maxAlternatives {
				return nil
			}
			out = append(out, &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{r}})
		}
	}
	return out
}

// appendOne appends an expression without choices.
func appendOne(before []alternative, re *syntax.Regexp) ([]alternative, error) {
	for i := range before {
		if !before[i].append(re) {
			return nil, errPath
		}
	}
	return before, nil
}

// append appends an expression to what it follows. It is false for one that can't
// follow it.
func (a *alternative) append(re *syntax.Regexp) bool {
	switch {
	case re.Op == syntax.OpBeginText:
		return *a == alternative{}
	case re.Op == syntax.OpEndText:
		a.ended = a.ended || !a.any
		return true
	case matchesAnything(re):
		a.any = a.any || !a.ended
		return true
	case re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 || a.any || a.ended:
		return false
	}
	a.text += string(re.Rune)
	return true
}

// matchesAnything is true for .*, lazy or not.
func matchesAnything(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar && re.Sub[0].Op == syntax.OpAnyCharNotNL
}
