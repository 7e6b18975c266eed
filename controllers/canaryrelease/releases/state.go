// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/metadata"
)

// Labels that an adoption puts on Helm's record. Helm hands labels on from revision
// to revision, so the first one alone would claim the upgrades of others too.
//
// A CanaryRelease that is restored from a backup has another UID: by the content its adoption is known
// again.
const (
	LabelUID      = "serin.dev/canary-release-uid"
	LabelRevision = "serin.dev/canary-release-revision"
	LabelContent  = "serin.dev/canary-release-content"
)

const (
	// maxName is how long the name of a Helm release may be.
	maxName = 53
	// deployed is Helm's word for a revision that is in force.
	deployed = "deployed"
)

// Lister lists the records of releases without their contents.
type Lister func(ctx context.Context, selector string) ([]metav1.ObjectMeta, error)

// Records lists those of a namespace.
func Records(client metadata.Interface, namespace string) Lister {
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(namespace)
	return func(ctx context.Context, selector string) ([]metav1.ObjectMeta, error) {
		list, err := secrets.List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return nil, err
		}
		records := make([]metav1.ObjectMeta, len(list.Items))
		for i := range list.Items {
			records[i] = list.Items[i].ObjectMeta
		}
		return records, nil
	}
}

// State is what there is of a release.
func State(ctx context.Context, list Lister, release string) (Release, error) {
	if err := CheckName(release); err != nil {
		return Release{}, err
	}
	records, err := list(ctx, labels.Set{"owner": "helm", "name": release}.String())
	if err != nil {
		return Release{}, err
	}
	return stateOf(records)
}

// CheckName refuses what can't be the name of a Helm release.
func CheckName(release string) error {
	if len(release) > maxName || len(validation.IsDNS1123Subdomain(release)) > 0 {
		return Invalid(FieldRelease, "is not the name of a Helm release: name one that helm list shows")
	}
	return nil
}

// stateOf reads a release off the labels of its records, which Helm 3 and Helm 4
// write alike. The contents stay where they are.
func stateOf(records []metav1.ObjectMeta) (Release, error) {
	type revision struct {
		number int
		labels map[string]string
	}
	var all []revision
	for i := range records {
		n, err := strconv.Atoi(records[i].Labels["version"])
		if err != nil || n < 1 {
			return Release{}, FailureError("Secret " + records[i].Name + " is not a Helm record: its label version is not a number")
		}
		all = append(all, revision{n, records[i].Labels})
	}
	if len(all) == 0 {
		return Release{}, nil
	}
	slices.SortFunc(all, func(a, b revision) int { return cmp.Compare(b.number, a.number) })
	r := Release{Newest: all[0].number, Status: all[0].labels["status"]}
	for _, one := range all {
		if one.labels["status"] == deployed {
			r.Deployed = one.number
			break
		}
	}
	if all[0].labels[LabelRevision] == strconv.Itoa(r.Newest) {
		r.AdoptedBy, r.AdoptedContent = types.UID(all[0].labels[LabelUID]), all[0].labels[LabelContent]
	}
	return r, nil
}
