// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"golang.org/x/sync/singleflight"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
)

const (
	// providerTimeout bounds one question to the provider.
	providerTimeout = 10 * time.Second
	// sameRefresh is how long requests that still bring the cookie before a refresh get its result:
	// a page asks several things at once, and most providers accept a refresh token once.
	sameRefresh = 30 * time.Second
	// mostRefreshes are kept that long.
	mostRefreshes = 1000
)

// refresher refreshes each session once, however many of its requests ask for it.
type refresher struct {
	provider *Provider
	group    singleflight.Group
	recent   *utilcache.LRUExpireCache
}

func (f *refresher) refresh(ctx context.Context, s state) (state, error) {
	key := digest(s.Refresh)
	if got, ok := f.recent.Get(key); ok {
		return s.next(got.(tokens)), nil //nolint:forcetypeassert // nothing else is put in
	}
	got, err, _ := f.group.Do(key, func() (any, error) {
		// The first request may be cancelled; the others wait for its answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), providerTimeout)
		defer cancel()
		next, err := f.provider.refresh(ctx, s.Refresh, s.Subject)
		if err == nil {
			f.recent.Add(key, next, sameRefresh)
		}
		return next, err
	})
	if err != nil {
		return s, err
	}
	return s.next(got.(tokens)), nil //nolint:forcetypeassert // the function above returns nothing else
}

// digest stands for a token where the token itself must not be kept.
func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
