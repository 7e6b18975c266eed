// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestATemplateOfAnotherConfigurationIsFilled(t *testing.T) {
	in := place{Port: 1, Stable: 2, Canary: 3, Dir: "/dev/shm/x", Workers: 4}
	for name, test := range map[string]struct {
		text, want string
		fails      bool
	}{
		"all that it can name":        {text: "{{.Port}} {{.Stable}} {{.Canary}} {{.Dir}} {{.Workers}}", want: "1 2 3 /dev/shm/x 4"},
		"braces of nginx are nginx's": {text: "events { worker_connections 10; }", want: "events { worker_connections 10; }"},
		"a name that there is not":    {text: "{{.Weight}}", fails: true},
		"not a template":              {text: "{{", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "other.conf")
			if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := fill(file, in)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("fill = %q, %v; want %q", got, err, test.want)
			}
		})
	}
}
