// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCellsThatAreNotPublishedCanBePlayed(t *testing.T) {
	o, err := parse([]string{"-seed", "7", "-runs=2", "--bad-runs", "2", "-rival-runs=1", "-rates=30,300", "-bases=0.003", "-effects", "0,0.02", "-families=independent,late defect", "-variations=false"}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(o.experiment.Cells()); got != 8 || o.experiment.Seed != 7 {
		t.Errorf("%d cells with seed %d, want 8 with 7", got, o.experiment.Seed)
	}
	var page, progress bytes.Buffer
	if err := run(o, &page, &progress); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 300 | 0.30 % | +2 pp |", "seed 7", "### Late defect"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if !strings.Contains(progress.String(), "8 cells in ") || strings.Contains(page.String(), "8 cells in ") {
		t.Error("how long it took belongs to the terminal, and not into the page")
	}
}

func TestThePageIsWrittenIntoAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.md")
	o, err := parse([]string{"-o", name, "-runs=1", "-bad-runs=1", "-rival-runs=0", "-rates=10", "-bases=0.01", "-families=edge", "-variations=false"}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	if err := run(o, &out, &progress); err != nil || out.Len() > 0 {
		t.Errorf("%v, and on the standard output %q", err, out.String())
	}
	if text, err := os.ReadFile(name); err != nil || !strings.HasPrefix(string(text), "# How well the analysis decides") || strings.Contains(string(text), "| Flagger |") {
		t.Errorf("%v: %.80s", err, text)
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-families=dependent": `"dependent" is none of independent`, "-rates=ten": `"ten" is no number`,
		"-rates=-5": "rates: -5", "-runs=0": "runs", "extra": "unexpected argument", "-nonsense": "not defined",
	} {
		var errs bytes.Buffer
		if _, err := parse([]string{args}, &errs); err == nil || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: error %v, printed %q", args, err, errs.String())
		}
	}
	var errs bytes.Buffer
	if _, err := parse([]string{"-h"}, &errs); !errors.Is(err, flag.ErrHelp) || !strings.Contains(errs.String(), "late defect") {
		t.Errorf("help: %v %q", err, errs.String())
	}
}
