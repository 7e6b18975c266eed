// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// emptyConfig is the configuration of manifests that hold no image, by the image specification.
const (
	emptyConfig          = "{}"
	emptyConfigMediaType = types.MediaType("application/vnd.oci.empty.v1+json")
)

// manifest is an image or an index.
type manifest interface {
	Digest() (v1.Hash, error)
	Size() (int64, error)
	MediaType() (types.MediaType, error)
}

// descriptor is by which a document names its subject.
func descriptor(of manifest) (v1.Descriptor, error) {
	digest, err := of.Digest()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("read the digest of an image: %w", err)
	}
	size, err := of.Size()
	if err != nil {
		return v1.Descriptor{}, err
	}
	kind, err := of.MediaType()
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, err
}

// makeDocument makes a manifest that holds a text about a subject. A registry lists it among
// the referrers of the subject.
func makeDocument(subject v1.Descriptor, kind string, text []byte, created time.Time) (v1.Image, error) {
	config, err := describeBlob(emptyConfigMediaType, []byte(emptyConfig))
	if err != nil {
		return nil, err
	}
	layer, err := describeBlob(types.MediaType(kind), text)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: kind,
		Config: config, Layers: []v1.Descriptor{layer}, Subject: &subject,
		Annotations: map[string]string{"org.opencontainers.image.created": created.UTC().Format(time.RFC3339)},
	})
	if err != nil {
		return nil, fmt.Errorf("write the manifest of a document: %w", err)
	}
	return partial.CompressedToImage(document{manifest: manifest, layer: layer, text: text})
}

func describeBlob(kind types.MediaType, content []byte) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(content))
	return v1.Descriptor{MediaType: kind, Digest: digest, Size: size}, err
}

// document implements partial.CompressedImageCore.
type document struct {
	manifest []byte
	layer    v1.Descriptor
	text     []byte
}

func (d document) RawConfigFile() ([]byte, error)      { return []byte(emptyConfig), nil }
func (d document) RawManifest() ([]byte, error)        { return d.manifest, nil }
func (d document) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

func (d document) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if digest == d.layer.Digest {
		return text(d), nil
	}
	return nil, fmt.Errorf("the document has no part %s", digest)
}

// text is the only layer of a document.
type text document

func (t text) Digest() (v1.Hash, error)            { return t.layer.Digest, nil }
func (t text) Size() (int64, error)                { return t.layer.Size, nil }
func (t text) MediaType() (types.MediaType, error) { return t.layer.MediaType, nil }
func (t text) Compressed() (io.ReadCloser, error)  { return io.NopCloser(bytes.NewReader(t.text)), nil }
