// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/serin-dev/serin/cmd/kubectl-traffic/dashboard/page"
)

// mostBytes may be loaded before the page is there.
const mostBytes = 200_000

func TestTheFirstLoadIsSmall(t *testing.T) {
	sum := 0
	for name, file := range page.Files() {
		if name != "/licences.txt" {
			sum += len(file.Compressed)
		}
	}
	t.Logf("%d bytes, compressed", sum)
	if sum > mostBytes {
		t.Errorf("the page has %d bytes, compressed; at most %d are allowed", sum, mostBytes)
	}
	if sum == 0 {
		t.Error("there is no page")
	}
}

// reference is what the page loads.
var reference = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

func TestThePageLoadsNothingFromElsewhereAndWorksBelowAnyPrefix(t *testing.T) {
	files := page.Files()
	found := reference.FindAllStringSubmatch(string(files["/"].Content), -1)
	for _, match := range found {
		if _, there := files["/"+match[1]]; !there {
			t.Errorf("the page refers to %s, which is no file beside it", match[1])
		}
	}
	if len(found) == 0 {
		t.Error("the page refers to nothing")
	}
}

func TestFilesAreServedCompressedAndKept(t *testing.T) {
	file := page.Files()["/app.js"]
	get := func(header, value string) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "/app.js", nil)
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		page.Handler().ServeHTTP(w, r)
		return w.Result()
	}
	if got := get("Accept-Encoding", "br, gzip"); got.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/javascript") {
		t.Errorf("headers: %v", got.Header)
	}
	if got := get("Accept-Encoding", ""); got.Header.Get("Content-Encoding") != "" {
		t.Errorf("headers: %v", got.Header)
	}
	if got := get("If-None-Match", file.Tag); got.StatusCode != http.StatusNotModified {
		t.Errorf("status %d", got.StatusCode)
	}
}
