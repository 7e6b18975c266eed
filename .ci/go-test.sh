#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# .ci/go-test.sh MODULE ARGS… runs go test in a module, with the race detector
# where a C compiler is there to build it.
set -euo pipefail
cd "$(dirname "$0")/../$1"
shift

flags=(-shuffle=on)
if command -v gcc >/dev/null; then
  export CGO_ENABLED=1
  flags+=(-race)
else
  echo "no gcc: running without the race detector"
fi
exec go test "${flags[@]}" -timeout 40m "$@"
