// SPDX-License-Identifier: Apache-2.0

package exposition_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/serin-dev/serin/proxy/exposition"
)

// most is how much of an answer the servers of TrafficMetrics read.
const most = 8 << 20

// full repeats lines until an answer is as long as it is read, or has so many lines.
func full(lines int, line func(i int) string) []byte {
	var b bytes.Buffer
	for i := range lines {
		l := line(i)
		if b.Len()+len(l)+1 > most {
			break
		}
		b.WriteString(l + "\n")
	}
	return b.Bytes()
}

// allocated is how many bytes a call takes from the heap in all.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A pod that answers in a proxy's place must not use up the memory of who reads it: the manager,
// and the servers of TrafficMetrics with a limit of 256 MiB.
func TestNoAnswerTakesMuchMemory(t *testing.T) {
	labels := func(n int) string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf(`l%d=""`, i)
		}
		return strings.Join(names, ",")
	}
	thousand, eight := labels(1000), labels(8)
	for name, answer := range map[string][]byte{
		"short lines":           full(most, func(int) string { return "a 1" }),
		"many metrics":          full(most, func(i int) string { return fmt.Sprintf("a%x 1", i) }),
		"many labels in a line": full(2, func(int) string { return "a{" + thousand + "} 1" }),
		"a large histogram":     []byte("# TYPE a histogram\n" + string(full(most, func(i int) string { return fmt.Sprintf(`a_bucket{le="%d"} 1`, i) }))),
		"as many lines as may":  full(30_000, func(i int) string { return fmt.Sprintf("a%x 1", i) }),
		"as many labels as may": full(30_000, func(int) string { return "a{" + eight + "} 1" }),
	} {
		got := allocated(func() { _, _ = exposition.Parse(answer) })
		t.Logf("%s: %d MiB for %d KiB", name, got>>20, len(answer)>>10)
		if got > 64<<20 {
			t.Errorf("%s: takes %d MiB", name, got>>20)
		}
	}
}

// The largest answer of a proxy is read.
func TestWhatAProxyTellsIsRead(t *testing.T) {
	var b strings.Builder
	of := func(i int) string {
		return fmt.Sprintf(`namespace="shop",apex="website",backend="website-%d",client="10.0.%d.%d",server="10.1.0.1"`, i%2, i/250, i%250)
	}
	fmt.Fprintf(&b, "# TYPE %s counter\n", exposition.FlowRequests)
	for i := range 1200 {
		fmt.Fprintf(&b, "%s{%s,result=\"success\"} 5\n%[1]s{%[2]s,result=\"failure\"} 1\n", exposition.FlowRequests, of(i))
	}
	fmt.Fprintf(&b, "# TYPE %s histogram\n", exposition.FlowDurations)
	for i := range 1200 {
		for _, le := range []string{"0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "30", "+Inf"} {
			fmt.Fprintf(&b, "%s_bucket{%s,le=%q} 6\n", exposition.FlowDurations, of(i), le)
		}
		fmt.Fprintf(&b, "%s_sum{%s} 1\n%[1]s_count{%[2]s} 6\n", exposition.FlowDurations, of(i))
	}
	families, err := exposition.Parse([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	series, err := families.Series(exposition.FlowDurations, dto.MetricType_HISTOGRAM)
	if err != nil || len(series) != 1200 {
		t.Errorf("%d series, %v", len(series), err)
	}
	if _, err := exposition.Histogram(series[0].GetHistogram()); err != nil {
		t.Error(err)
	}
}

func TestAHistogramHasFewBuckets(t *testing.T) {
	h := &dto.Histogram{}
	for i := range 129 {
		bound := float64(i)
		h.Bucket = append(h.Bucket, &dto.Bucket{UpperBound: &bound})
	}
	if _, err := exposition.Histogram(h); err == nil {
		t.Error("129 buckets are read")
	}
	h.Bucket = h.Bucket[:128]
	if _, err := exposition.Histogram(h); err != nil {
		t.Error(err)
	}
}
