// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"runtime/debug"
	"strings"
	"time"

	packageurl "github.com/package-url/packageurl-go"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/serin-dev/serin/e2e/images/debian"
)

// MediaType of the documents.
const MediaType = "application/spdx+json"

const (
	unknown  = "NOASSERTION"
	document = common.ElementID("DOCUMENT")
	image    = common.ElementID("Image")
)

// Image is what the document is about.
type Image struct {
	// Name, Version and Digest of the image for one architecture.
	Name, Version, Digest string
	Architecture          string
	Created               time.Time
	// Programs are what Go wrote into the image's programs.
	Programs []*debug.BuildInfo
	// Packages are those of Debian that files come from.
	Packages []debian.Package
}

// Render writes the document.
func Render(of Image) ([]byte, error) {
	packages := []*spdx.Package{{
		PackageName: of.Name, PackageSPDXIdentifier: image, PackageVersion: of.Version,
		PackageExternalReferences: purl("oci", "", of.Name, of.Digest, "arch", of.Architecture),
		PackageLicenseDeclared:    "Apache-2.0", PrimaryPackagePurpose: "CONTAINER",
	}}
	packages = append(packages, ofGo(of.Programs)...)
	packages = append(packages, ofDebian(of.Packages)...)
	relationships := []*spdx.Relationship{relation(document, common.TypeRelationshipDescribe, image)}
	for i, p := range packages {
		p.PackageLicenseConcluded, p.PackageCopyrightText = unknown, unknown
		p.PackageLicenseDeclared = cmp.Or(p.PackageLicenseDeclared, unknown)
		p.PackageDownloadLocation = cmp.Or(p.PackageDownloadLocation, unknown)
		if p.PackageSPDXIdentifier == "" {
			p.PackageSPDXIdentifier = common.ElementID(fmt.Sprintf("Package-%d", i))
			relationships = append(relationships, relation(image, common.TypeRelationshipContains, p.PackageSPDXIdentifier))
		}
	}
	var out bytes.Buffer
	err := json.Write(&spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: document,
		DocumentName:      of.Name + "-" + of.Version + "-" + of.Architecture,
		DocumentNamespace: "https://serin.dev/sbom/" + of.Name + "/" + strings.ReplaceAll(of.Digest, ":", "/"),
		CreationInfo: &spdx.CreationInfo{
			Created:  of.Created.UTC().Format(time.RFC3339),
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "serin-release"}},
		},
		Packages: packages, Relationships: relationships,
	}, &out, json.Indent("  "))
	if err != nil {
		return nil, fmt.Errorf("write the SBOM of %s: %w", of.Name, err)
	}
	return out.Bytes(), nil
}

// ofGo are the toolchain and the modules of programs, each once.
func ofGo(programs []*debug.BuildInfo) []*spdx.Package {
	var packages []*spdx.Package
	known := map[string]bool{}
	add := func(p *spdx.Package) {
		if id := p.PackageName + "@" + p.PackageVersion; !known[id] {
			known[id] = true
			packages = append(packages, p)
		}
	}
	for _, program := range programs {
		toolchain := strings.TrimPrefix(program.GoVersion, "go")
		add(&spdx.Package{
			PackageName: "stdlib", PackageVersion: toolchain, PackageLicenseDeclared: "BSD-3-Clause",
			PackageExternalReferences: purl("golang", "", "stdlib", toolchain, "", ""), PrimaryPackagePurpose: "LIBRARY",
		})
		for _, module := range program.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			add(&spdx.Package{
				PackageName: module.Path, PackageVersion: module.Version, PrimaryPackagePurpose: "LIBRARY",
				PackageExternalReferences: purl("golang", path.Dir(module.Path), path.Base(module.Path), module.Version, "", ""),
			})
		}
	}
	return packages
}

func ofDebian(from []debian.Package) []*spdx.Package {
	packages := make([]*spdx.Package, 0, len(from))
	for _, p := range from {
		packages = append(packages, &spdx.Package{
			PackageName: p.Name, PackageVersion: p.Version, PrimaryPackagePurpose: "LIBRARY",
			PackageSupplier:           &common.Supplier{SupplierType: "Organization", Supplier: "Debian"},
			PackageChecksums:          []common.Checksum{{Algorithm: common.SHA256, Value: p.SHA256}},
			PackageExternalReferences: purl(packageurl.TypeDebian, "debian", p.Name, p.Version, "arch", p.Architecture),
			PackageDownloadLocation:   p.URL,
		})
	}
	return packages
}

// purl is by which scanners look for a package in lists of vulnerabilities.
func purl(kind, namespace, name, version, key, value string) []*spdx.PackageExternalReference {
	var qualifiers packageurl.Qualifiers
	if key != "" {
		qualifiers = packageurl.QualifiersFromMap(map[string]string{key: value})
	}
	if namespace == "." {
		namespace = ""
	}
	return []*spdx.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: packageurl.NewPackageURL(kind, namespace, name, version, qualifiers, "").ToString(),
	}}
}

func relation(a common.ElementID, kind string, b common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.DocElementID{ElementRefID: a}, Relationship: kind, RefB: common.DocElementID{ElementRefID: b}}
}

// Packages reads the packages of Debian that an SBOM names.
func Packages(text []byte) ([]debian.Package, error) {
	read, err := json.Read(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the SBOM: %w", err)
	}
	var packages []debian.Package
	for _, p := range read.Packages {
		for _, reference := range p.PackageExternalReferences {
			url, err := packageurl.FromString(reference.Locator)
			if err != nil || url.Type != packageurl.TypeDebian {
				continue
			}
			packages = append(packages, debian.Package{Name: url.Name, Version: url.Version, Architecture: url.Qualifiers.Map()["arch"]})
		}
	}
	return packages, nil
}
