// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/serin-dev/serin/config/testenv"
)

func makeSpec(t *testing.T, program string, args ...string) Spec {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		testenv.Missing(t, err.Error(), "install "+program)
	}
	return Spec{Name: program, Path: path, Args: args, Log: filepath.Join(t.TempDir(), "logs", program+".log")}
}

func TestAProcessIsKnownAgainUntilItEnds(t *testing.T) {
	spec := makeSpec(t, "sleep", "1000")
	spec.Env = []string{"SERIN_TEST_MARK=" + t.Name()}
	identity, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	if !identity.Alive() {
		t.Error("a running process is said to have ended")
	}
	// The kernel closes the descriptors of the starter a moment before it tells the environment.
	var found []Identity
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (_ bool, err error) {
		found, err = FindByEnv(spec.Env[0], "sleep")
		return slices.Contains(found, identity), err
	})
	if err != nil {
		t.Errorf("found %v, want %v: %v", found, identity, err)
	}
	if found, err := FindByEnv(spec.Env[0], "another"); err != nil || len(found) > 0 {
		t.Errorf("found %v of another program (%v)", found, err)
	}
	if err := identity.Stop(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if identity.Alive() {
		t.Error("a process that was stopped is said to run")
	}
	if err := identity.Stop(t.Context(), 0); err != nil {
		t.Errorf("stop it again: %v", err)
	}
}

func TestAProcessThatIgnoresTheRequestIsKilled(t *testing.T) {
	spec := makeSpec(t, "sh", "-c", "trap '' TERM; echo armed; while :; do sleep 1; done")
	spec.Env = []string{"PATH=" + os.Getenv("PATH")}
	identity, err := Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	armed := func(context.Context) (bool, error) { return strings.Contains(spec.LogTail(), "armed"), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, armed); err != nil {
		t.Fatal(err)
	}
	if err := identity.Stop(t.Context(), 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if identity.Alive() {
		t.Error("the process goes on")
	}
}

func TestANumberThatIsUsedAgainIsNotTakenForTheProcess(t *testing.T) {
	self, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]Identity{
		"of another start": {PID: self.PID, Started: self.Started - 1, Boot: self.Boot},
		"of another boot":  {PID: self.PID, Started: self.Started, Boot: "another"},
		"of none":          {},
	} {
		if other.Alive() {
			t.Errorf("an identity %s is taken for this process", name)
		}
		if err := other.Stop(t.Context(), 0); err != nil { // would end this test
			t.Errorf("stop an identity %s: %v", name, err)
		}
	}
	if !self.Alive() {
		t.Error("this process is said to have ended")
	}
}

func TestAChildEndsWithAWordAboutItsLog(t *testing.T) {
	child, err := StartChild(makeSpec(t, "sh", "-c", "echo the reason; exit 3"))
	if err != nil {
		t.Fatal(err)
	}
	<-child.Exited()
	if got := child.Err().Error(); !strings.Contains(got, "exit status 3") || !strings.Contains(got, "the reason") {
		t.Errorf("error %q, want the status and the log in it", got)
	}
	child.Stop(clock.RealClock{}, time.Second) // ended already
}

func TestAChildIsStopped(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Minute} {
		child, err := StartChild(makeSpec(t, "sleep", "1000"))
		if err != nil {
			t.Fatal(err)
		}
		identity, err := Identify(child.PID())
		if err != nil {
			t.Fatal(err)
		}
		child.Stop(clock.RealClock{}, grace)
		if identity.Alive() {
			t.Errorf("with a grace of %s the child goes on", grace)
		}
	}
}

func TestAProgramThatIsNotThereIsAnError(t *testing.T) {
	spec := Spec{Name: "missing", Path: "/nonexistent", Log: filepath.Join(t.TempDir(), "log")}
	if _, err := Start(spec); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("start it to go on: %v, want an error that names it", err)
	}
	if _, err := StartChild(spec); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("start it as a child: %v, want an error that names it", err)
	}
}

func TestTheFingerprintCoversWhatAProgramReads(t *testing.T) {
	input := filepath.Join(t.TempDir(), "config")
	spec := Spec{Path: "/bin/true", Args: []string{"a"}, Inputs: []string{input}}
	if _, err := spec.Fingerprint(); err == nil {
		t.Error("a missing input was passed over")
	}
	fingerprint := func(content string, spec Spec) string {
		t.Helper()
		if err := os.WriteFile(input, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		sum, err := spec.Fingerprint()
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	first := fingerprint("one", spec)
	if fingerprint("one", spec) != first {
		t.Error("the same specification has two fingerprints")
	}
	if fingerprint("two", spec) == first {
		t.Error("other content has the same fingerprint")
	}
	spec.Args = []string{"b"}
	if fingerprint("one", spec) == first {
		t.Error("another argument has the same fingerprint")
	}
}

func TestParseStatus(t *testing.T) {
	const rest = " 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 2 3"
	for _, test := range []struct {
		name, text string
		want       status
		wantErr    bool
	}{
		{name: "a sleeping process runs", text: "7 (sleep) S" + rest, want: status{started: 4711}},
		{name: "a name may hold parentheses and blanks", text: "7 (a) Z (b c) S" + rest, want: status{started: 4711}},
		{name: "one that nobody has waited for has ended", text: "7 (sleep) Z" + rest, want: status{started: 4711, ended: true}},
		{name: "a line that is cut off is an error", text: "7 (sleep) S 1 2", wantErr: true},
		{name: "an empty line is an error", text: "", wantErr: true},
		{name: "a start that is no number is an error", text: "7 (sleep) S" + strings.Replace(rest, "4711", "x", 1), wantErr: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parseStatus(test.text)
			if (err != nil) != test.wantErr || (err == nil && got != test.want) {
				t.Errorf("%+v, %v; want %+v, error: %t", got, err, test.want, test.wantErr)
			}
		})
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add("7 (sleep) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 2 3")
	f.Add(")")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := parseStatus(text); err != nil && got != (status{}) {
			t.Errorf("%+v along with the error %v", got, err)
		}
	})
}
