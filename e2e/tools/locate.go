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
// it the cache is "serin" in the user's folder for caches.
const CacheVariable = "SERIN_CACHE"

// Checkout is a copy of the repository on this machine.
type Checkout struct {
	// Root is the folder that holds the repository.
	Root string
	// Cache is the folder of what every checkout uses: what is in it is named by
	// its content, or by what it is built from.
	Cache string
	// State is the folder of what only this checkout uses: its clusters and images.
	State string
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
	cache, err := cacheFolder()
	return Checkout{Root: root, Cache: cache, State: filepath.Join(root, ".cache")}, err
}

func cacheFolder() (string, error) {
	if cache := os.Getenv(CacheVariable); cache != "" {
		return filepath.Abs(cache)
	}
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the folder for caches (set %s to name one): %w", CacheVariable, err)
	}
	return filepath.Join(folder, "serin"), nil
}

// Builder builds tools into the cache and tells out about it.
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
