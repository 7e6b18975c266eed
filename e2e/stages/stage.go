// SPDX-License-Identifier: Apache-2.0

package stages

// Stage is a part of the tests that runs alone, too.
type Stage struct {
	Name string
	// About says what the stage tests, for the person who watches it.
	About string
	Steps []Step
	// Together runs the steps at the same time: where they wait more than they compute, or where
	// the last part of one of them keeps a single processor busy.
	Together bool
	// Background stages run while those that follow do, and Needs are the ones that have
	// to end before this stage begins.
	Background bool
	Needs      []string
}

// Step is one command of a stage.
type Step struct {
	// Name says what is checked. A step that is not go test counts as one test.
	Name string
	// Folder to run in, below the root of the repository.
	Folder string
	// Args are the program and its arguments.
	Args []string
	// GoTest tells that Args are those of go test, whose tests are counted one by one.
	GoTest bool
	// Race runs go test with the race detector, which needs a C compiler.
	Race bool
	// Verbose prints what the tests print while they run.
	Verbose bool
}

// Find returns the stages with these names, in the order of the table.
func Find(table []Stage, names ...string) (found []Stage, unknown []string) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for _, stage := range table {
		if wanted[stage.Name] {
			found = append(found, stage)
			delete(wanted, stage.Name)
		}
	}
	for _, name := range names {
		if wanted[name] {
			unknown = append(unknown, name)
		}
	}
	return found, unknown
}
