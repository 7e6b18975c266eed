#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# .ci/check.sh generated|formatting|page|prose checks what needs no test: that generated files are
# current, that files are formatted, that the page of the dashboard is what its sources say, or
# that the documents are spelt and laid out well. It ends with 77 where the machine can't check that.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

files() { git ls-files --cached --others --exclude-standard "$@" | while read -r f; do [ ! -e "$f" ] || echo "$f"; done; }

require_npm() {
  command -v npm >/dev/null || { echo "not possible here: there is no npm; install the package npm"; exit 77; }
}

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

prose() {
  require_npm
  tools=$(mktemp -d)
  trap 'rm -rf "$tools"' EXIT
  cp -r docs/lint/. "$tools"
  (cd "$tools" && npm ci --silent --no-audit --no-fund)
  files '*.md' ':!*/testdata/*' >"$tools/files"
  local failed=0
  "$tools/node_modules/.bin/cspell" lint --no-progress --no-summary --config "$tools/cspell.yaml" --file-list stdin <"$tools/files" || failed=1
  xargs <"$tools/files" node "$tools/prose.mjs" || failed=1
  grep -E '^docs/(how-to|tutorials)/' "$tools/files" | xargs node "$tools/readingease.mjs" --at-least 65 || failed=1
  # Pages that are generated have the lines of their sources. It prints the names of all files first.
  report=$(grep -Ev '^docs/(reference|benchmarks|kubectl-traffic/kubectl_)' "$tools/files" | xargs "$tools/node_modules/.bin/markdownlint-cli2" --config "$tools/.markdownlint-cli2.yaml" 2>&1) ||
    { grep ' error ' <<<"$report" || echo "$report"; failed=1; }
  return $failed
}

page() {
  require_npm
  (cd e2e && go run ./cmd/page -check)
}

"$1"
