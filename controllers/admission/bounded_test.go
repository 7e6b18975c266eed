// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gomodules.xyz/jsonpatch/v2"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/controllers/admission"
)

const anyReview = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","object":{}}}`

// ask sends a question and returns the status of the answer.
func ask(t *testing.T, h http.Handler, body io.Reader) int {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body)
	request.Header.Set("Content-Type", "application/json")
	recorded := httptest.NewRecorder()
	h.ServeHTTP(recorded, request)
	if recorded.Code == http.StatusOK && !strings.Contains(recorded.Body.String(), `"allowed":true`) {
		t.Errorf("answered %s", recorded.Body)
	}
	return recorded.Code
}

// Every pod reaches the port of webhooks: many large questions must not use the memory up.
func TestQuestionsAreAnsweredOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now, most := 0, 0
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			now += n
			most = max(most, now)
		}
		bounded := admission.Bounded(clock.RealClock{})
		h := bounded(admission.Handler(func(admission.Request) []jsonpatch.Operation {
			count(1)
			time.Sleep(time.Second)
			count(-1)
			return nil
		}))
		other := bounded(admission.Handler(func(admission.Request) []jsonpatch.Operation { return nil }))
		// One that is never sent to its end holds no other up.
		silent, writer := io.Pipe()
		var all sync.WaitGroup
		all.Go(func() { ask(t, other, silent) })
		for range 40 {
			all.Go(func() {
				if code := ask(t, h, strings.NewReader(anyReview)); code != http.StatusOK {
					t.Errorf("answered %d", code)
				}
			})
		}
		time.Sleep(time.Minute)
		mu.Lock()
		if now != 0 || most != 1 {
			t.Errorf("%d are left, and %d were answered at the same time", now, most)
		}
		mu.Unlock()
		writer.Close() //nolint:errcheck // never fails
		all.Wait()
	})
}

func TestALargeQuestionIsRefused(t *testing.T) {
	asked := false
	h := admission.Bounded(clock.RealClock{})(admission.Handler(func(admission.Request) []jsonpatch.Operation {
		asked = true
		return nil
	}))
	large := io.MultiReader(strings.NewReader(strings.TrimSuffix(anyReview, "}")), bytes.NewReader(bytes.Repeat([]byte(" "), 4<<20)), strings.NewReader("}"))
	if code := ask(t, h, large); code != http.StatusRequestEntityTooLarge || asked {
		t.Errorf("answered %d, asked %v", code, asked)
	}
}
