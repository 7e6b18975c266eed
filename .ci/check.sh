#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# .ci/check.sh generated|formatting|page checks what needs no test: that generated files are
# current, that files are formatted, or that the page of the dashboard is what its sources say.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

files() { git ls-files --cached --others --exclude-standard "$@" | while read -r f; do [ ! -e "$f" ] || echo "$f"; done; }

formatting() {
  unformatted=$(files '*.go' | xargs gofmt -l)
  [ -z "$unformatted" ] || { echo "not formatted; run gofmt -w on: $unformatted"; return 1; }
}

generated() {
  copy=$(mktemp -d)
  trap 'rm -rf "$copy"' EXIT
  files api config charts metricsapi/server/openapi go.mod go.sum Makefile | tar -cf - -T - | tar -xf - -C "$copy"
  (cd "$copy" && make --no-print-directory generate-api >/dev/null) || { echo "make generate does not run"; return 1; }
  local failed=0
  for folder in api config/crd charts/serin/files/crds metricsapi/server/openapi; do
    diff -ru "$root/$folder" "$copy/$folder" ||
      { echo "$folder is not what its source says: run make generate and commit the result"; failed=1; }
  done
  return $failed
}

page() { (cd e2e && go run ./cmd/page -check); }

"$1"
