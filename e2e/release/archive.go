// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// packedFile is a file of an archive.
type packedFile struct {
	name    string
	mode    int64
	content []byte
}

// writeArchive packs files into a tar archive, compressed. The same files and time give the
// same archive.
func writeArchive(path string, files []packedFile, at time.Time) error {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return fmt.Errorf("pack %s: %w", f.name, err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("finish %s: %w", path, err)
	}
	return writeFile(path, out.Bytes())
}

func writeFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the folder of %s: %w", path, err)
	}
	return os.WriteFile(path, content, 0o644)
}

// writeChecksums writes what `sha256sum --check` reads.
func writeChecksums(path string, files []string) error {
	var list strings.Builder
	for _, file := range files {
		digest, err := digestOf(file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%s  %s\n", digest, filepath.Base(file))
	}
	return writeFile(path, []byte(list.String()))
}

func digestOf(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:]), nil
}
