// SPDX-License-Identifier: Apache-2.0

package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestEntriesOfTheLogAreJSONByDefault(t *testing.T) {
	var out bytes.Buffer
	log, err := (&logOptions{level: "info", format: "json"}).loggerTo(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.V(1).Info("not written")
	log.WithName("rollout").Info("weight changed", "weight", 20)
	log.Error(errors.New("no connection"), "list Pods")
	var entries []map[string]any
	for decoder := json.NewDecoder(&out); decoder.More(); {
		entry := map[string]any{}
		if err := decoder.Decode(&entry); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	if len(entries) != 2 {
		t.Fatalf("entries = %v, want two", entries)
	}
	for key, want := range map[string]any{"level": "info", "logger": "rollout", "msg": "weight changed", "weight": 20.} {
		if got := entries[0][key]; got != want {
			t.Errorf("%s = %v, want %v", key, got, want)
		}
	}
	if at, _ := entries[0]["ts"].(string); !parses(at) {
		t.Errorf("ts = %q, want a time by RFC 3339", at)
	}
	if got := entries[1]["error"]; got != "no connection" || entries[1]["level"] != "error" || entries[1]["stacktrace"] == nil {
		t.Errorf("entry of an error = %v", entries[1])
	}
}

func parses(at string) bool {
	_, err := time.Parse(time.RFC3339Nano, at)
	return err == nil
}

// counted says how often it was encoded.
type counted struct{ encoded *int }

func (c counted) String() string {
	*c.encoded++
	return "said"
}

func TestALoggerThatWritesNothingEncodesNothing(t *testing.T) {
	var out bytes.Buffer
	log, err := (&logOptions{level: "info", format: "json"}).loggerTo(&out)
	if err != nil {
		t.Fatal(err)
	}
	encoded := 0
	log = log.WithValues("first", counted{&encoded}).WithValues("second", counted{&encoded})
	log.V(1).Info("not written")
	if encoded != 0 {
		t.Errorf("encoded %d values for nothing", encoded)
	}
	log.WithValues("third", counted{&encoded}).Info("written", "fourth", 4)
	for _, want := range []string{`"first":"said"`, `"second":"said"`, `"third":"said"`, `"fourth":4`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in %s", want, out.String())
		}
	}
}

func TestTheLogMayBeTextAndSayMore(t *testing.T) {
	var out bytes.Buffer
	log, err := (&logOptions{level: "debug", format: "text"}).loggerTo(&out)
	if err != nil {
		t.Fatal(err)
	}
	log.V(1).Info("weight changed", "weight", 20)
	if got := out.String(); !strings.Contains(got, "DEBUG\tweight changed\t{\"weight\": 20}\n") {
		t.Errorf("log = %q", got)
	}
}

func TestTheSameEntryInALoopIsWrittenOnceInAWhile(t *testing.T) {
	var out bytes.Buffer
	log, err := (&logOptions{level: "info", format: "json"}).loggerTo(&out)
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		log.Info("again")
	}
	if lines := strings.Count(out.String(), "\n"); lines < 100 || lines > 2000 {
		t.Errorf("%d lines of 10,000 entries", lines)
	}
}

func TestFlagsOfTheLogThatMeanNothingAreRefused(t *testing.T) {
	for want, o := range map[string]logOptions{
		`--log-level: "loud" is not one of debug, info, warn, error`: {level: "loud", format: "json"},
		`--log-format: "xml" is not one of json, text`:               {level: "info", format: "xml"},
	} {
		if _, err := o.loggerTo(&bytes.Buffer{}); err == nil || err.Error() != want {
			t.Errorf("error = %v, want %s", err, want)
		}
	}
}
