#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# .ci/vulnerabilities.sh looks the modules and the standard library that the programs of a
# release are built from up in Go's database of vulnerabilities, and fails when the programs call
# a function that has one. The database is that of vuln.go.dev or, where nothing but a module
# proxy is reachable, the module golang.org/x/vulndb, which can be some weeks old. Where there is
# neither, nothing is checked, and it fails.
set -euo pipefail
cd "$(dirname "$0")/.."

vulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
database=https://vuln.go.dev

if ! curl --silent --fail --max-time 20 --output /dev/null "$database/index/db.json"; then
  module=$(go mod download -json golang.org/x/vulndb@latest) ||
    { echo "not possible here: neither $database nor the module golang.org/x/vulndb can be reached; nothing was checked"; exit 1; }
  field() { sed -n "s/^\t\"$1\": \"\(.*\)\",\$/\1/p" <<<"$module"; }
  echo "$database can't be reached: the database is golang.org/x/vulndb $(field Version)"
  database=file://$(field Dir)/data/osv
fi

go run "$vulncheck" -db "$database" ./cmd/...
