#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Runs every stage of the tests, tells how long each took, and ends with one line
# that counts the stages. A stage that fails does not stop the others.
set -uo pipefail
cd "$(dirname "$0")/.."

passed=0 failed=0 skipped=0
results=()

# note STATE STAGE SECONDS counts a stage.
note() {
  case $1 in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
  esac
  results+=("$(printf '%-12s %-8s %3dm%02ds' "$2" "$1" $(($3 / 60)) $(($3 % 60)))")
  echo "==== $2: $1 after $(($3 / 60))m$(($3 % 60))s"
}

# failures FILE tells again what failed in a log of go test: a package that fails prints
# everything, and a reader would have to look for it. A story marks its failures.
failures() {
  awk '
    /^(panic: |fatal error: |WARNING: DATA RACE)/ { rest = 60 }
    /^ *--- FAIL: / { block = 1 }
    /^[^ ]/ && !/^--- FAIL: / { block = 0 }
    /_test\.go:[0-9]+: / { story = / FAILED:/ }
    !/^    / { story = 0 }
    block || story || rest > 0 || /\[(build|setup) failed\]$/ { print substr($0, 1, 1000) }
    { rest-- }' "$1"
}

# stage NAME runs make NAME.
stage() {
  echo
  echo "==== $1: $2"
  local started=$SECONDS state=passed log
  log=$(mktemp)
  make --no-print-directory "$1" 2>&1 | tee "$log"
  if [ "${PIPESTATUS[0]}" -ne 0 ]; then
    state=failed
    echo "==== $1: what failed"
    failures "$log"
  elif [ "$1" = e2e ] && grep -q -- '^--- SKIP: Test' "$log"; then
    state=skipped
  fi
  rm -f "$log"
  note $state "$1" $((SECONDS - started))
}

# free tells how much room there is where the tests write, since a full disk looks like
# many other failures: the node takes no pods, and builds end half way.
free() {
  local folder
  for folder in . "${TMPDIR:-/tmp}" "$(go env GOCACHE)"; do
    mkdir -p "$folder"
    df -Pk "$folder" | awk -v folder="$folder" -v need=12 'NR == 2 {
      printf "free in %s: %d GiB\n", folder, $4 / 1048576
      if ($4 / 1048576 < need) printf "WARNING: a first run needs about %d GiB there; free some if anything fails\n", need
    }'
  done
}

# A cluster that was there before stays; one that the tests started goes.
had_cluster=no
[ -z "$(find "${SERIN_CACHE:-.cache}/cluster" -mindepth 1 -print -quit 2>/dev/null)" ] || had_cluster=yes

free
stage packages "Debian packages that the tests use"
stage unit "tests that need no cluster"
stage fuzz "input that nobody thought of, for what renders nginx's configuration"
stage verify "generated files, formatting, go vet"
stage integration "tests on a control plane, and of the local cluster (the first build of Kubernetes takes about ten minutes)"
stage e2e "stories on a real cluster (the first build of Traefik takes about ten minutes)"
if [ "$had_cluster" = no ]; then
  stage cluster-down "removing the cluster that the tests started"
fi

echo
free
printf '%s\n' "${results[@]}"
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
