// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// replicas are how many proxies a split has.
const replicas = 2

// changeWeights measures how long after a change of weights both proxies say that
// it is live and answer by it. How long the API takes to deliver it is not in it.
func (s settings) changeWeights(ctx context.Context, dir string, backends *server) error {
	var proxies []*serin
	defer func() {
		for _, p := range proxies {
			p.stop()
		}
	}()
	for i := range replicas {
		p, err := startSerin(ctx, filepath.Join(dir, "replica-"+strconv.Itoa(i)), 1)
		if err != nil {
			return err
		}
		proxies = append(proxies, p)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: startTimeout}
	var took []time.Duration
	for change := range s.changes + 1 {
		weights := [2]int32{1, 0}
		if change%2 == 1 {
			weights = [2]int32{0, 1}
		}
		began := time.Now()
		for _, p := range proxies {
			p.ask(backends, weights)
		}
		for _, p := range proxies {
			if err := p.confirmed(ctx); err != nil {
				return err
			}
			if err := p.answersBy(ctx, client, backendNames[change%2]); err != nil {
				return err
			}
		}
		if change > 0 { // the first one starts nginx
			took = append(took, time.Since(began))
		}
	}
	slices.Sort(took)
	fmt.Printf("%d changes of weights, live at %d proxies after: median %s, p99 %s, at most %s\n",
		len(took), replicas, round(quantile(took, 0.5)), round(quantile(took, 0.99)), round(took[len(took)-1]))
	return nil
}

// quantile of sorted durations, without interpolation.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// answersBy checks that a request gets the answer of a backend.
func (s *serin) answersBy(ctx context.Context, client *http.Client, name string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", s.port), http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if string(body) != name {
		return fmt.Errorf("a proxy that says that its weights are live answers %q instead of %q", body, name)
	}
	return nil
}
