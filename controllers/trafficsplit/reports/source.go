// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/serin-dev/serin/proxy/confirmation"
)

// HTTP is the Source that asks agents. It follows no redirect and uses no proxy from the
// environment.
type HTTP struct{ client *http.Client }

// NewHTTP makes one.
func NewHTTP() HTTP {
	return HTTP{&http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1, MaxIdleConns: 1024, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 16 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Read implements Source. An answer is not repeated in an error: it need not be an agent's.
func (h HTTP) Read(ctx context.Context, address string, pod types.UID) (confirmation.Served, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+confirmation.Path, nil)
	if err != nil {
		return confirmation.Served{}, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return confirmation.Served{}, errors.New("it does not answer; let the operator reach that port, see docs/proxy.md")
		}
		return confirmation.Served{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return confirmation.Served{}, fmt.Errorf("it answers with status %d", response.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, confirmation.MaxBytes+1))
	if err != nil {
		return confirmation.Served{}, err
	}
	if len(body) > confirmation.MaxBytes {
		return confirmation.Served{}, errors.New("its answer is too long")
	}
	return confirmation.Parse(body, pod)
}
