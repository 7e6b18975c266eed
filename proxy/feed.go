// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"

	"github.com/serin-dev/serin/controllers/traffic"
)

// Want is what is to be served.
type Want struct {
	// Split with every reference resolved. Without ports there is nothing that can
	// be served.
	Split traffic.Split
	// Problems of resolving it.
	Problems []traffic.Problem
}

// Served is what is being served.
type Served struct {
	// Generation of the TrafficSplit that every request is served by; 0 for none.
	Generation int64
	// Configuration is the digest of the split that is served; "" for none.
	Configuration string
	// Message says why a newer generation is not served, or what of this one has no
	// backend; empty when neither is so.
	Message string
}

// Feed is where the agent learns what to serve and tells what it serves.
type Feed interface {
	// Run keeps the feed going until the context ends.
	Run(ctx context.Context) error
	// Wants delivers what is to be served whenever it changes. One that was not
	// taken is replaced by the next.
	Wants() <-chan Want
	// Report says what is served now. It does not wait for anything; the feed sees
	// to it that the last report arrives.
	Report(served Served)
}

// Server is nginx as the agent uses it. Process is the real one.
type Server interface {
	// Test checks a configuration file without putting it in effect.
	Test(ctx context.Context, file string) error
	// Start starts nginx and returns when all its workers serve the key. After an
	// error it can be called again.
	Start(ctx context.Context, key string) error
	// Reload takes the configuration over and returns when every worker that
	// accepts connections serves the key.
	Reload(ctx context.Context, key string) error
	// Stop lets requests finish until the context ends, and ends nginx.
	Stop(ctx context.Context) error
	// Ended is closed when nginx has ended; nil while it was not started.
	Ended() <-chan struct{}
}
