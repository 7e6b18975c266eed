// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	metricsv1 "github.com/serin-dev/serin/api/metrics/v1alpha1"
	"github.com/serin-dev/serin/metricsapi/observe"
)

// crowd has the same items for every question.
type crowd struct {
	*world
	items []metricsv1.TrafficMetrics
}

func newCrowd(pods int) crowd {
	c := crowd{world: shop()}
	for i := range pods {
		c.items = append(c.items, item(observe.Pods, "namespace-"+strconv.Itoa(i/100), fmt.Sprintf("pod-%05d", i)))
	}
	return c
}

func (c crowd) Metrics(context.Context, observe.Request) (observe.Answer, error) {
	return observe.Answer{Items: append([]metricsv1.TrafficMetrics(nil), c.items...)}, nil
}

func TestTenThousandPodsComeWholeAndInChunks(t *testing.T) {
	const pods = 10_000
	h := handlerOf(t, newCrowd(pods), nil)
	all, _ := names(t, get(t, h, root+"/pods").Body.Bytes())
	if len(all) != pods {
		t.Errorf("%d items", len(all))
	}
	found, token := map[string]bool{}, ""
	for chunks := 0; chunks == 0 || token != ""; chunks++ {
		some, list := names(t, get(t, h, root+"/pods?limit=3000&continue="+url.QueryEscape(token)).Body.Bytes())
		for _, n := range some {
			found[n] = true
		}
		token = list.Continue
	}
	if len(found) != pods {
		t.Errorf("%d items in chunks", len(found))
	}
}

func BenchmarkListOfPods(b *testing.B) {
	for _, pods := range []int{1_000, 10_000} {
		h := handlerOf(b, newCrowd(pods), nil)
		b.Run(strconv.Itoa(pods), func(b *testing.B) {
			for b.Loop() {
				if w := get(b, h, root+"/pods"); w.Code != http.StatusOK {
					b.Fatal(w.Code)
				}
			}
		})
	}
}
