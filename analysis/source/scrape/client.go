// SPDX-License-Identifier: Apache-2.0

package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/serin-dev/serin/analysis"
	"github.com/serin-dev/serin/proxy/exposition"
)

const (
	// DefaultTimeout is how long a pod may take to answer.
	DefaultTimeout = 2 * time.Second
	// MaxBody is the most bytes that are read of an answer, once decompressed, unless
	// the Options say otherwise.
	MaxBody = 1 << 20

	maxHeader      = 16 << 10
	maxConcurrency = 16 // pods of one target read at the same time
	accept         = "text/plain;version=0.0.4"
)

// Options configure a Client. Zero fields take their defaults.
type Options struct {
	// Timeout is how long one pod may take; DefaultTimeout when zero.
	Timeout time.Duration
	// MaxBody is the most bytes that are read of an answer, once decompressed; the
	// constant of that name when zero.
	MaxBody int64
	// Allow lists addresses that may be read although they are loopback or
	// link-local, where no pod of a cluster is.
	Allow []netip.Prefix
}

// Client reads proxies. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	maxBody int64
	allow   []netip.Prefix

	// parsing is locked while an answer is parsed, which takes many times its size in
	// memory.
	parsing sync.Mutex
}

// New makes a Client that follows no redirect and uses no proxy from the
// environment.
func New(o Options) *Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBody <= 0 {
		o.MaxBody = MaxBody
	}
	transport := &http.Transport{
		MaxIdleConnsPerHost:    1,
		MaxIdleConns:           1024,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: maxHeader,
	}
	return &Client{
		allow:   o.Allow,
		maxBody: o.MaxBody,
		http: &http.Client{
			Transport:     transport,
			Timeout:       o.Timeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Scrape reads every pod of the target at the same time. Pods that cannot be
// read are listed in Missed; it is an error only if that is all of them.
func (c *Client) Scrape(ctx context.Context, t analysis.Target, at time.Time) (analysis.Scrape, error) {
	readings := make([]reading, len(t.Pods))
	slots := make(chan struct{}, maxConcurrency)
	var reads sync.WaitGroup
	for i, pod := range t.Pods {
		slots <- struct{}{}
		reads.Go(func() {
			defer func() { <-slots }()
			readings[i] = c.read(ctx, pod, t)
		})
	}
	reads.Wait()

	s := analysis.Scrape{At: at, Pods: make(map[string]analysis.PodCounters, len(t.Pods))}
	for i, pod := range t.Pods {
		r := readings[i]
		if _, twice := s.Pods[r.series]; twice && r.err == nil {
			r.err = fmt.Errorf("pod %s: listed twice in the target", pod.UID)
		}
		if r.err != nil {
			s.Missed = append(s.Missed, analysis.Missed{UID: pod.UID, Err: r.err})
			continue
		}
		s.Pods[r.series] = r.counters
	}
	if len(s.Pods) == 0 {
		return s, noneRead(s.Missed)
	}
	return s, nil
}

// noneRead is the error for a scrape that read no pod.
func noneRead(missed []analysis.Missed) error {
	if len(missed) == 0 {
		return errors.New("the target has no pods; list the proxies to read")
	}
	return fmt.Errorf("none of %d proxies could be read: %w", len(missed), missed[0].Err)
}

// reading is what one pod gave.
type reading struct {
	series   string
	counters analysis.PodCounters
	err      error
}

func (c *Client) read(ctx context.Context, pod analysis.Pod, t analysis.Target) reading {
	body, err := c.get(ctx, pod.Address, versions)
	if err == nil {
		var m metrics
		if m, err = c.parse(body, t); err == nil {
			return reading{series: pod.UID + "@" + m.start, counters: m.counters}
		}
	}
	return reading{err: fmt.Errorf("proxy %s: %w", pod.Address, err)}
}

func (c *Client) parse(body []byte, t analysis.Target) (metrics, error) {
	c.parsing.Lock()
	defer c.parsing.Unlock()
	return parse(body, t)
}

// versions asks for what compares two versions, and what the proxy refused. A proxy with many clients has megabytes
// of other metrics.
var versions = named(exposition.Requests, exposition.Unmatched, exposition.Refused, exposition.Durations, exposition.Start, exposition.BackendInfo)

// named is the query for some metrics.
func named(names ...string) string { return url.Values{"name[]": names}.Encode() }

// Read fetches the metrics of the given names from one pod, and when it started, and hands them
// to a function, to one at a time: they take many times their size in memory, until it returns.
// A pod may answer others too. Read returns the error of the function.
func (c *Client) Read(ctx context.Context, address string, use func(exposition.Families) error, names ...string) error {
	body, err := c.get(ctx, address, named(append(slices.Clone(names), exposition.Start)...))
	if err == nil {
		err = c.use(body, use)
	}
	if err != nil {
		return fmt.Errorf("proxy %s: %w", address, err)
	}
	return nil
}

func (c *Client) use(body []byte, do func(exposition.Families) error) error {
	c.parsing.Lock()
	defer c.parsing.Unlock()
	f, err := exposition.Parse(body)
	if err != nil {
		return err
	}
	return do(f)
}

// get fetches the metrics of one pod that a query asks for.
func (c *Client) get(ctx context.Context, address, query string) ([]byte, error) {
	if err := c.checkAddress(address); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics?"+query, http.NoBody)
	if err != nil {
		return nil, errors.New("the address cannot be part of a URL")
	}
	req.Header.Set("Accept", accept)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, describe(err)
	}
	defer resp.Body.Close()
	if err := checkResponse(resp); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.maxBody+1))
	switch {
	case err != nil:
		return nil, describe(err)
	case int64(len(body)) > c.maxBody:
		return nil, fmt.Errorf("the answer is longer than %d bytes", c.maxBody)
	}
	return body, nil
}

// checkAddress refuses what is not the IP and port of a pod. Names are not
// resolved, so what is checked here is what is dialled.
func (c *Client) checkAddress(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.New("the address is not an IP and a port")
	}
	ip := ap.Addr().Unmap()
	for _, p := range c.allow {
		if p.Contains(ip) {
			return nil
		}
	}
	if ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return errors.New("the address is not one of a pod: loopback, link-local, multicast and unspecified ones are refused")
	}
	return nil
}
