// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed built
var built embed.FS

// File is a file of the page.
type File struct {
	Content, Compressed []byte
	Type, Tag           string
}

// Files are the files of the page by their paths.
var Files = sync.OnceValue(func() map[string]File {
	files := map[string]File{}
	err := fs.WalkDir(built, "built", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := built.ReadFile(name)
		files["/"+strings.TrimPrefix(name, "built/")] = newFile(name, content)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("the page that is built in: %v", err)) // it is part of the program
	}
	files["/"] = files["/index.html"]
	delete(files, "/index.html")
	return files
})

func newFile(name string, content []byte) File {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                                 // a buffer takes everything
	_ = w.Close()
	sum := sha256.Sum256(content)
	return File{content, out.Bytes(), mime.TypeByExtension(path.Ext(name)), `"` + hex.EncodeToString(sum[:8]) + `"`}
}

// Handler serves the files of the page and nothing else.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, there := Files()[r.URL.Path]
		if !there {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", file.Type)
		h.Set("Cache-Control", "no-cache") // ask whether it has changed
		h.Set("ETag", file.Tag)
		h.Set("Vary", "Accept-Encoding")
		if r.Header.Get("If-None-Match") == file.Tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		content := file.Content
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			content = file.Compressed
		}
		_, _ = w.Write(content) // the browser is gone
	})
}
