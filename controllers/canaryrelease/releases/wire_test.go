// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnAnswerSaysTheSameOnTheOtherSide(t *testing.T) {
	copied := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "generation": int64(1 << 60)}, "data": map[string]any{"a": "<&>\x00"},
	}}
	proposal := &Proposal{Digest: "d", Canaries: []Canary{{Name: "web", Rolls: true}}, Copies: []*unstructured.Unstructured{copied}, Later: []string{"Role/a"}, Refused: []string{"b"}}
	for name, test := range map[string]struct {
		proposal *Proposal
		err      error
	}{
		"a proposal":        {proposal, nil},
		"a user has to act": {nil, Invalid(FieldConfig, "is empty")},
		"a failure":         {nil, FailureError("the API server answered 500")},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(Answered(test.proposal, test.err))
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseAnswer(raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.proposal, got.Proposal); diff != "" || !errors.Is(got.Err(), test.err) {
				t.Errorf("%v %s", got.Err(), diff)
			}
		})
	}
}

func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	endless := io.MultiReader(strings.NewReader(`{"method":"Propose","account":"`), zeros{})
	if _, err := ParseCall(endless); !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
	if _, err := ParseCall(strings.NewReader(`{"method":"Delete"}`)); err == nil {
		t.Error("an unknown method is taken")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte("0"), len(p))), nil }

func FuzzParseAnswer(f *testing.F) {
	for _, seed := range []string{`{"proposal":{"Copies":[{"kind":"Secret"}]}}`, `{"proposal":{"Copies":[null]}}`, `{"invalid":{"Field":"a"}}`, `{"failure":"b"}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, raw []byte) {
		a, err := ParseAnswer(raw)
		if err != nil || a.Proposal == nil {
			return
		}
		for _, c := range a.Proposal.Copies { // what the controller does with it
			_ = c.GetName() + c.GetKind()
		}
	})
}

func FuzzParseCall(f *testing.F) {
	f.Add([]byte(`{"method":"Propose","account":"serin-canary","request":{"Namespace":"a","Release":"b","Version":1,"Config":"YTogMQ=="}}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		_, _ = ParseCall(bytes.NewReader(raw))
	})
}
