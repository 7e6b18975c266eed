// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard"
)

// mostViewers have a client at once. A client keeps which kinds the cluster serves and nothing else.
const mostViewers = 1000

// viewers makes a client of the API server for each token.
type viewers struct {
	connect            func(token string) (client.WithWatch, error)
	metrics            func(token string) (dashboard.Metrics, error)
	namespace, cluster string
	kept               *utilcache.LRUExpireCache
}

// of is the viewer with a token, for as long as it is valid.
func (v *viewers) of(token string, left time.Duration) (*dashboard.Viewer, error) {
	if token == "" {
		return nil, errors.New("there is no token to ask the API server with")
	}
	key := digest(token)
	if kept, ok := v.kept.Get(key); ok {
		return kept.(*dashboard.Viewer), nil //nolint:forcetypeassert // nothing else is put in
	}
	api, err := v.connect(token)
	if err != nil {
		return nil, fmt.Errorf("reach the API server: %w", err)
	}
	made := &dashboard.Viewer{API: api, Namespace: v.namespace, Cluster: v.cluster, Logout: true}
	if v.metrics != nil {
		if made.Metrics, err = v.metrics(token); err != nil {
			return nil, fmt.Errorf("reach the API server: %w", err)
		}
	}
	v.kept.Add(key, made, left)
	return made, nil
}

// errNotAccepted is that of a token which the API server does not know.
var errNotAccepted = errors.New("the API server does not accept the token")

// user asks the API server whose a token is.
func (v *viewers) user(ctx context.Context, token string) (string, error) {
	api, err := v.connect(token)
	if err != nil {
		return "", fmt.Errorf("reach the API server: %w", err)
	}
	review := &authenticationv1.SelfSubjectReview{}
	switch err := api.Create(ctx, review); {
	case apierrors.IsUnauthorized(err):
		return "", errNotAccepted
	case err != nil:
		return "", fmt.Errorf("ask the API server whose the token is: %w", err)
	}
	return review.Status.UserInfo.Username, nil
}

// checkToken refuses what can't be a bearer token, such as one that adds a header.
func checkToken(token string) error {
	const longest = 8192
	if token == "" || len(token) > longest || strings.IndexFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return errors.New("That is not a token: paste what kubectl create token prints.") //nolint:revive,staticcheck // a sentence for users
	}
	return nil
}

// expiry reads when a token says that it expires. Nothing is verified, which the API server
// does: it only ends a session in time.
func expiry(token string, ends time.Time) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ends
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Expires <= 0 {
		return ends
	}
	if at := time.Unix(claims.Expires, 0); at.Before(ends) {
		return at
	}
	return ends
}

func newViewers(o Options) *viewers {
	return &viewers{o.Connect, o.Metrics, o.Namespace, o.Cluster, utilcache.NewLRUExpireCacheWithClock(mostViewers, expiryClock{o.Clock})}
}

// expiryClock is what the cache reads the time from.
type expiryClock struct{ clock.PassiveClock }
