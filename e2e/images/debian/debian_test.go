// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/serin-dev/serin/config/testenv"
	"github.com/serin-dev/serin/e2e/tools"
)

func TestWhatAptGetPrintsIsRead(t *testing.T) {
	digest := strings.Repeat("0a", 32)
	for line, want := range map[string]Package{
		"'http://deb.example/debian/pool/main/n/nginx/nginx_1.26.3-3%2bdeb13u11_arm64.deb' nginx_1.26.3-3+deb13u11_arm64.deb 572848 SHA256:" + digest: {
			Name: "nginx", Version: "1.26.3-3+deb13u11", Architecture: "arm64", SHA256: digest,
			URL: "http://deb.example/debian/pool/main/n/nginx/nginx_1.26.3-3%2bdeb13u11_arm64.deb",
		},
		"'http://x/zlib1g_1.3_amd64.deb' zlib1g_1%3a1.3.dfsg-1_amd64.deb 1 SHA256:" + digest: {
			Name: "zlib1g", Version: "1:1.3.dfsg-1", Architecture: "amd64", SHA256: digest, URL: "http://x/zlib1g_1.3_amd64.deb",
		},
	} {
		got, ok := parse(line)
		if diff := cmp.Diff(want, got); diff != "" || !ok {
			t.Errorf("%s: %v (-want +got):\n%s", line, ok, diff)
		}
	}
	for _, line := range []string{"", "Reading package lists...", "'u' nginx_1_arm64.deb 1 MD5Sum:" + digest, "'u' nginx_1_arm64.deb 1 SHA256:0a", "'u' nginx.deb 1 SHA256:" + digest} {
		if got, ok := parse(line); ok {
			t.Errorf("%q is read as %v", line, got)
		}
	}
}

func TestPackagesComeFromWhereTheMachineGetsItsOwn(t *testing.T) {
	const debian = "http://deb.example/debian/ bookworm main\nhttp://deb.example/debian/ bookworm-updates main\nhttp://deb.example/debian/ bookworm contrib\n"
	const security, other = "http://sec.example/ bookworm-security main\n", "http://other.example/ bookworm main\n"
	for name, test := range map[string]struct {
		targets string
		want    mirrors
		fails   bool
	}{
		"Debian":                     {debian + security, mirrors{"http://deb.example/debian/", "http://sec.example/"}, false},
		"another source beside it":   {other + debian + security + other, mirrors{"http://deb.example/debian/", "http://sec.example/"}, false},
		"without security updates":   {debian, mirrors{Archive: "http://deb.example/debian/"}, true},
		"nothing but another source": {other, mirrors{}, true},
		"nothing":                    {"", mirrors{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseMirrors(test.targets)
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestAPackageOfAnotherDigestIsRefused(t *testing.T) {
	content := []byte("a package")
	digest := sha256.Sum256(content)
	for name, test := range map[string]struct {
		files  []string
		digest string
		want   string
	}{
		"it is as listed":     {[]string{"nginx_1_amd64.deb", "nginx-common_1_all.deb"}, hex.EncodeToString(digest[:]), ""},
		"it is another":       {[]string{"nginx_1_amd64.deb"}, strings.Repeat("0", 64), "has the digest"},
		"it is missing":       {[]string{"nginx-common_1_all.deb"}, "", "left 0 files"},
		"there are two of it": {[]string{"nginx_1_amd64.deb", "nginx_2_amd64.deb"}, "", "left 2 files"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for _, file := range test.files {
				if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := Package{Name: "nginx", SHA256: test.digest, Path: filepath.Join(t.TempDir(), "kept.deb")}
			err := p.adopt(folder)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want an error with %q", err, test.want)
				}
				return
			}
			if kept, readErr := os.ReadFile(p.Path); err != nil || string(kept) != string(content) {
				t.Errorf("%v %v: kept %q", err, readErr, kept)
			}
		})
	}
}

// The proxies' image for arm64 is built on machines of any kind.
func TestPackagesOfAnotherArchitectureAreFetched(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		testenv.Missing(t, "there is no apt-get to get Debian's packages with", "run the test on Debian")
	}
	checkout, err := tools.Locate()
	if err != nil {
		t.Fatal(err)
	}
	source := Source{Folder: filepath.Join(checkout.Cache, "debian"), Architecture: "arm64", Out: io.Discard} // the cache saves the download
	packages, err := source.Fetch(t.Context(), "nginx-common", "zlib1g")
	if err != nil {
		t.Fatal(err)
	}
	if packages[0].Architecture != "all" || packages[1].Architecture != "arm64" || !strings.Contains(packages[1].URL, "debian.org/") {
		t.Errorf("fetched %v", packages)
	}
	content, err := os.ReadFile(packages[1].Path)
	if err != nil {
		t.Fatal(err)
	}
	if digest := sha256.Sum256(content); hex.EncodeToString(digest[:]) != packages[1].SHA256 {
		t.Errorf("the file has the digest %x, want %s", digest, packages[1].SHA256)
	}
	if files, err := packages[1].Files(t.Context()); err != nil || !strings.Contains(string(files), "aarch64-linux-gnu/libz.so.1") {
		t.Errorf("%v: the package has no library for arm64", err)
	}
}
