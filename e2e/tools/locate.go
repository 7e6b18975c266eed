// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/utils/clock"
)

// CacheVariable is the environment variable that names the cache folder. Without
// it the cache is ".cache" at the root of the repository.
const CacheVariable = "SERIN_CACHE"

// Checkout is a copy of the repository on this machine, with its cache.
type Checkout struct {
	// Root is the folder that holds the repository.
	Root string
	// Cache is the folder that everything made on this machine is kept in.
	Cache string
}

// Locate finds the repository that the working folder is in.
func Locate() (Checkout, error) {
	working, err := os.Getwd()
	if err != nil {
		return Checkout{}, fmt.Errorf("find the working folder: %w", err)
	}
	root, err := findRoot(working)
	if err != nil {
		return Checkout{}, err
	}
	cache := os.Getenv(CacheVariable)
	if cache == "" {
		return Checkout{Root: root, Cache: filepath.Join(root, ".cache")}, nil
	}
	cache, err = filepath.Abs(cache)
	if err != nil {
		return Checkout{}, fmt.Errorf("%s: %w", CacheVariable, err)
	}
	return Checkout{Root: root, Cache: cache}, nil
}

// Builder builds tools into the cache of the checkout and tells out about it.
func (c Checkout) Builder(out io.Writer) *Builder {
	return &Builder{
		Source: filepath.Join(c.Root, "e2e", "tools"),
		Cache:  filepath.Join(c.Cache, "tools"),
		Out:    out,
		Clock:  clock.RealClock{},
	}
}

// findRoot goes up from folder to the one that holds the modules of the tools.
func findRoot(folder string) (string, error) {
	for current := folder; ; current = filepath.Dir(current) {
		if exists(filepath.Join(current, "e2e", "tools", Kubernetes.Name, "go.mod")) {
			return current, nil
		}
		if current == filepath.Dir(current) {
			return "", fmt.Errorf("%s is not inside a checkout of the repository: run this from inside one", folder)
		}
	}
}
