// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Registry is where images are pushed to.
type Registry struct {
	// Host of the registry, such as "registry.example" or "127.0.0.1:5000", and a path if it is to hold
	// all repositories below one.
	Host string
	// Keychain has the credentials; when nil, those of `docker login` and the like, in the
	// folder that DOCKER_CONFIG names or ~/.docker.
	Keychain authn.Keychain
	// Insecure allows HTTP. A registry on loopback needs no permission.
	Insecure bool
}

// Push pushes the image under its tag, and then its documents.
func (r Registry) Push(ctx context.Context, image Image) error {
	repository, err := r.repository(image.Repository)
	if err != nil {
		return err
	}
	options := r.options(ctx)
	if err := remote.WriteIndex(repository.Tag(image.Tag), image.Index, options...); err != nil {
		return fmt.Errorf("push %s:%s: %w", repository, image.Tag, err)
	}
	for _, document := range image.Documents {
		digest, err := document.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(repository.Digest(digest.String()), document, options...); err != nil {
			return fmt.Errorf("push a document about %s:%s: %w", repository, image.Tag, err)
		}
	}
	return nil
}

func (r Registry) repository(below string) (name.Repository, error) {
	var options []name.Option
	if r.Insecure {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(r.Host+"/"+below, options...)
	if err != nil {
		return repository, fmt.Errorf("the registry %q: %w", r.Host, err)
	}
	return repository, nil
}

// PlainHTTP tells whether the registry is spoken to without TLS, which is so on loopback.
func (r Registry) PlainHTTP() (bool, error) {
	repository, err := r.repository("any")
	return repository.Scheme() == "http", err
}

func (r Registry) options(ctx context.Context) []remote.Option {
	keychain := r.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain), remote.WithUserAgent("serin-release")}
}

// writeLayout writes the image and its documents as an OCI image layout into a folder, for
// copies to registries that are not reached from here.
func writeLayout(folder string, image Image) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return fmt.Errorf("make the layout %s: %w", folder, err)
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": image.Tag})
	digest, err := image.Index.Digest()
	if err != nil {
		return err
	}
	if err := path.ReplaceIndex(image.Index, match.Digests(digest), named); err != nil {
		return fmt.Errorf("write %s into %s: %w", image.Repository, folder, err)
	}
	for _, document := range image.Documents {
		if err := path.AppendImage(document); err != nil {
			return fmt.Errorf("write a document about %s into %s: %w", image.Repository, folder, err)
		}
	}
	return nil
}
