// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Packages are the packages of the repository, by the stage that tests them.
type Packages struct {
	Operator, Bench Module
	// Integration are those of the cluster tests but the scenarios.
	Integration []string
	// FuzzTargets of the module of the operator.
	FuzzTargets []FuzzTarget
}

// Module has the packages of a module.
type Module struct {
	// Pure packages start no goroutines. Concurrent ones do, or guard against others that do.
	Pure, Concurrent []string
}

func (m *Module) add(folder string, concurrent bool) {
	if concurrent {
		m.Concurrent = append(m.Concurrent, "./"+folder)
	} else {
		m.Pure = append(m.Pure, "./"+folder)
	}
}

// FuzzTarget is a function that go test -fuzz runs.
type FuzzTarget struct{ Package, Name string }

// concurrency are the imports by which a package shows that goroutines share its values.
var concurrency = []string{"sync", "sync/atomic", "golang.org/x/sync/errgroup", "golang.org/x/sync/semaphore", "golang.org/x/sync/singleflight"}

// FindPackages reads the sources below the root of the repository. Only packages with
// tests are listed.
func FindPackages(root fs.FS) (p Packages, err error) {
	folders, err := testedFolders(root)
	if err != nil {
		return p, err
	}
	for _, folder := range folders {
		if below, isCluster := strings.CutPrefix(folder, clusterModule+"/"); isCluster {
			p.Integration = append(p.Integration, "./"+below)
			continue
		}
		if folder == "." || folder == clusterModule {
			continue // stages of their own
		}
		concurrent, targets, err := read(root, folder)
		if err != nil {
			return p, err
		}
		if below, isBench := strings.CutPrefix(folder, benchModule+"/"); isBench {
			p.Bench.add(below, concurrent)
			continue
		}
		p.Operator.add(folder, concurrent)
		p.FuzzTargets = append(p.FuzzTargets, targets...)
	}
	return p, nil
}

// testedFolders lists the folders with tests of all modules that have stages, in order.
func testedFolders(root fs.FS) (folders []string, err error) {
	err = fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && file != "." && (strings.HasPrefix(name, ".") || name == "testdata" || isModule(root, file)) {
			return fs.SkipDir
		}
		if folder := path.Dir(file); strings.HasSuffix(name, "_test.go") && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return nil
	})
	slices.Sort(folders)
	return folders, err
}

// isModule tells whether a folder is a module that no stage tests: it pins a program.
func isModule(root fs.FS, folder string) bool {
	_, err := fs.Stat(root, path.Join(folder, "go.mod"))
	return err == nil && folder != clusterModule && folder != benchModule
}

// read tells whether the code of a package, without its tests, is concurrent, and which
// fuzz targets its tests have.
func read(root fs.FS, folder string) (concurrent bool, targets []FuzzTarget, err error) {
	files, err := fs.Glob(root, path.Join(folder, "*.go"))
	if err != nil {
		return false, nil, err
	}
	for _, name := range files {
		source, err := fs.ReadFile(root, name)
		if err != nil {
			return false, nil, err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			return false, nil, fmt.Errorf("find the tests: %w", err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			concurrent = concurrent || isConcurrent(file)
			continue
		}
		for _, target := range fuzzTargets(file) {
			targets = append(targets, FuzzTarget{Package: "./" + folder, Name: target})
		}
	}
	return concurrent, targets, nil
}

func isConcurrent(file *ast.File) (found bool) {
	for _, spec := range file.Imports {
		if name, err := strconv.Unquote(spec.Path.Value); err == nil && slices.Contains(concurrency, name) {
			return true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		_, is := n.(*ast.GoStmt)
		found = found || is
		return !found
	})
	return found
}

func fuzzTargets(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		if f, is := decl.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
			names = append(names, f.Name.Name)
		}
	}
	return names
}
