#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Checks what needs no test: generated files are current, files are formatted, and
# go vet has nothing to say in any module.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
failed=0

fail() {
  echo "FAILED: $1"
  failed=1
}

files() { git ls-files --cached --others --exclude-standard "$@" | while read -r f; do [ ! -e "$f" ] || echo "$f"; done; }

echo "-- generated files"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
files api config charts metricsapi/server/openapi go.mod go.sum Makefile | tar -cf - -T - | tar -xf - -C "$copy"
if (cd "$copy" && make --no-print-directory generate-api >/dev/null); then
  for folder in api config/crd charts/serin/files/crds metricsapi/server/openapi; do
    diff -ru "$root/$folder" "$copy/$folder" || fail "$folder is not what its source says: run make generate and commit the result"
  done
else
  fail "make generate does not run"
fi

echo "-- formatting"
unformatted=$(files '*.go' | xargs gofmt -l)
[ -z "$unformatted" ] || fail "not formatted; run gofmt -w on: $unformatted"

for module in $(files '*go.mod' | xargs -n1 dirname); do
  if [ -z "$(cd "$module" && go list ./... 2>/dev/null)" ]; then
    continue # it only pins the version of a program
  fi
  echo "-- go vet in $module"
  case $module in
    # The flags are those that the tools are built with, so that nothing is compiled twice.
    e2e/tools/*) (cd "$module" && CGO_ENABLED=0 go vet -trimpath ./...) || fail "go vet in $module" ;;
    *) (cd "$module" && go vet ./...) || fail "go vet in $module" ;;
  esac
done

exit $failed
