// SPDX-License-Identifier: Apache-2.0

package identities

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const (
	// ClusterClient is the client whose ID tokens an API server accepts by the flags of
	// [Provider.APIServerArgs].
	ClusterClient = "serin"
	// OtherClient is one whose ID tokens it does not accept.
	OtherClient = "another"
	// Secret is that of both clients.
	Secret = "secret"
	// Password is that of every user.
	Password = "verysecure"
)

// Provider is a provider whose users the API server knows.
type Provider struct {
	*storage.Storage
	server *httptest.Server
	dir    string

	mu        sync.Mutex
	redirects []string
	// lifetime is that of the next ID tokens.
	lifetime time.Duration
	revoked  []string
}

// Start starts a provider with some users.
func Start(users ...string) (*Provider, error) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // it logs each request
	dir, err := os.MkdirTemp("", "serin-identities-")
	if err != nil {
		return nil, err
	}
	accounts := map[string]storage.User{}
	for _, name := range users {
		accounts[name] = storage.User{ID: name, Username: name, Password: Password}
	}
	content, err := json.Marshal(accounts) //nolint:gosec // the password is no secret
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "users.json")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		return nil, err
	}
	store, err := storage.StoreFromFile(file)
	if err != nil {
		return nil, err
	}
	p := &Provider{dir: dir, lifetime: time.Hour, server: httptest.NewUnstartedServer(nil)}
	p.Storage = storage.NewStorageWithClients(store, map[string]*storage.Client{
		ClusterClient: storage.WebClient(ClusterClient, Secret), OtherClient: storage.WebClient(OtherClient, Secret),
	})
	p.server.Config.Handler = exampleop.SetupServer(p.Issuer(), p, nil, false)
	p.server.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	return p, os.WriteFile(p.caFile(), ca, 0o600)
}

// Issuer is the URL of the provider.
func (p *Provider) Issuer() string { return "https://" + p.server.Listener.Addr().String() }

func (p *Provider) caFile() string { return filepath.Join(p.dir, "ca.crt") }

// APIServerArgs are flags that have the API server know the users of the provider.
func (p *Provider) APIServerArgs() []string {
	return []string{"--oidc-issuer-url=" + p.Issuer(), "--oidc-ca-file=" + p.caFile(), "--oidc-client-id=" + ClusterClient, "--oidc-username-claim=sub", "--oidc-username-prefix=-"}
}

// Stop ends the provider.
func (p *Provider) Stop() {
	p.server.Close()
	_ = os.RemoveAll(p.dir) // a temporary folder
}

// Add lets clients send browsers back to an address.
func (p *Provider) Add(redirect string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.redirects = append(p.redirects, redirect)
}

// GetClientByClientID is a client as the tests want it.
func (p *Provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	made, err := p.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return registered{made, slices.Clone(p.redirects), p.lifetime}, nil
}

// Last sets the lifetime of the ID tokens from now on.
func (p *Provider) Last(lifetime time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lifetime = lifetime
}

// Revoked are the users whose refresh tokens were revoked.
func (p *Provider) Revoked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.revoked)
}

// RevokeToken notes which refresh tokens are revoked.
func (p *Provider) RevokeToken(ctx context.Context, token, user, client string) *oidc.Error {
	p.mu.Lock()
	p.revoked = append(p.revoked, user)
	p.mu.Unlock()
	return p.Storage.RevokeToken(ctx, token, user, client)
}

// registered is a client with addresses and a lifetime of its tokens.
type registered struct {
	op.Client
	redirects []string
	lifetime  time.Duration
}

func (r registered) RedirectURIs() []string         { return r.redirects }
func (r registered) IDTokenLifetime() time.Duration { return r.lifetime }

// Trusting is a transport that trusts the provider, and every other server of [httptest].
func (p *Provider) Trusting() http.RoundTripper { return p.server.Client().Transport }
