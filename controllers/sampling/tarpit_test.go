// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/analysis"
)

// Of ten tenants, one has fifty TrafficSplits whose proxies never answer. The windows of the
// others are less than one window late, and none is left out.
func TestATarpitOfOneTenantDelaysTheWindowsOfNoOther(t *testing.T) {
	const tenants, hanging, lasts = 10, 50, 2 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		s := newCounting()
		s.read["hangs"] = func(ctx context.Context, s analysis.Scrape) (analysis.Scrape, error) {
			<-ctx.Done()
			return s, ctx.Err()
		}
		s.read["answers"] = func(_ context.Context, s analysis.Scrape) (analysis.Scrape, error) {
			time.Sleep(20 * time.Millisecond)
			return s, nil
		}
		c := collecting(t, s, 0)
		for i := range hanging {
			c.watch(types.NamespacedName{Namespace: "tarpit", Name: fmt.Sprint("r", i)}, targetOf("hangs"), analysis.Weight{Percent: 10, Since: time.Now()})
		}
		time.Sleep(30 * time.Second) // it has all that it can get
		begun := time.Now()
		tenant := func(i int) types.NamespacedName {
			return types.NamespacedName{Namespace: fmt.Sprint("tenant", i), Name: "website"}
		}
		for i := range tenants - 1 {
			c.watch(tenant(i), targetOf("answers"), analysis.Weight{Percent: 10, Since: begun})
		}
		pass(lasts)
		for i := range tenants - 1 {
			windows, health := c.Windows(tenant(i), time.Time{})
			if n := len(windows); n < int(lasts/analysis.WindowLength)-1 {
				t.Errorf("tenant %d: %d windows of %d; %+v", i, n, lasts/analysis.WindowLength, health)
			}
			for j, w := range windows {
				if late := w.End.Sub(begun) - time.Duration(j+1)*analysis.WindowLength; late >= analysis.WindowLength {
					t.Errorf("tenant %d: window %d is %s late", i, j, late)
					break
				}
			}
		}
	})
}
