// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"k8s.io/utils/clock"
)

// Provider is an OpenID Connect provider whose ID tokens the API server accepts.
type Provider struct {
	// Issuer is the URL of the provider, and ClientID what the dashboard is called there.
	Issuer, ClientID string
	// SecretFile has the secret of the client; "" for a client that has none.
	SecretFile string
	Scopes     []string
	// Name is what users call the provider.
	Name string
	// HTTP reaches the provider.
	HTTP *http.Client

	clock    clock.PassiveClock
	redirect string

	mu    sync.Mutex
	found *oidc.Provider
}

// tokens are those of a user.
type tokens struct {
	id, refresh, subject string
	expires              time.Time
}

// flow is a login that has begun, as the browser keeps it, sealed.
type flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	At       string    `json:"at"`
	Ends     time.Time `json:"ends"`
}

// discover reads once what the provider says of itself. A provider that does not answer is
// asked again at the next login.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	found, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProviderDown, err)
	}
	p.found = found
	return found, nil
}

// errProviderDown is that of a provider that may answer later.
var errProviderDown = errors.New("the provider does not answer")

// with is a context whose requests go to the provider.
func (p *Provider) with(ctx context.Context) context.Context { return oidc.ClientContext(ctx, p.HTTP) }

// client is the dashboard, as the provider knows it. The secret is read anew, so that it can change.
func (p *Provider) client(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	found, err := p.discover(ctx)
	if err != nil {
		return nil, nil, err
	}
	secret := ""
	if p.SecretFile != "" {
		content, err := os.ReadFile(p.SecretFile)
		if err != nil {
			return nil, nil, fmt.Errorf("read the secret of the client: %w", err)
		}
		secret = strings.TrimSpace(string(content))
	}
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: secret, Endpoint: found.Endpoint(), RedirectURL: p.redirect, Scopes: p.Scopes}, found, nil
}

// begin is the address of the provider at which a user logs in.
func (p *Provider) begin(ctx context.Context, f flow) (string, error) {
	client, _, err := p.client(p.with(ctx))
	if err != nil {
		return "", err
	}
	return client.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// finish exchanges the code that the browser brings for the user's tokens.
func (p *Provider) finish(ctx context.Context, code string, f flow) (tokens, error) {
	ctx = p.with(ctx)
	client, found, err := p.client(ctx)
	if err != nil {
		return tokens{}, err
	}
	got, err := client.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return tokens{}, told(err)
	}
	verified, raw, err := p.verify(ctx, found, got)
	if err != nil {
		return tokens{}, err
	}
	if !equal(verified.Nonce, f.Nonce) {
		return tokens{}, errors.New("the ID token is not for this login: its nonce differs")
	}
	return tokens{raw, got.RefreshToken, verified.Subject, verified.Expiry}, nil
}

// refresh gets the next tokens of a user.
func (p *Provider) refresh(ctx context.Context, refresh, subject string) (tokens, error) {
	ctx = p.with(ctx)
	client, found, err := p.client(ctx)
	if err != nil {
		return tokens{}, err
	}
	got, err := client.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if err != nil {
		return tokens{}, told(err)
	}
	verified, raw, err := p.verify(ctx, found, got)
	if err != nil {
		return tokens{}, err
	}
	if verified.Subject != subject {
		return tokens{}, errors.New("the provider refreshed the token of another user")
	}
	return tokens{raw, got.RefreshToken, subject, verified.Expiry}, nil
}

// verify checks signature, issuer, audience and time of an ID token.
func (p *Provider) verify(ctx context.Context, found *oidc.Provider, got *oauth2.Token) (*oidc.IDToken, string, error) {
	raw, _ := got.Extra("id_token").(string)
	if raw == "" {
		return nil, "", errors.New("the provider sent no ID token; the scope openid asks for one")
	}
	verified, err := found.Verifier(&oidc.Config{ClientID: p.ClientID, Now: p.clock.Now}).Verify(ctx, raw)
	return verified, raw, err
}

// revoke asks the provider to accept a refresh token no more, where it can.
func (p *Provider) revoke(ctx context.Context, refresh string) error {
	client, found, err := p.client(p.with(ctx))
	if err != nil {
		return err
	}
	var says struct {
		Revocation string `json:"revocation_endpoint"`
	}
	if err := found.Claims(&says); err != nil || says.Revocation == "" {
		return err
	}
	form := url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}}
	if client.ClientSecret == "" {
		form.Set("client_id", p.ClientID)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, says.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if client.ClientSecret != "" {
		r.SetBasicAuth(url.QueryEscape(p.ClientID), url.QueryEscape(client.ClientSecret))
	}
	answer, err := p.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the provider answers with the status %d", answer.StatusCode)
	}
	return nil
}

// told is an error of the provider without the body of its answer, which may have more than
// users and logs should see. What is no refusal may be gone later.
func told(err error) error {
	refused, ok := errors.AsType[*oauth2.RetrieveError](err)
	switch {
	case !ok:
		return fmt.Errorf("%w: %w", errProviderDown, err)
	case refused.Response.StatusCode >= http.StatusInternalServerError || refused.Response.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("%w: it answers with the status %d", errProviderDown, refused.Response.StatusCode)
	case refused.ErrorCode == "":
		return fmt.Errorf("the provider refused with the status %d", refused.Response.StatusCode)
	}
	return fmt.Errorf("the provider refused: %s %s", refused.ErrorCode, refused.ErrorDescription)
}
