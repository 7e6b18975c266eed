// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/serin-dev/serin/proxy/nginxproc"
	"github.com/serin-dev/serin/proxy/replace"
	"github.com/serin-dev/serin/traffic/nginx/conf"
)

// handOver has every other nginx hand requests over to the instance with a number.
//
// A previous nginx tells its clients of HTTP/2 by GOAWAY to go elsewhere. But a
// connection that it had only just accepted at that moment is never told, and a client
// may keep it for as long as it likes. What is asked on it must not be served by
// weights that are no longer live.
func handOver(dir conf.Dir, number int) error {
	successor := dir.Instance(number)
	if err := replace.Link(filepath.Base(string(successor)), dir.Current()); err != nil {
		return fmt.Errorf("name the present nginx: %w", err)
	}
	numbers, err := nginxproc.Instances(dir)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		previous := dir.Instance(n)
		if previous == successor {
			continue
		}
		if err := os.WriteFile(previous.Retired(), nil, 0o600); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("have a previous nginx hand over: %w", err)
		}
	}
	return nil
}
