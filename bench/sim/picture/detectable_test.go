// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/serin-dev/serin/bench/sim"
	"github.com/serin-dev/serin/bench/sim/picture"
	"github.com/serin-dev/serin/config/golden"
)

const published = "../../../docs/pictures/detectable-effect.svg"

// The picture shows what the judge does now: it is drawn anew and compared.
func TestThePictureOfTheDocumentationIsCurrent(t *testing.T) {
	lines := sim.Detectables()
	var got bytes.Buffer
	if err := picture.Detectable(lines, &got); err != nil {
		t.Fatal(err)
	}
	if *golden.Update {
		if err := os.WriteFile(published, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Errorf("%s is not what the judge finds now; draw it anew with make plot", published)
	}
	for _, line := range lines {
		for i := range line.Effects[1:] {
			if line.Effects[i+1] > line.Effects[i]*1.05 {
				t.Errorf("tolerance %v, base %v: %v requests find %v, and fewer find %v", line.Tolerance, line.Base, line.Requests[i+1], line.Effects[i+1], line.Effects[i])
			}
		}
	}
}

func TestWhatIsNotFoundIsNotDrawn(t *testing.T) {
	requests := []float64{100, 1000, 10_000}
	draw := func(requests []float64, effects ...float64) string {
		var out bytes.Buffer
		line := sim.Detectable{Tolerance: .005, Base: .001, Requests: requests, Effects: effects}
		if err := picture.Detectable([]sim.Detectable{line}, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got := draw(requests, 1, .1, .01)
	if got != draw(requests[1:], .1, .01) {
		t.Error("a difference that was not found is drawn")
	}
	if got == draw(requests, .9, .1, .01) {
		t.Error("a difference that was found is not drawn")
	}
	if !strings.Contains(got, "tolerance 0.5 pp, stable fails 0.1 %") {
		t.Error("the line has no legend")
	}
}
