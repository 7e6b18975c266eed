// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/serin-dev/serin/analysis/source"
	"github.com/serin-dev/serin/analysis/source/fetch"
)

// answers gives the same answer to everything, at once.
type answers string

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// decoding is how many answers are being decoded, and the most that were at one time.
type decoding struct {
	mu        sync.Mutex
	now, most int
}

// take decodes for a second.
func (d *decoding) take() {
	d.mu.Lock()
	d.now++
	d.most = max(d.most, d.now)
	d.mu.Unlock()
	time.Sleep(time.Second)
	d.mu.Lock()
	d.now--
	d.mu.Unlock()
}

// Sixteen endpoints of a tenant answer at the same moment, each with a megabyte of JSON that
// takes fifty in memory.
func TestAnswersAreDecodedOneAtATime(t *testing.T) {
	for name, measure := range map[string]func(context.Context, *fetch.Caller, *decoding) error{
		"by a source": func(ctx context.Context, c *fetch.Caller, d *decoding) error {
			m := &fetch.Measurer{
				Caller: c, Address: "http://a.example",
				Request: func(time.Time, []string) (fetch.Request, error) {
					return fetch.Request{URL: "http://a.example"}, nil
				},
				Read: func([]byte, time.Time) (source.Sample, error) {
					d.take()
					return source.Sample{}, nil
				},
			}
			_, err := m.Measure(ctx, time.Now())
			return err
		},
		"by a library, which asks twice": func(ctx context.Context, c *fetch.Caller, d *decoding) error {
			client, done := c.Client()
			defer done()
			for range 2 {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://a.example", http.NoBody)
				if err != nil {
					return err
				}
				response, err := client.Do(request)
				if err != nil {
					return err
				}
				if body, err := io.ReadAll(response.Body); err != nil || string(body) != "5" {
					return errors.New("another answer")
				}
				d.take()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, d := &fetch.Caller{HTTP: &http.Client{Transport: answers("5")}, Timeout: time.Hour}, &decoding{}
				var all sync.WaitGroup
				for range 16 {
					all.Go(func() {
						if err := measure(t.Context(), c, d); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if d.most != 1 {
					t.Errorf("%d answers were decoded at the same time", d.most)
				}
			})
		})
	}
}

// Who waits for a turn waits no longer than for an answer.
func TestATurnIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fetch.Caller{HTTP: &http.Client{Transport: answers("5")}, Timeout: 10 * time.Second}
		hold := func(d time.Duration) error {
			m := &fetch.Measurer{
				Caller: c, Address: "http://a.example",
				Request: func(time.Time, []string) (fetch.Request, error) {
					return fetch.Request{URL: "http://a.example"}, nil
				},
				Read: func([]byte, time.Time) (source.Sample, error) {
					time.Sleep(d)
					return source.Sample{}, nil
				},
			}
			_, err := m.Measure(t.Context(), time.Now())
			return err
		}
		var first sync.WaitGroup
		first.Go(func() { _ = hold(time.Minute) })
		defer first.Wait()
		synctest.Wait()
		var missing *source.MissingError
		if err := hold(0); !errors.As(err, &missing) || missing.Reason != source.Timeout {
			t.Errorf("got %v", err)
		}
	})
}
