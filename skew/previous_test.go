// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/serin-dev/serin/analysis/judge"
	splitv1 "github.com/serin-dev/serin/api/split/v1alpha4"
	"github.com/serin-dev/serin/api/v1alpha1"
	"github.com/serin-dev/serin/proxy/confirmation"
)

// previous is the folder of what the version before has stored and said: recorded in the first
// step of a release, by an operator on a real API server. A new minor version adds a folder of
// its own, and removes the one before the last.
var previous = filepath.Join("testdata", "0.1")

// What an operator has stored, the next one reads: nothing of it is dropped, and nothing is added
// by reading and writing it again.
func TestWhatThePreviousVersionStoredIsRead(t *testing.T) {
	for file, object := range map[string]any{"rollout.json": &v1alpha1.Rollout{}, "trafficsplit.json": &splitv1.TrafficSplit{}} {
		t.Run(file, func(t *testing.T) {
			stored := read(t, file)
			unknown, err := kjson.UnmarshalStrict(stored, object)
			if err != nil || len(unknown) > 0 {
				t.Fatalf("%v, %v", err, unknown)
			}
			again, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			for text, into := range map[string]*any{string(stored): &want, string(again): &got} {
				if err := json.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-stored +written again)\n%s", diff)
			}
		})
	}
}

// The evidence of a release that is in progress goes on.
func TestTheEvidenceOfThePreviousVersionIsRead(t *testing.T) {
	ro := &v1alpha1.Rollout{}
	if err := json.Unmarshal(read(t, "rollout.json"), ro); err != nil {
		t.Fatal(err)
	}
	var state judge.State
	if err := state.UnmarshalText([]byte(ro.Status.Analysis.State)); err != nil {
		t.Fatal(err)
	}
	if end := state.End(); !end.Equal(ro.Status.Analysis.LastWindowEnd.Time) || state.Evidence() == 0 {
		t.Errorf("evidence %v until %v, want until %v", state.Evidence(), end, ro.Status.Analysis.LastWindowEnd)
	}
}

// A proxy of the previous version confirms what it serves.
func TestWhatAProxyOfThePreviousVersionSaysIsRead(t *testing.T) {
	const pod types.UID = "0b7d1f0e-8a75-4a0f-9a6e-6b7b5b6f3c11"
	got, err := confirmation.Parse(read(t, "served.json"), pod)
	want := confirmation.Served{Pod: pod, Generation: 3, Configuration: "0123456789abcdef"}
	if err != nil || got != want {
		t.Errorf("got %+v and %v, want %+v", got, err, want)
	}
	if why := Refusal(Part{"the proxy", got.Version}, Part{"the operator", "0.1.0"}); why != "" {
		t.Error(why)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(previous, file))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
