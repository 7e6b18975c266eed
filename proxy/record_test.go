// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParseRecord(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		want record
	}{
		"an answered request":                          {"b0123456789ab\t200\t0.012\t0.010\tOK\tsplit", record{"b0123456789ab", "200", 0.012, true, "split"}},
		"several attempts add up":                      {"b1\t200\t0.001, 0.020 : 0.003\t-, - : 0.002\tOK\tsplit", record{"b1", "200", 0.024, true, "split"}},
		"an attempt without a time adds nothing":       {"b1\t200\t- : 0.003\t- : 0.002\tOK\tsplit", record{"b1", "200", 0.003, true, "split"}},
		"a client that went away":                      {"b1\t499\t1.500\t-\t\tsplit", record{"b1", "499", 1.5, false, "split"}},
		"no attempt has a time":                        {"b1\t502\t-\t-\tOK\tsplit", record{"b1", "502", -1, true, "split"}},
		"a request that nobody was asked for":          {"-\t503\t\t\tOK\tsplit", record{"", "503", -1, true, "split"}},
		"an upgraded connection counts to the upgrade": {"b1\t101\t3600.000\t0.002\t\tsplit", record{"b1", "101", 0.002, false, "split"}},
		"a request that matched nothing":               {"b1\t200\t0.012\t0.010\tOK\tunmatched", record{"b1", "200", 0.012, true, "unmatched"}},
		"a copy that timed out":                        {"b1\t504\t10.001\t-\tOK\tmirrored", record{"b1", "504", 10.001, true, "mirrored"}},
		"a connection that ended without a status":     {"-\t000\t-\t-\t-\tsplit", record{"", "000", -1, false, "split"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseRecord([]byte(test.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(record{}), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRecordRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":                   "",
		"too few fields":            "b1\t200\t0.001\t0.001\tsplit",
		"too many fields":           "b1\t200\t0.001\t0.001\tOK\t\tsplit",
		"no backend":                "\t200\t0.001\t0.001\tOK\tsplit",
		"a backend that is no ID":   "web stable\t200\t0.001\t0.001\tOK\tsplit",
		"a status of two digits":    "b1\t20\t0.001\t0.001\tOK\tsplit",
		"a status of letters":       "b1\tabc\t0.001\t0.001\tOK\tsplit",
		"a time that is no number":  "b1\t200\tx\t0.001\tOK\tsplit",
		"a time of microseconds":    "b1\t200\t0.000001\t0.001\tOK\tsplit",
		"a negative time":           "b1\t200\t-0.001\t0.001\tOK\tsplit",
		"a header time that is bad": "b1\t200\t0.001\tNaN\tOK\tsplit",
		"another kind":              "b1\t200\t0.001\t0.001\tOK\tx",
		"no kind":                   "b1\t200\t0.001\t0.001\tOK",
		"another completion":        "b1\t200\t0.001\t0.001\tNO\tsplit",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseRecord([]byte(line)); err == nil {
				t.Errorf("%q was read as %+v", line, got)
			}
		})
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte("b1\t200\t0.001, 0.020 : 0.003\t-\tOK\tsplit"))
	f.Add([]byte("b1\t504\t-\t-\tOK\tmirrored"))
	f.Add([]byte("-\t000\t\t\t\tunmatched"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := parseRecord(line)
		if err != nil {
			return
		}
		if len(r.code) != 3 || strings.Trim(r.code, "0123456789") != "" {
			t.Errorf("%q has the status %q", line, r.code)
		}
		if math.IsNaN(r.seconds) || math.IsInf(r.seconds, 0) || r.seconds < 0 && r.seconds != -1 {
			t.Errorf("%q took %f seconds", line, r.seconds)
		}
	})
}
