// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed templates/Dockerfile
var dockerfileText string

var dockerfile = template.Must(template.New("Dockerfile").Parse(dockerfileText))

// installedPackages are the Debian packages that a base consists of where they
// are installed in the usual way; what they need is installed with them.
var installedPackages = map[Base][]string{
	Scratch: nil,
	Nginx:   {"nginx", "libnginx-mod-stream"},
}

// renderDockerfile renders the file that builds the image by the usual means.
// goVersion is the release of Go to build with, such as "1.26".
func renderDockerfile(image Image, goVersion string) ([]byte, error) {
	packages, known := installedPackages[image.Base]
	if !known {
		return nil, fmt.Errorf("no base is called %q: use one of the constants of type Base", image.Base)
	}
	// The end-to-end tests are a module of their own, below the root.
	folder, main := "", image.Package
	if below, ok := strings.CutPrefix(image.Package, "e2e/"); ok {
		folder, main = "e2e", below
	}
	var text bytes.Buffer
	err := dockerfile.Execute(&text, map[string]any{
		"Dockerfile": image.Dockerfile, "GoVersion": goVersion,
		"Folder": folder, "Main": main, "Binary": image.binary(),
		"Packages": packages, "User": Unprivileged, "Versioned": image.Version != "",
	})
	if err != nil {
		return nil, fmt.Errorf("render the Dockerfile of %s: %w", image.Reference, err)
	}
	return text.Bytes(), nil
}
