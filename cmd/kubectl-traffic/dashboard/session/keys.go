// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Keys are what sessions are sealed with. The first one seals; all of them open, so
// that a key can be replaced while sessions of the older one go on.
type Keys func() ([]string, error)

// leastKey is how many characters a key has at least: 32 bytes at random are more in any encoding.
const leastKey = 32

// RandomKey is one key that ends with the process, and all sessions with it.
func RandomKey() Keys {
	key := rand.Text() + rand.Text()
	return func() ([]string, error) { return []string{key}, nil }
}

// KeyFile reads the keys from a file, one in each line, whenever they are used: a
// changed file needs no restart.
func KeyFile(name string) Keys {
	return func() ([]string, error) {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the keys of sessions: %w", err)
		}
		keys, err := parseKeys(string(content))
		if err != nil {
			return nil, fmt.Errorf("the keys of sessions in %s: %w", name, err)
		}
		return keys, nil
	}
}

func parseKeys(content string) ([]string, error) {
	keys := strings.Fields(content)
	for i, key := range keys {
		if len(key) < leastKey {
			return nil, fmt.Errorf("key %d has %d characters; write at least %d, such as openssl rand -hex 32 prints", i+1, len(key), leastKey)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("there is none; write one, such as openssl rand -hex 32 prints")
	}
	return keys, nil
}
