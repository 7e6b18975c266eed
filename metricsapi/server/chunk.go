// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
)

// position is where a chunk of a list ends. The next chunk begins behind it, whatever
// has come and gone meanwhile: traffic is observed anew for each chunk, so that no item
// comes twice, and none that has traffic all the time is left out.
type position struct {
	// Of is the list that it belongs to.
	Of string `json:"of"`
	// After is the key of the last item.
	After string `json:"after"`
}

// errToken is said of a token that is of another list, or of none.
var errToken = errors.New("continue: the token is not of this list; list again without it")

// encode makes the token of a position.
func (p position) encode() (string, error) {
	text, err := json.Marshal(p)
	return base64.RawURLEncoding.EncodeToString(text), err
}

// decodePosition reads the token of a list; the zero position for "".
func decodePosition(token, of string) (position, error) {
	if token == "" {
		return position{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return position{}, errToken
	}
	var p position
	if err := json.Unmarshal(text, &p); err != nil || p.Of != of || p.After == "" {
		return position{}, errToken
	}
	return p, nil
}

// key orders the items of a list. No two have the same.
func key(m *metricsv1.TrafficMetrics) string {
	var backend string
	if m.Backend != nil {
		backend = m.Backend.Name
	}
	var other corev1.ObjectReference
	if m.Edge.Resource != nil {
		other = *m.Edge.Resource
	}
	return strings.Join([]string{
		m.Resource.Namespace, m.Resource.Name, backend, string(m.Edge.Direction), string(m.Edge.Side),
		other.Kind, other.Namespace, other.Name,
	}, "\x00")
}

// cut returns the chunk of a list that begins behind its last one, with limit items at
// most when limit is above 0, and what is to be said about the rest.
func cut(items []metricsv1.TrafficMetrics, of, token string, limit int64) ([]metricsv1.TrafficMetrics, metav1.ListMeta, error) {
	var about metav1.ListMeta
	from, err := decodePosition(token, of)
	if err != nil {
		return nil, about, err
	}
	slices.SortStableFunc(items, func(a, b metricsv1.TrafficMetrics) int { return strings.Compare(key(&a), key(&b)) })
	if from.After != "" {
		begin, found := slices.BinarySearchFunc(items, from.After, func(m metricsv1.TrafficMetrics, after string) int {
			return strings.Compare(key(&m), after)
		})
		if found {
			begin++
		}
		items = items[begin:]
	}
	if limit <= 0 || int64(len(items)) <= limit {
		return items, about, nil
	}
	rest := int64(len(items)) - limit
	items = items[:limit]
	about.Continue, err = position{Of: of, After: key(&items[limit-1])}.encode()
	about.RemainingItemCount = &rest
	return items, about, err
}
