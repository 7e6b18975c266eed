// SPDX-License-Identifier: Apache-2.0

package accesslog

import (
	"math"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	var unknown netip.Addr
	for name, test := range map[string]struct {
		line string
		want Record
	}{
		"an answered request":                          {"b0123456789ab\t10.96.0.1:80\t200\t0.012\t0.010\tOK\tsplit\t-", Record{"b0123456789ab", "200", 0.012, true, "split", unknown}},
		"a client of IPv6":                             {"b1\t10.96.0.1:80\t200\t0.012\t0.010\tOK\tsplit\tfd00::7", Record{"b1", "200", 0.012, true, "split", netip.MustParseAddr("fd00::7")}},
		"a client of IPv4 on a socket of IPv6":         {"b1\t10.96.0.1:80\t200\t0.012\t0.010\tOK\tsplit\t::ffff:10.0.0.7", Record{"b1", "200", 0.012, true, "split", netip.MustParseAddr("10.0.0.7")}},
		"a client of a previous nginx":                 {"b1\t10.96.0.1:80\t200\t0.012\t0.010\tOK\tsplit\tunix:", Record{"b1", "200", 0.012, true, "split", unknown}},
		"several attempts add up":                      {"b1\t10.96.0.1:80\t200\t0.001, 0.020 : 0.003\t-, - : 0.002\tOK\tsplit\t-", Record{"b1", "200", 0.024, true, "split", unknown}},
		"an attempt without a time adds nothing":       {"b1\t10.96.0.1:80\t200\t- : 0.003\t- : 0.002\tOK\tsplit\t-", Record{"b1", "200", 0.003, true, "split", unknown}},
		"a client that went away":                      {"b1\t10.96.0.1:80\t499\t1.500\t-\t\tsplit\t-", Record{"b1", "499", 1.5, false, "split", unknown}},
		"no attempt has a time":                        {"b1\t10.96.0.1:80\t502\t-\t-\tOK\tsplit\t-", Record{"b1", "502", -1, true, "split", unknown}},
		"a request that no backend got":                {"\t-\t503\t\t\tOK\tsplit\t-", Record{"", "503", -1, true, "split", unknown}},
		"an upgraded connection counts to the upgrade": {"b1\t10.96.0.1:80\t101\t3600.000\t0.002\t\tsplit\t-", Record{"b1", "101", 0.002, false, "split", unknown}},
		"a request that matched nothing":               {"b1\t10.96.0.1:80\t200\t0.012\t0.010\tOK\tunmatched\t-", Record{"b1", "200", 0.012, true, "unmatched", unknown}},
		"a copy that timed out":                        {"b1\t10.96.0.1:80\t504\t10.001\t-\tOK\tmirrored\t-", Record{"b1", "504", 10.001, true, "mirrored", unknown}},
		"a backend that was drawn but not asked":       {"b1\t-\t400\t-\t-\tOK\tsplit\t-", Record{"", "400", -1, true, "split", unknown}},
		"several attempts of one request":              {"b1\t10.96.0.1:80, 10.96.0.1:80\t200\t0.012\t0.010\tOK\tsplit\t-", Record{"b1", "200", 0.012, true, "split", unknown}},
		"a request that the proxy refused":             {strings.Replace(Refused().Line(), "$status", "503", 1), Record{"", "503", -1, true, "refused", unknown}},
		"a connection that ended without a status":     {"-\t-\t000\t-\t-\t-\tsplit\t-", Record{"", "000", -1, false, "split", unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":                   "",
		"too few fields":            "b1\t10.96.0.1:80\t200\t0.001\t0.001\tsplit\t-",
		"too many fields":           "b1\t10.96.0.1:80\t200\t0.001\t0.001\tOK\t\tsplit\t-",
		"no backend":                "\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tsplit\t-",
		"a backend that is no ID":   "web stable\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tsplit\t-",
		"a status of two digits":    "b1\t10.96.0.1:80\t20\t0.001\t0.001\tOK\tsplit\t-",
		"a status of letters":       "b1\t10.96.0.1:80\tabc\t0.001\t0.001\tOK\tsplit\t-",
		"a time that is no number":  "b1\t10.96.0.1:80\t200\tx\t0.001\tOK\tsplit\t-",
		"a time of microseconds":    "b1\t10.96.0.1:80\t200\t0.000001\t0.001\tOK\tsplit\t-",
		"a field after the client":  "b1\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tsplit\t-\t-",
		"a backend with a brace":    "b{\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tsplit\t-",
		"a time of hundredths":      "b1\t10.96.0.1:80\t200\t0.01\t0.001\tOK\tsplit\t-",
		"a negative time":           "b1\t10.96.0.1:80\t200\t-0.001\t0.001\tOK\tsplit\t-",
		"a header time that is bad": "b1\t10.96.0.1:80\t200\t0.001\tNaN\tOK\tsplit\t-",
		"another kind":              "b1\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tx\t-",
		"no kind":                   "b1\t10.96.0.1:80\t200\t0.001\t0.001\tOK\t-",
		"no client":                 "b1\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tsplit\t",
		"a client that is no IP":    "b1\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tsplit\tweb",
		"a client with a zone":      "b1\t10.96.0.1:80\t200\t0.001\t0.001\tOK\tsplit\tfe80::1%eth0",
		"another completion":        "b1\t10.96.0.1:80\t200\t0.001\t0.001\tNO\tsplit\t-",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Parse([]byte(line)); err == nil {
				t.Errorf("%q was read as %+v", line, got)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("b1\t10.96.0.1:80\t200\t0.001, 0.020 : 0.003\t-\tOK\tsplit\t10.0.0.7"))
	f.Add([]byte("b1\t10.96.0.1:80\t504\t-\t-\tOK\tmirrored\t-"))
	f.Add([]byte("-\t-\t000\t\t\t\tunmatched\t::1"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := Parse(line)
		if err != nil {
			return
		}
		if len(r.Code) != 3 || strings.Trim(r.Code, "0123456789") != "" {
			t.Errorf("%q has the status %q", line, r.Code)
		}
		if math.IsNaN(r.Seconds) || math.IsInf(r.Seconds, 0) || r.Seconds < 0 && r.Seconds != -1 {
			t.Errorf("%q took %f seconds", line, r.Seconds)
		}
	})
}
