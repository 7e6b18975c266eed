// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"errors"
	"fmt"
	"html"
	"io"
	"os"

	"github.com/cli/browser"
)

// fileFor makes a file that leads on to an address. Arguments of a process can be read by every user
// of a machine, and the address has a secret in it: so the browser is given a file, which only
// this user can read.
func fileFor(address string) (name string, err error) {
	file, err := os.CreateTemp("", "serin-dashboard-*.html") // for this user only
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(file, "<!doctype html><meta charset=utf-8><title>Serin</title><meta http-equiv=refresh content=\"0;url=%s\"><a href=\"%[1]s\">Dashboard</a>\n", html.EscapeString(address))
	return file.Name(), errors.Join(err, file.Close())
}

// openBrowser opens a file in the browser. It may last as long as the browser does.
func openBrowser(name string) error {
	browser.Stdout, browser.Stderr = io.Discard, io.Discard
	return browser.OpenFile(name)
}
