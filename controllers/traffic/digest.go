// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest tells splits apart that are served differently. It does not depend on the
// generation: annotations, Services and HTTPRouteGroups change what is served and
// leave the generation as it is, and so a proxy reports both. It is only ever
// compared within one version of Serin: 16 hexadecimal digits.
func (s Split) Digest() string {
	s.Generation = 0
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings, numbers and lists of them always have a text
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
