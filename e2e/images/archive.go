// SPDX-License-Identifier: Apache-2.0

package images

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nameAnnotation is by which containerd finds the name of an image in an archive.
const nameAnnotation = "io.containerd.image.name"

// writeArchive writes an image as an OCI image layout in a tar archive.
func writeArchive(out io.Writer, reference string, image v1.Image) error {
	archive := tar.NewWriter(out)
	index, err := makeIndex(reference, image)
	if err != nil {
		return err
	}
	if err := addFile(archive, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	if err := addFile(archive, "index.json", index); err != nil {
		return err
	}
	blobs, err := listBlobs(image)
	if err != nil {
		return err
	}
	for _, blob := range blobs {
		if err := addFile(archive, path.Join("blobs", blob.digest.Algorithm, blob.digest.Hex), blob.content); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("finish the archive of %s: %w", reference, err)
	}
	return nil
}

// makeIndex renders the index of a layout with one image. The platform is
// named: importers leave out images of an unknown one.
func makeIndex(reference string, image v1.Image) ([]byte, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", reference, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, fmt.Errorf("read the digest of %s: %w", reference, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read the configuration of %s: %w", reference, err)
	}
	index, err := json.Marshal(v1.IndexManifest{
		SchemaVersion: 2, MediaType: types.OCIImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType: types.OCIManifestSchema1, Digest: digest, Size: int64(len(manifest)),
			Platform:    &v1.Platform{OS: config.OS, Architecture: config.Architecture},
			Annotations: map[string]string{nameAnnotation: reference},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("render the index of %s: %w", reference, err)
	}
	return index, nil
}

// blob is a part of an image under the name that its content gives it.
type blob struct {
	digest  v1.Hash
	content []byte
}

// listBlobs lists the parts of an image: manifest, configuration, layers.
func listBlobs(image v1.Image) ([]blob, error) {
	manifestDigest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	configDigest, err := image.ConfigName()
	if err != nil {
		return nil, err
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	blobs := []blob{{manifestDigest, manifest}, {configDigest, config}}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		part, err := readLayer(layer)
		if err != nil {
			return nil, err
		}
		blobs = append(blobs, part)
	}
	return blobs, nil
}

func readLayer(layer v1.Layer) (blob, error) {
	digest, err := layer.Digest()
	if err != nil {
		return blob{}, err
	}
	reader, err := layer.Compressed()
	if err != nil {
		return blob{}, err
	}
	defer func() { _ = reader.Close() }()
	content, err := io.ReadAll(reader)
	return blob{digest, content}, err
}

func addFile(archive *tar.Writer, name string, content []byte) error {
	header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: epoch, Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(header); err != nil {
		return fmt.Errorf("add %s to an archive: %w", name, err)
	}
	if _, err := archive.Write(content); err != nil {
		return fmt.Errorf("add %s to an archive: %w", name, err)
	}
	return nil
}
