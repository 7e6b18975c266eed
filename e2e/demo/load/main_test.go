// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/e2e/demo/load/generator"
)

func TestParse(t *testing.T) {
	changed := generator.DefaultConfig("http://10.0.0.1")
	changed.Rate, changed.FreshPercent, changed.Duration, changed.Timeout = 50, 0, time.Minute, time.Second
	changed.MinLife, changed.MaxLife = 20, 20
	changed.Control = "http://10.0.0.2"
	changed.ProbeEvery, changed.StreamFor, changed.HoldEvery = 5*time.Millisecond, 8*time.Second, 100*time.Millisecond
	tests := []struct {
		name     string
		env      map[string]string
		want     generator.Config
		wantPort string
		wantErr  string
	}{
		{name: "the default calls the website", want: generator.DefaultConfig("http://website"), wantPort: "8080"},
		{
			name: "every variable is used",
			env: map[string]string{
				"TARGET": "http://10.0.0.1", "RATE": "50", "FRESH": "0", "DURATION": "1m", "TIMEOUT": "1s", "PORT": "81", "CONTROL": "http://10.0.0.2",
				"PROBE": "5ms", "LIFE": "20", "STREAM": "8s", "HOLD": "100ms",
			},
			want:     changed,
			wantPort: "81",
		},
		{name: "a rate that is not a number is refused", env: map[string]string{"RATE": "many"}, wantErr: "RATE"},
		{name: "a duration without a unit is refused", env: map[string]string{"DURATION": "5"}, wantErr: "DURATION"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, port, err := parse(func(name string) string { return test.env[name] })
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("got error %v, want one about %s", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || port != test.wantPort {
				t.Errorf("port %s\n%s", port, diff)
			}
		})
	}
}
