// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/cli"
	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/page"
)

// Viewer is who looks at the page.
type Viewer struct {
	// API reaches the cluster with the credentials of the viewer, and no others.
	API client.WithWatch
	// Metrics reads TrafficMetrics with the same credentials; nil where nothing does.
	Metrics Metrics
	// Namespace is shown when the viewer may not list objects in the whole cluster.
	Namespace string
	// Cluster is how the viewer calls the cluster.
	Cluster string
	// Logout says that the viewer has logged in, and may log out.
	Logout bool
}

// Metrics answers questions about TrafficMetrics.
type Metrics = cli.Asker

// Viewers finds out whose a request is.
type Viewers interface {
	// Viewer of a request. An error means that the request has no valid login.
	Viewer(r *http.Request) (*Viewer, error)
}

// Options say how the page is served.
type Options struct {
	Viewers Viewers
	// Origins are those under which the page is reached, such as http://127.0.0.1:8080.
	// Requests for other hosts, and from pages of other origins, are refused.
	Origins []string
	// ReadOnly refuses every change.
	ReadOnly bool
	// Skew is why this program must not decide in the cluster, whose operator is of another
	// version; nil when it may.
	Skew  func() error
	Clock clock.WithTicker
}

// server answers the requests of the page.
type server struct{ Options }

// NewHandler serves the page and what it asks for.
func NewHandler(o Options) http.Handler {
	s := &server{o}
	mux := http.NewServeMux()
	mux.Handle("GET /", page.Handler())
	mux.Handle("GET /api/viewer", s.viewed(s.aboutViewer))
	mux.Handle("GET /api/fleet", s.viewed(s.fleet))
	mux.Handle("GET /api/calendar", s.viewed(s.showCalendar))
	mux.Handle("GET /api/rollouts/{namespace}/{name}", s.viewed(s.release))
	mux.Handle("POST /api/rollouts/{namespace}/{name}/actions", s.viewed(s.act))
	mux.Handle("GET /api/traffic", s.viewed(s.traffic))
	mux.Handle("GET /api/calls", s.viewed(s.calls))
	mux.Handle("GET /api/canaries", s.viewed(s.canaries))
	mux.Handle("GET /api/canaries/{namespace}/{name}", s.viewed(s.canary))
	mux.Handle("POST /api/canaries/{namespace}/{name}/actions", s.viewed(s.endCanary))
	mux.Handle("POST /api/rollouts/{namespace}/{name}/what-if", s.viewed(s.whatIf))
	return Guard(o.Origins, mux)
}

// readTimeout bounds what is read from the cluster for one answer.
const readTimeout = 10 * time.Second

// viewed finds the viewer of a request before it is answered.
func (s *server) viewed(answer func(http.ResponseWriter, *http.Request, *Viewer)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		viewer, err := s.Viewers.Viewer(r)
		if err != nil {
			fail(w, http.StatusUnauthorized, err.Error())
			return
		}
		answer(w, r, viewer)
	})
}

// about is what the page says of its viewer.
type about struct {
	User     string `json:"user"`
	Cluster  string `json:"cluster"`
	ReadOnly bool   `json:"readOnly"`
	Logout   bool   `json:"logout"`
}

func (s *server) aboutViewer(w http.ResponseWriter, r *http.Request, v *Viewer) {
	ctx, cancel := context.WithTimeout(r.Context(), readTimeout)
	defer cancel()
	reply(w, http.StatusOK, about{User: v.user(ctx), Cluster: v.Cluster, ReadOnly: s.ReadOnly, Logout: v.Logout})
}

// problem is the answer to a request that was not carried out.
type problem struct {
	Message string `json:"message"`
}

func fail(w http.ResponseWriter, status int, message string) { reply(w, status, problem{message}) }

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client is gone
}
