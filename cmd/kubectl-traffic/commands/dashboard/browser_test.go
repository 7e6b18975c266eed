// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/serin-dev/serin/config/testenv"
)

// TestTheBrowserIsGivenAFileThatOnlyTheUserCanRead: every user of a machine can read the arguments
// of its processes, and the address has a secret in it.
func TestTheBrowserIsGivenAFileThatOnlyTheUserCanRead(t *testing.T) {
	if runtime.GOOS != "linux" {
		testenv.Missing(t, "the program that opens the browser has another name here", "run the test on Linux")
	}
	folder, temporary := t.TempDir(), t.TempDir()
	noted := filepath.Join(folder, "noted")
	script := fmt.Sprintf("#!/bin/sh\nfile=${1#file://}\n{ echo \"$*\"; /bin/ls -l \"$file\"; /bin/cat \"$file\"; } >%s\n", noted)
	if err := os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	t.Setenv("TMPDIR", temporary)
	name, err := fileFor(`http://127.0.0.1:8080/open?secret=hidden&at=%2F"><script>`)
	if err == nil {
		err = openBrowser(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(string(content), "\n", 3)
	if strings.Contains(lines[0], "hidden") {
		t.Errorf("arguments: %s", lines[0])
	}
	if !strings.HasPrefix(lines[1], "-rw-------") {
		t.Errorf("the file: %s", lines[1])
	}
	if want := `url=http://127.0.0.1:8080/open?secret=hidden&amp;at=%2F&#34;&gt;&lt;script&gt;"`; !strings.Contains(lines[2], want) {
		t.Errorf("the file has %s, want %s", lines[2], want)
	}
}
