// SPDX-License-Identifier: Apache-2.0

package release

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what matters of a file for GitHub's workflows.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Container   string            `json:"container"`
		Permissions map[string]string `json:"permissions"`
		Steps       []struct {
			If              string `json:"if"`
			ContinueOnError bool   `json:"continue-on-error"`
			Run             string `json:"run"`
		} `json:"steps"`
	} `json:"jobs"`
}

// command is a target of make with the variables that it is given.
var command = regexp.MustCompile(`make ([a-z]+)((?: [A-Z]+=(?:"[^"]*"|\S+))*)`)

func TestTheWorkflowCallsWhatThereIs(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	if len(w.Permissions) != 0 {
		t.Errorf("every job has the permissions %v", w.Permissions)
	}
	var targets []string
	for name, job := range w.Jobs {
		for _, step := range job.Steps {
			for _, call := range command.FindAllStringSubmatch(step.Run, -1) {
				targets = append(targets, name+": "+call[1])
				requireTarget(t, string(makefile), call[1], call[2])
			}
		}
	}
	if !strings.Contains(strings.Join(targets, ","), "release: release") || !strings.Contains(strings.Join(targets, ","), "patched: outdated") {
		t.Errorf("the jobs call %v", targets)
	}
}

// TestNothingIsPublishedBeforeItsVulnerabilitiesAreKnown: the job that pushes images or makes a release on the forge
// runs "make vulnerabilities" in an earlier step, whose failure ends the job.
func TestNothingIsPublishedBeforeItsVulnerabilitiesAreKnown(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	if err := yaml.Unmarshal(text, &w); err != nil {
		t.Fatal(err)
	}
	publishes := 0
	for name, job := range w.Jobs {
		compared := false
		for _, step := range job.Steps {
			compared = compared || step.Run == "make vulnerabilities" && !step.ContinueOnError && step.If == ""
			if strings.Contains(step.Run, "PUSH=1") || strings.Contains(step.Run, "gh release create") {
				publishes++
				if !compared || step.If != "" {
					t.Errorf("the job %s publishes what was not compared with the database: %s", name, step.Run)
				}
			}
		}
	}
	if publishes != 2 {
		t.Errorf("%d steps publish", publishes)
	}
}

// requireTarget looks for a target that uses the variables.
func requireTarget(t *testing.T, makefile, target, variables string) {
	t.Helper()
	_, recipe, found := strings.Cut(makefile, "\n"+target+": ##")
	if !found {
		t.Errorf("there is no target %s", target)
		return
	}
	recipe, _, _ = strings.Cut(recipe, "\n\n")
	for _, variable := range regexp.MustCompile(`([A-Z]+)=`).FindAllStringSubmatch(variables, -1) {
		if !strings.Contains(recipe, "$("+variable[1]+")") && !strings.Contains(recipe, "$(if $("+variable[1]+")") {
			t.Errorf("make %s does not use %s", target, variable[1])
		}
	}
}

func TestTheWorkflowHasTheGoOfTheModule(t *testing.T) {
	text, err := os.ReadFile("../../.github/workflows/release.yaml")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	images := regexp.MustCompile(`container: golang:(\d+\.\d+)-`).FindAllStringSubmatch(string(text), -1)
	if len(images) == 0 {
		t.Error("no job has a container with Go")
	}
	for _, image := range images {
		if image[1] != version {
			t.Errorf("a job builds with Go %s, the module is of %s", image[1], version)
		}
	}
}
