// SPDX-License-Identifier: Apache-2.0

package resolve

import (
	"fmt"

	"github.com/serin-dev/serin/api/v1alpha1"
)

// scope holds the arguments of a template, or of a Rollout's own metrics.
type scope struct {
	// field says where the arguments are declared, and usedAt where the template is
	// named; "" for a Rollout's own.
	field, usedAt string
	trusted       bool
	release       Release

	stable, canary map[string]string
	secrets        map[string]v1alpha1.SecretKeyReference
}

// declare gives every argument its value: the given one, or what its declaration says.
func (s *scope) declare(declared []v1alpha1.MetricArgument, given []v1alpha1.ArgumentValue) error {
	s.stable, s.canary, s.secrets = map[string]string{}, map[string]string{}, map[string]v1alpha1.SecretKeyReference{}
	values := map[string]*string{}
	for i := range given {
		values[given[i].Name] = &given[i].Value
	}
	for i, d := range declared {
		value := values[d.Name]
		delete(values, d.Name)
		if value == nil {
			value = d.Value
		}
		switch {
		case value != nil && taken(d):
			// Else a Rollout would have a template for all namespaces look at another one.
			return fmt.Errorf("%s.args: %s has its value from the template; remove it", s.usedAt, d.Name)
		case value != nil:
			s.stable[d.Name], s.canary[d.Name] = *value, *value
		case d.Field != "":
			var known bool
			if s.stable[d.Name], known = s.release.field(d.Field, s.release.StableService, s.release.StableRevision); !known {
				return fmt.Errorf("%s.args[%d].field: %q is not a field that an argument can have; correct it", s.field, i, d.Field)
			}
			s.canary[d.Name], _ = s.release.field(d.Field, s.release.CanaryService, s.release.CanaryRevision)
		case d.SecretKeyRef != nil:
			s.secrets[d.Name] = *d.SecretKeyRef
		case s.usedAt == "":
			return fmt.Errorf("%s.args[%d]: %s has no value; give value, field or secretKeyRef", s.field, i, d.Name)
		default:
			return fmt.Errorf("%s.args: %s has no value, and the template has none for it; add it", s.usedAt, d.Name)
		}
	}
	return s.refuseLeft(given, values)
}

// refuseLeft refuses values that no argument has taken.
func (s *scope) refuseLeft(given []v1alpha1.ArgumentValue, values map[string]*string) error {
	for i, g := range given {
		if _, left := values[g.Name]; left {
			return fmt.Errorf("%s.args[%d]: the template has no argument %s; remove it", s.usedAt, i, g.Name)
		}
	}
	return nil
}

// taken is whether a template takes an argument from the release or from a Secret.
func taken(d v1alpha1.MetricArgument) bool { return d.Field != "" || d.SecretKeyRef != nil }

// field is the value of a field for a version with the given Service and revision.
func (r Release) field(f v1alpha1.ReleaseField, service, revision string) (value string, known bool) {
	switch f {
	case v1alpha1.FieldName:
		return r.Name, true
	case v1alpha1.FieldNamespace:
		return r.Namespace, true
	case v1alpha1.FieldService:
		return r.Service, true
	case v1alpha1.FieldStableService:
		return r.StableService, true
	case v1alpha1.FieldCanaryService:
		return r.CanaryService, true
	case v1alpha1.FieldStableRevision:
		return r.StableRevision, true
	case v1alpha1.FieldCanaryRevision:
		return r.CanaryRevision, true
	case v1alpha1.FieldArmService:
		return service, true
	case v1alpha1.FieldArmRevision:
		return revision, true
	default:
		return "", false
	}
}
