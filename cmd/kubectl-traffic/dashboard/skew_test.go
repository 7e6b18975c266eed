// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
)

var errSkew = errors.New("the plugin is of version 0.5.0: install kubectl traffic 0.3.0")

func TestButtonsRefuseToDecideForAnOperatorOfAnotherVersion(t *testing.T) {
	for action, refused := range map[string]bool{"Promote": true, "PromoteFull": true, "Skip": true, "Retry": true, "Abort": false, "pause": false} {
		t.Run(action, func(t *testing.T) {
			api := cluster(t, website()).Build()
			h := dashboard.NewHandler(dashboard.Options{
				Viewers: viewers{"jane": {API: api}}, Origins: []string{origin}, Clock: clock.RealClock{}, Skew: func() error { return errSkew },
			})
			r := httptest.NewRequest(http.MethodPost, origin+"/api/rollouts/shop/website/actions", strings.NewReader(`{"action":"`+action+`","revision":"canary2","step":0,"reason":""}`))
			r.Header.Set("Authorization", "jane")
			r.Header.Set("Origin", origin)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			answer := do(h, r)
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(body), "install kubectl traffic 0.3.0"); got != refused || refused && answer.StatusCode != http.StatusConflict {
				t.Errorf("status %d: %s", answer.StatusCode, body)
			}
		})
	}
}
