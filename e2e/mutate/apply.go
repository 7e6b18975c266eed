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

// function is a function of a package with the text of its file.
type function struct {
	file, content string
	// begin and end of the body in content, without the braces, and the body's line.
	begin, end, line int
	// returns is whether it has results, and so ends by itself.
	returns bool
}

func (f function) body() string { return f.content[f.begin:f.end] }

// functionsOf reads the functions and Type.methods of a package, without its tests.
func functionsOf(folder string) (map[string]function, error) {
	pkg, err := build.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	functions := map[string]function{}
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
		for _, declaration := range parsed.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
				begin, end := positions.Position(f.Body.Lbrace), positions.Position(f.Body.Rbrace)
				functions[nameOf(f)] = function{
					file: file, content: string(content), begin: begin.Offset + 1, end: end.Offset, line: begin.Line, returns: f.Type.Results != nil,
				}
			}
		}
	}
	return functions, nil
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

// apply returns the function that a mutant changes, and its changed body.
func (m Mutant) apply(functions map[string]function) (f function, body string, err error) {
	f, found := functions[m.Func]
	if !found {
		return f, "", fmt.Errorf("there is no function %q", m.Func)
	}
	if n := strings.Count(f.body(), m.Before); n != 1 {
		return f, "", fmt.Errorf("%q is %d times in the function %q", m.Before, n, m.Func)
	}
	return f, strings.Replace(f.body(), m.Before, m.After, 1), nil
}
