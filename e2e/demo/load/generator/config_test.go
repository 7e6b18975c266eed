// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	tests := []struct {
		name    string
		change  func(*Config)
		wantErr string
	}{
		{name: "the default is valid", change: func(*Config) {}},
		{name: "a target without a scheme is refused", change: func(c *Config) { c.Target = "website" }, wantErr: "target"},
		{name: "https is refused, since nobody checks its certificates here", change: func(c *Config) { c.Target = "https://website" }, wantErr: "target"},
		{name: "a control without a scheme is refused", change: func(c *Config) { c.Control = "control" }, wantErr: "control"},
		{name: "no requests at all are refused", change: func(c *Config) { c.Rate = 0 }, wantErr: "rate"},
		{name: "a rate that would be an attack is refused", change: func(c *Config) { c.Rate = 5001 }, wantErr: "rate"},
		{name: "no duration is refused", change: func(c *Config) { c.Duration = 0 }, wantErr: "duration"},
		{name: "an endless duration is refused", change: func(c *Config) { c.Duration = 25 * time.Hour }, wantErr: "duration"},
		{name: "no timeout is refused", change: func(c *Config) { c.Timeout = 0 }, wantErr: "timeout"},
		{name: "more than all new connections is refused", change: func(c *Config) { c.FreshPercent = 101 }, wantErr: "fresh"},
		{name: "an empty range of lives is refused", change: func(c *Config) { c.MaxLife = c.MinLife - 1 }, wantErr: "life"},
		{name: "no request in flight is refused", change: func(c *Config) { c.MaxInFlight = 0 }, wantErr: "in flight"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config := DefaultConfig("http://website")
			test.change(&config)
			err := config.Validate()
			if (err != nil) != (test.wantErr != "") {
				t.Fatalf("got error %v, want one about %q", err, test.wantErr)
			}
			if err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("got error %v, want one about %q", err, test.wantErr)
			}
		})
	}
}
