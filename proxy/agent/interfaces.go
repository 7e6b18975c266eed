// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"

	"github.com/serin-dev/serin/proxy/feed"
	"github.com/serin-dev/serin/proxy/nginxproc"
)

// Feed is where the agent learns what to serve. feed.Feed is the real one.
type Feed interface {
	// Run keeps the feed going until the context ends.
	Run(ctx context.Context) error
	// Wants delivers what is to be served whenever it changes. One that was not
	// taken is replaced by the next.
	Wants() <-chan feed.Want
}

// Server is nginx as the agent uses it. nginxproc.Process is the real one.
//
// A configuration does not go live by a reload but by another nginx on the same
// sockets, next to the one that runs. So the start after a crash is the same as
// any change, and what fails to start disturbs nothing.
type Server interface {
	// Start starts an nginx and returns when all its workers serve the key. After an
	// error nothing of it is left. Clients are served by the previous ones as well.
	Start(ctx context.Context, launch nginxproc.Launch) error
	// Adopt continues with the nginx that another agent started in a folder, and the
	// previous ones. It fails when that one does not serve the key.
	Adopt(ctx context.Context, launch nginxproc.Launch) error
	// Retire has all previous ones finish their requests, and returns when none of them
	// accepts connections any more.
	Retire(ctx context.Context) error
	// Stop lets requests finish until the context ends, and ends every nginx.
	Stop(ctx context.Context) error
	// Ended is closed when the master of the newest nginx has ended; nil while there is
	// none. Its workers may go on.
	Ended() <-chan struct{}
}
