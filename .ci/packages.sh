#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Installs the Debian packages that the tests use and that are missing: a C
# compiler for Go's race detector, nginx with its stream module for the tests
# of the proxy, a Prometheus for those of its queries, jq, curl and openssl for the examples of
# pages, a browser with a font for the dashboard, npm to build its page, and containerd for what
# kind does. A local cluster installs what its node needs. Services are not started.
# Where it can't install, it says what will be left out; the tests themselves skip
# with the same reason.
set -euo pipefail

missing=()
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
[ -x /usr/sbin/nginx ] || command -v nginx >/dev/null || missing+=(nginx-light)
command -v prometheus >/dev/null || missing+=(prometheus)
command -v jq >/dev/null || missing+=(jq)
command -v curl >/dev/null || missing+=(curl)
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
command -v npm >/dev/null || missing+=(npm)
command -v openssl >/dev/null || missing+=(openssl)
command -v containerd >/dev/null || missing+=(containerd)
[ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || missing+=(libnginx-mod-stream)

if [ ${#missing[@]} -eq 0 ]; then
  echo "every package is there"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  echo "missing, and only root can install them: ${missing[*]}"
  echo "tests that need them are skipped; to run them, type: sudo apt-get install ${missing[*]}"
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "missing, and there is no apt-get to install them: ${missing[*]}"
  exit 0
fi

# Debian asks this script before it starts a service of a package.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y --no-install-recommends "${missing[@]}" >/dev/null; }
# The package lists of a fresh machine are empty or old.
install 2>/dev/null || { apt-get update >/dev/null && install; }
