// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	slsa "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/serin-dev/serin/e2e/images/debian"
)

const (
	// MediaType of statements.
	MediaType = "application/vnd.in-toto+json"
	// PredicateType of what a statement says.
	PredicateType = "https://slsa.dev/provenance/v1"
	// BuildType names the way of building; docs/release.md describes it.
	BuildType = "https://github.com/serin-dev/serin/blob/main/docs/release.md"
)

// Build is how an image was made.
type Build struct {
	// Image is its name, and Digests are those of the index and of each architecture's
	// image, as "sha256:…".
	Image   string
	Digests []string
	// Version and Architectures are what was asked for.
	Version       string
	Architectures []string
	// Repository and Revision are the source.
	Repository, Revision string
	// Changed tells that files differed from the revision, which then proves nothing.
	Changed bool
	// Toolchain is the version of Go, such as "go1.26.1".
	Toolchain string
	// Packages are those of Debian that files come from.
	Packages []debian.Package
	// Builder is the URI of who built it, and Invocation that of the run; the second may
	// be empty.
	Builder, Invocation string
}

// Render writes the statement. The same build gives the same text.
func Render(build Build) ([]byte, error) {
	statement, err := build.statement()
	if err != nil {
		return nil, fmt.Errorf("make the provenance of %s: %w", build.Image, err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return nil, fmt.Errorf("write the provenance of %s: %w", build.Image, err)
	}
	// protojson writes spaces at random, to keep its users from comparing texts.
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		return nil, fmt.Errorf("write the provenance of %s: %w", build.Image, err)
	}
	return out.Bytes(), nil
}

func (b Build) statement() (*intoto.Statement, error) {
	predicate, err := b.predicate()
	if err != nil {
		return nil, err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: PredicateType, Predicate: predicate}
	for _, digest := range b.Digests {
		statement.Subject = append(statement.Subject, &intoto.ResourceDescriptor{
			Name: b.Image, Digest: map[string]string{"sha256": strings.TrimPrefix(digest, "sha256:")},
		})
	}
	return statement, statement.Validate()
}

func (b Build) predicate() (*structpb.Struct, error) {
	architectures := make([]any, 0, len(b.Architectures))
	for _, a := range b.Architectures {
		architectures = append(architectures, a)
	}
	asked, err := structpb.NewStruct(map[string]any{"image": b.Image, "version": b.Version, "architectures": architectures})
	if err != nil {
		return nil, err
	}
	predicate := &slsa.Provenance{
		BuildDefinition: &slsa.BuildDefinition{BuildType: BuildType, ExternalParameters: asked, ResolvedDependencies: b.dependencies()},
		RunDetails:      &slsa.RunDetails{Builder: &slsa.Builder{Id: b.Builder, Version: map[string]string{"go": b.Toolchain}}},
	}
	if b.Invocation != "" {
		predicate.RunDetails.Metadata = &slsa.BuildMetadata{InvocationId: b.Invocation}
	}
	if err := predicate.Validate(); err != nil {
		return nil, err
	}
	return asStruct(predicate)
}

// dependencies are what went into the image. Modules of Go are in the SBOM; the revision
// names them by their digests.
func (b Build) dependencies() []*intoto.ResourceDescriptor {
	source := &intoto.ResourceDescriptor{Uri: "git+" + b.Repository + "@" + b.Revision}
	if !b.Changed {
		source.Digest = map[string]string{"gitCommit": b.Revision}
	}
	list := []*intoto.ResourceDescriptor{source}
	for _, p := range b.Packages {
		list = append(list, &intoto.ResourceDescriptor{Name: p.Name, Uri: p.URL, Digest: map[string]string{"sha256": p.SHA256}})
	}
	return list
}

func asStruct(message proto.Message) (*structpb.Struct, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	out := &structpb.Struct{}
	return out, protojson.Unmarshal(text, out)
}
