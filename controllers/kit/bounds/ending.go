// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"context"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// NewCache makes the cache of a manager that ends with the context. A manager that is told to
// end while its caches fill waits for them, on a whole processor and for ever where the API does
// not answer: see pull request 3440 of controller-runtime. This one has it wait no longer.
func NewCache(ending context.Context) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := cache.New(config, options)
		if err != nil {
			return nil, err
		}
		return endingCache{c, ending}, nil
	}
}

type endingCache struct {
	cache.Cache
	ending context.Context //nolint:containedctx // it is that of the manager
}

// WaitForCacheSync is also true once the manager ends: nothing reads the cache then.
func (c endingCache) WaitForCacheSync(ctx context.Context) bool {
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ending, cancel)() //nolint:contextcheck // the manager ends on its own
	return c.Cache.WaitForCacheSync(either) || c.ending.Err() != nil
}
