// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

// keyring has the keys that Debian signs its lists with.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

var sources = template.Must(template.New("sources").Parse(`Types: deb
URIs: {{.Mirrors.Archive}}
Suites: {{.Release}} {{.Release}}-updates
Components: main
Signed-By: {{.Keyring}}

Types: deb
URIs: {{.Mirrors.Security}}
Suites: {{.Release}}-security
Components: main
Signed-By: {{.Keyring}}
`))

// settings keep apt to one folder. The folder for parts is empty, so that nothing that the
// machine's administrator has apt do happens here; a proxy is copied.
var settings = template.Must(template.New("apt.conf").Parse(`Dir::State "{{.Folder}}";
Dir::State::lists "lists";
Dir::State::status "{{.Folder}}/status";
Dir::Cache "{{.Folder}}/cache";
Dir::Etc "{{.Folder}}/etc";
Dir::Etc::sourcelist "{{.Folder}}/etc/debian.sources";
Dir::Log "{{.Folder}}/log";
APT::Architecture "{{.Architecture}}";
APT::Architectures { "{{.Architecture}}"; };
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
{{.Proxies}}`))

// apt is apt-get in a folder of its own.
type apt struct {
	folder, architecture string
	// working is the folder that apt-get runs in; any when empty.
	working string
}

// configure writes the files that apt reads.
func (a apt) configure(ctx context.Context) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("there is no apt-get to fetch packages of Debian with: build on Debian, or in a container of the image golang")
	}
	if _, err := os.Stat(keyring); err != nil {
		return fmt.Errorf("%s is missing, by which packages of Debian are verified: install the package debian-archive-keyring", keyring)
	}
	for _, folder := range []string{"lists/partial", "cache/archives/partial", "etc/sources.list.d", "etc/preferences.d", "etc/apt.conf.d", "log"} {
		if err := os.MkdirAll(filepath.Join(a.folder, folder), 0o755); err != nil {
			return fmt.Errorf("make the folders of apt: %w", err)
		}
	}
	proxies, err := machineProxies(ctx)
	if err != nil {
		return err
	}
	mirrors, err := machineMirrors(ctx)
	if err != nil {
		return err
	}
	values := map[string]any{"Mirrors": mirrors, "Folder": a.folder, "Architecture": a.architecture, "Release": Release, "Keyring": keyring, "Proxies": proxies}
	return errors.Join(
		render(filepath.Join(a.folder, "etc", "debian.sources"), sources, values),
		render(a.config(), settings, values),
		os.WriteFile(filepath.Join(a.folder, "status"), nil, 0o644), // nothing is installed
	)
}

func (a apt) config() string { return filepath.Join(a.folder, "etc", "serin.conf") }

// mirrors are where a machine gets its packages of Debian from. They have those of every release
// and architecture.
type mirrors struct{ Archive, Security string }

// machineMirrors are those of this machine.
func machineMirrors(ctx context.Context) (mirrors, error) {
	targets, err := runIn(ctx, "", nil, "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages")
	if err != nil {
		return mirrors{}, err
	}
	return parseMirrors(string(targets))
}

// parseMirrors reads lines with the address, the release and the component of each list. Debian's
// archive is what has updates of a release, too, which other sources for that release have not.
func parseMirrors(targets string) (m mirrors, err error) {
	has := map[[2]string]bool{}
	for line := range strings.Lines(targets) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[2] == "main" {
			has[[2]string{fields[0], fields[1]}] = true
		}
	}
	for at := range has {
		uri, release := at[0], at[1]
		if has[[2]string{uri, release + "-updates"}] {
			m.Archive = uri
		}
		if strings.HasSuffix(release, "-security") {
			m.Security = uri
		}
	}
	if m.Archive == "" || m.Security == "" {
		return m, errors.New("apt of this machine has no source with Debian's archive and its security updates: build on Debian, or in a container of the image golang")
	}
	return m, nil
}

// machineProxies are the settings by which apt reaches the network from this machine.
func machineProxies(ctx context.Context) (string, error) {
	dump, err := runIn(ctx, "", nil, "apt-config", "dump", "Acquire")
	if err != nil {
		return "", err
	}
	var proxies strings.Builder
	for line := range strings.Lines(string(dump)) {
		if strings.HasPrefix(line, "Acquire::http::Proxy") || strings.HasPrefix(line, "Acquire::https::Proxy") {
			proxies.WriteString(line)
		}
	}
	return proxies.String(), nil
}

func render(path string, text *template.Template, values any) error {
	var content bytes.Buffer
	if err := text.Execute(&content, values); err != nil {
		return fmt.Errorf("render %s: %w", path, err)
	}
	return os.WriteFile(path, content.Bytes(), 0o644)
}

// hasLists tells whether the lists of packages were fetched at least once.
func (a apt) hasLists() bool {
	lists, err := filepath.Glob(filepath.Join(a.folder, "lists", "*_Packages*"))
	return err == nil && len(lists) > 0
}

func (a apt) update(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "debian: bringing the lists of packages of %s for %s up to date\n", Release, a.architecture)
	if _, err := a.run(ctx, "apt-get", "--error-on=any", "update"); err != nil {
		return fmt.Errorf("bring the lists of Debian's packages up to date: %w", err)
	}
	return nil
}

func (a apt) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	return runIn(ctx, a.working, []string{"APT_CONFIG=" + a.config()}, program, args...)
}

// runIn runs a command in a folder and returns what it prints.
func runIn(ctx context.Context, folder string, env []string, name string, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(append(os.Environ(), "LC_ALL=C"), env...)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(problems.String()))
	}
	return output, nil
}

// adopt moves the package's file from the folder that apt-get left it in.
func (p Package) adopt(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, p.Name+"_*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("apt-get left %d files of the package %s", len(files), p.Name)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		return fmt.Errorf("read the package %s: %w", p.Name, err)
	}
	if digest := sha256.Sum256(content); hex.EncodeToString(digest[:]) != p.SHA256 {
		return fmt.Errorf("the package %s has the digest %x, and the list says %s", p.Name, digest, p.SHA256)
	}
	return os.Rename(files[0], p.Path)
}

// Files is the tar archive of the package's files.
func (p Package) Files(ctx context.Context) ([]byte, error) {
	return runIn(ctx, "", nil, "dpkg-deb", "--fsys-tarfile", p.Path)
}
