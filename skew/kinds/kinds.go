// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"encoding/json"
	"fmt"
	"regexp"

	"k8s.io/client-go/openapi"
)

// path is where the API server describes the kinds, to every client with an identity.
const path = "apis/serin.dev/v1alpha1"

// described is how the chart ends the description of each kind.
var described = regexp.MustCompile(`\(Serin ([^()\s]+)\)$`)

// Version is of which version a cluster says that its kinds are; "" where it does not, since the
// chart did not install them.
func Version(cluster openapi.Client) (string, error) {
	paths, err := cluster.Paths()
	if err != nil || paths[path] == nil {
		return "", err
	}
	document, err := paths[path].Schema("application/json")
	if err != nil {
		return "", err
	}
	return parse(document)
}

// parse reads of which version the kinds of a cluster are, from what it serves as their OpenAPI
// document.
func parse(document []byte) (string, error) {
	var served struct {
		Components struct {
			Schemas map[string]struct {
				Description string `json:"description"`
				Kinds       []struct {
					Kind string `json:"kind"`
				} `json:"x-kubernetes-group-version-kind"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &served); err != nil {
		return "", fmt.Errorf("read the description of the kinds: %w", err)
	}
	for _, schema := range served.Components.Schemas {
		if len(schema.Kinds) == 1 && schema.Kinds[0].Kind == "Rollout" {
			if found := described.FindStringSubmatch(schema.Description); found != nil {
				return found[1], nil
			}
		}
	}
	return "", nil
}
