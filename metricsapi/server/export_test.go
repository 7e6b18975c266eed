// SPDX-License-Identifier: Apache-2.0

package server

import "net/http"

// Handler answers requests as the server does, without its listener.
func (s *Server) Handler() http.Handler {
	s.generic.PrepareRun()
	return s.generic.Handler
}
