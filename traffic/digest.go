// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Digest tells splits apart that are served differently. It does not depend on the
// generation: annotations, Services and HTTPRouteGroups change what is served and
// leave the generation as it is, and so a proxy reports both. 16 hexadecimal digits.
//
// After an upgrade of the operator, proxies of the version before are asked too. So
// what is added to Split is left out of the text while it is empty, and splits that
// do not use it keep their digest.
func (s Split) Digest() string {
	s.Generation = 0
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings, numbers and lists of them always have a text
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
