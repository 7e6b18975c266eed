// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"html"
	"io"
	"os"

	"github.com/cli/browser"
)

// openBrowser opens an address in the browser. Arguments of a process can be read by every user
// of a machine, and the address has a secret in it: the browser is given a file that only
// this user can read, and that leads on to the address. The file stays until it is removed.
func openBrowser(address string) (remove func(), err error) {
	remove = func() {}
	file, err := os.CreateTemp("", "serin-dashboard-*.html") // for this user only
	if err != nil {
		return remove, err
	}
	remove = func() { _ = os.Remove(file.Name()) }
	_, err = fmt.Fprintf(file, "<!doctype html><meta charset=utf-8><title>Serin</title><meta http-equiv=refresh content=\"0;url=%s\"><a href=\"%[1]s\">Dashboard</a>\n", html.EscapeString(address))
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return remove, err
	}
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	return remove, browser.OpenFile(file.Name())
}
