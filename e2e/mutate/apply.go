// SPDX-License-Identifier: Apache-2.0

package mutate

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// A section is a part of a file in which a mutant's text is searched.
type section struct {
	file, content string
	begin, end    int
}

// apply returns the file that a mutant changes, and its new content.
func (m Mutant) apply(folder string) (file, content string, err error) {
	sections, err := m.sections(folder)
	if err != nil {
		return "", "", err
	}
	found := 0
	for _, s := range sections {
		text := s.content[s.begin:s.end]
		if n := strings.Count(text, m.Before); n > 0 {
			found += n
			file = s.file
			content = s.content[:s.begin] + strings.Replace(text, m.Before, m.After, 1) + s.content[s.end:]
		}
	}
	if found != 1 {
		return "", "", fmt.Errorf("%q occurs %d times in %d functions or files named %q", m.Before, found, len(sections), m.Func)
	}
	return file, content, nil
}

// sections are the functions with the mutant's name, or whole files without one.
func (m Mutant) sections(folder string) ([]section, error) {
	pkg, err := build.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	var sections []section
	for _, name := range pkg.GoFiles {
		file := filepath.Join(folder, name)
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, file, content, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if m.Func == "" {
			sections = append(sections, section{file, string(content), 0, len(content)})
		}
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && nameOf(f) == m.Func {
				sections = append(sections, section{file, string(content), positions.Position(f.Pos()).Offset, positions.Position(f.End()).Offset})
			}
		}
	}
	return sections, nil
}

// nameOf is the name of a function, or Type.method.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}
