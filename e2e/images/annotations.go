// SPDX-License-Identifier: Apache-2.0

package images

import (
	"maps"
	"time"
)

// Homepage is where Serin's source and documentation are.
const Homepage = "https://github.com/serin-dev/serin"

// Annotations are what the image specification has images say about themselves. They are
// labels of the configuration too, for tools that read only those.
func (s Stamp) Annotations(image Image) map[string]string {
	all := map[string]string{
		"org.opencontainers.image.title":         image.Title,
		"org.opencontainers.image.description":   image.Description,
		"org.opencontainers.image.version":       s.Version,
		"org.opencontainers.image.revision":      s.Revision,
		"org.opencontainers.image.created":       s.Created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.source":        Homepage,
		"org.opencontainers.image.url":           Homepage,
		"org.opencontainers.image.documentation": Homepage + "/tree/main/docs",
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.vendor":        "The Serin authors",
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}
