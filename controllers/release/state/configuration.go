// SPDX-License-Identifier: Apache-2.0

package state

import (
	"time"

	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/controllers/kit"
)

// Configuration is what the workload's template says of its ConfigMaps and
// Secrets, and what it has to say.
type Configuration struct {
	// Wants is whether contents are part of a version.
	Wants bool
	// ChangedAt is when one of them was last seen to change; zero when that was never.
	ChangedAt time.Time
	// Problem says why spec.configuration can't be honoured; "" when it can.
	Problem string
	// Template is the annotation of the workload's template, and Wanted what it has
	// to be; "" for none.
	Template, Wanted string
	// Recorded are the contents that were last made part of a version.
	Recorded []v1alpha1.ConfigurationStatus
	// Missing are the objects whose content has to be copied first.
	Missing []v1alpha1.ConfigurationReference
	// Unused are copies that no version reads.
	Unused []Copied
}

// Copied is a copy of a ConfigMap or Secret.
type Copied struct {
	Kind v1alpha1.ConfigurationKind
	kit.Object
}
