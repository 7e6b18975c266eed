// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// keyLength is the number of hexadecimal digits of a key: enough to tell apart
// the few builds that one cache ever holds.
const keyLength = 12

// Key names one build of the tool: equal keys mean equal binaries. It covers the
// source and the pinned versions in folder (the module of the tool), the
// toolchain, as `go version` prints it, the flags, and what is left out.
func Key(tool Tool, folder fs.FS, toolchain string) (string, error) {
	digest := sha256.New()
	fmt.Fprintf(digest, "%s\n%s\n%s\n", toolchain, tool.flags(), tool.Programs)
	if tool.Without != nil {
		fmt.Fprintf(digest, "without %s %s\n", tool.Without.Module, tool.Without.Folder)
	}
	err := fs.WalkDir(folder, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isInput(path) {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(digest, "%s %d\n%s", path, len(content), content)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the source of %s: %w", tool.Name, err)
	}
	return hex.EncodeToString(digest.Sum(nil))[:keyLength], nil
}

// isInput tells whether a file has a part in the binary.
func isInput(path string) bool {
	if strings.HasSuffix(path, "_test.go") {
		return false
	}
	switch filepath.Base(path) {
	case "go.mod", "go.sum":
		return true
	}
	return filepath.Ext(path) == ".go"
}
