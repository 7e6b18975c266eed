// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
)

// User is whose password the registry asks for.
const User = "serin"

// Registry is a registry that runs. It implements authn.Keychain for itself.
type Registry struct {
	// Address is its host and port.
	Address string
	// Password of User.
	Password string

	server *http.Server
}

// Start serves a registry at an address such as "127.0.0.1:0". Without referrers it is one
// from before version 1.1 of the distribution specification.
func Start(ctx context.Context, address string, referrers bool) (*Registry, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start a registry: %w", err)
	}
	r := &Registry{Address: listener.Addr().String(), Password: rand.Text()}
	content := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers))
	r.server = &http.Server{Handler: r.guard(content), ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }() // it ends by Stop, and clients notice what else ends it
	return r, nil
}

// Stop ends the registry.
func (r *Registry) Stop() error {
	if err := r.server.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("stop the registry: %w", err)
	}
	return nil
}

// guard refuses requests without the password.
func (r *Registry) guard(content http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		if user != User || subtle.ConstantTimeCompare([]byte(password), []byte(r.Password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`, http.StatusUnauthorized)
			return
		}
		content.ServeHTTP(w, request)
	})
}

// Resolve implements authn.Keychain.
func (r *Registry) Resolve(resource authn.Resource) (authn.Authenticator, error) {
	if resource.RegistryStr() != r.Address {
		return authn.Anonymous, nil
	}
	return &authn.Basic{Username: User, Password: r.Password}, nil
}

// DockerConfig is the file in which clients look for passwords, which is what a Secret of the
// type kubernetes.io/dockerconfigjson holds too.
func (r *Registry) DockerConfig() ([]byte, error) {
	type auth struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	return json.Marshal(map[string]any{"auths": map[string]auth{r.Address: {User, r.Password}}})
}
