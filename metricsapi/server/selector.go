// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// operators of a query and of a LabelSelector that mean the same.
var operators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.In: metav1.LabelSelectorOpIn, selection.NotIn: metav1.LabelSelectorOpNotIn, selection.NotEquals: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
	// Used for what is asked twice about one label: matchLabels has each once.
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn,
}

// shown is a selector in the form in which a list shows it; nil for one that selects
// everything. An error says what that form can't express.
func shown(selector labels.Selector) (*metav1.LabelSelector, error) {
	requirements, selectable := selector.Requirements()
	if len(requirements) == 0 && selectable {
		return nil, nil
	}
	out := &metav1.LabelSelector{}
	for _, r := range requirements {
		operator, known := operators[r.Operator()]
		if !known {
			return nil, fmt.Errorf("labelSelector: the operator of %q is not supported for TrafficMetrics; use =, !=, in, notin or the key alone", r.String())
		}
		values := r.ValuesUnsorted()
		_, present := out.MatchLabels[r.Key()]
		if equal := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals; equal && !present && len(values) == 1 {
			metav1.AddLabelToSelector(out, r.Key(), values[0])
			continue
		}
		out.MatchExpressions = append(out.MatchExpressions, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: operator, Values: r.Values().List()})
	}
	return out, nil
}
