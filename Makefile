# SPDX-License-Identifier: Apache-2.0

# Type `make` or `make help` for what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

.PHONY: help
help: ## Show what can be made
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9_-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##  See it

.PHONY: demo demo-down
demo: ## Watch Serin promote a good version and roll back a bad one on a real cluster
	cd e2e && go run ./cmd/demo $(DEMO_FLAGS)

demo-down: ## Remove the demo and the cluster that was started for it
	cd e2e && go run ./cmd/demo down $(DEMO_FLAGS)

##  Test it

.PHONY: test packages unit verify integration e2e lint bench-judge bench-analysis plot bench-proxy bench-controller
test: ## Run every test: unit, verify, integration, e2e
	@.ci/test.sh

packages: ## Install the Debian packages that the tests use (as root)
	@.ci/packages.sh

unit: ## Run the tests that need no cluster, with the race detector
	@.ci/go-test.sh . ./...

verify: ## Check generated files, formatting and go vet in every module
	@.ci/verify.sh

integration: ## Run the tests that need a control plane or a node
	@.ci/go-test.sh e2e $$(cd e2e && go list ./... | grep -v '/e2e$$')

e2e: ## Play the demo's story as a test on a real cluster
	@.ci/go-test.sh e2e -v -timeout 20m -run TestDemoStory .

lint: ## Run the linters (their first build takes some minutes)
	$(GOLANGCI_LINT) run ./...
	cd e2e && $(GOLANGCI_LINT) run --config ../.golangci.yml ./...

bench-judge: ## Measure how long it takes to judge a window
	go test -run '^$$' -bench . -benchmem ./analysis/judge

bench-analysis: ## Simulate how well the analysis decides, and write docs/benchmarks/analysis.md (about a minute)
	go run ./analysis/sim/cmd/bench-analysis -o docs/benchmarks/analysis.md $(BENCH_FLAGS)

plot: ## Draw docs/pictures/detectable-effect.svg
	go run ./analysis/sim/cmd/bench-analysis -plot docs/pictures/detectable-effect.svg

bench-proxy: ## Measure rendering and reading of the access log
	go test -run '^$$' -bench . -benchmem ./controllers/traffic/nginx ./proxy

bench-controller: ## Measure what releases cost a cluster (about half an hour)
	cd e2e && go run ./cmd/bench-controller $(BENCH_FLAGS)

##  Change it

.PHONY: generate build
generate: ## Generate the CRDs and the deep copies from the API types
	$(CONTROLLER_GEN) object paths=./api/...
	rm -f config/crd/*.yaml charts/serin/files/crds/*.yaml
	$(CONTROLLER_GEN) crd:maxDescLen=2000 paths='./api/v1alpha1;./api/split/...;./api/specs/...' output:crd:dir=config/crd
	go run ./config/crdlines config/crd/*.yaml
	cp config/crd/*.yaml charts/serin/files/crds/

build: ## Build the binaries into bin/
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/...

-include e2e/cluster.mk
