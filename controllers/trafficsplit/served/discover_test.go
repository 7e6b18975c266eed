// SPDX-License-Identifier: Apache-2.0

package served

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/serin-dev/serin/traffic"
)

// cluster has resources by group and version.
type cluster map[string][]string

func (c cluster) ServerResourcesForGroupVersion(gv string) (*metav1.APIResourceList, error) {
	if len(c[gv]) == 1 && c[gv][0] == "" {
		return nil, errors.New("the API server is away")
	}
	if len(c[gv]) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
	}
	list := &metav1.APIResourceList{GroupVersion: gv}
	for _, name := range c[gv] {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

func TestTheBestServedVersionOfTrafficSplitsIsUsed(t *testing.T) {
	both := []string{"trafficsplits", "trafficsplits/status"}
	for name, test := range map[string]struct {
		cluster cluster
		want    traffic.Served
	}{
		"none yet":                     {nil, traffic.Served{Version: "v1alpha4"}},
		"the chart's":                  {cluster{"split.smi-spec.io/v1alpha4": both}, traffic.Served{Version: "v1alpha4"}},
		"v1alpha4 without a status":    {cluster{"split.smi-spec.io/v1alpha4": both[:1]}, traffic.Served{Version: "v1alpha4", NoStatus: true}},
		"v1alpha3":                     {cluster{"split.smi-spec.io/v1alpha3": both[:1]}, traffic.Served{Version: "v1alpha3", NoStatus: true}},
		"v1alpha1 and v1alpha2":        {cluster{"split.smi-spec.io/v1alpha1": both[:1], "split.smi-spec.io/v1alpha2": both[:1]}, traffic.Served{Version: "v1alpha2", NoStatus: true, NoMatches: true}},
		"v1alpha1":                     {cluster{"split.smi-spec.io/v1alpha1": both[:1]}, traffic.Served{Version: "v1alpha1", NoStatus: true, NoMatches: true}},
		"a group that has other kinds": {cluster{"split.smi-spec.io/v1alpha4": {"others"}, "split.smi-spec.io/v1alpha2": both}, traffic.Served{Version: "v1alpha2", NoMatches: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Discover(test.cluster)
			if err != nil || got != test.want {
				t.Errorf("got %+v and %v, want %+v", got, err, test.want)
			}
		})
	}
}

func TestAVersionThatCanNotBeAskedForIsNotTakenForAbsent(t *testing.T) {
	if got, err := Discover(cluster{"split.smi-spec.io/v1alpha4": {""}, "split.smi-spec.io/v1alpha2": {"trafficsplits"}}); err == nil {
		t.Errorf("got %+v", got)
	}
}
