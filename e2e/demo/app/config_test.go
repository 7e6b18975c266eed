// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseConfig(t *testing.T) {
	tests := []struct {
		name    string
		env     map[string]string
		want    config
		wantErr string
	}{
		{
			name: "only the version is required",
			env:  map[string]string{"VERSION": "v1"},
			want: config{version: "v1", pod: "host", port: "8080", drain: 5 * time.Second},
		},
		{
			name: "every variable is used",
			env:  map[string]string{"VERSION": "v3", "FAIL_PERCENT": "5", "LATENCY": "20ms", "PORT": "81", "DRAIN": "0s", "POD_NAME": "p"},
			want: config{version: "v3", pod: "p", port: "81", failShare: 0.05, latency: 20 * time.Millisecond},
		},
		{name: "no version is refused", env: map[string]string{}, wantErr: "VERSION"},
		{name: "a share above 100 is refused", env: map[string]string{"VERSION": "v1", "FAIL_PERCENT": "101"}, wantErr: "FAIL_PERCENT"},
		{name: "a share that is not a number is refused", env: map[string]string{"VERSION": "v1", "FAIL_PERCENT": "NaN"}, wantErr: "FAIL_PERCENT"},
		{name: "a negative latency is refused", env: map[string]string{"VERSION": "v1", "LATENCY": "-1s"}, wantErr: "LATENCY"},
		{name: "an endless drain is refused", env: map[string]string{"VERSION": "v1", "DRAIN": "24h"}, wantErr: "DRAIN"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseConfig(func(name string) string { return test.env[name] }, "host")
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("got error %v, want one that names %s", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(config{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
