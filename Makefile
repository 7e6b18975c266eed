# SPDX-License-Identifier: Apache-2.0

# Type `make` or `make help` for what there is.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# One build configuration for the demo, the tests and the tools: what one of them compiled, the others find.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath

CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0
OPENAPI_GEN := go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad
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

STAGES := cd e2e && go run ./cmd/stages

.PHONY: test packages check unit race integration e2e compat soak mutate lint bench-judge bench-analysis plot bench-proxy bench-splits bench-controller bench-metrics bench-dashboard
test: ## Run every stage of the tests: check, unit, race, integration, e2e
	@$(STAGES)

packages: ## Install the Debian packages that the tests use (as root)
	@.ci/packages.sh

check: ## Check format, generated files, imports and go vet
	@$(STAGES) check

unit: ## Run the tests that the race detector need not see, which Go caches
	@$(STAGES) unit

race: ## Run the tests of packages with goroutines, with the race detector
	@$(STAGES) race

integration: ## Run the tests that need a control plane or a node
	@$(STAGES) integration

e2e: ## Run one scenario per capability on a real cluster, under traffic
	@$(STAGES) e2e

compat: ## Play the main stories on another minor version of Kubernetes, which is built first: VERSION=1.31
	cd e2e && go run ./cmd/compat -version "$(VERSION)"

mutate: ## Change conditions of decisions one at a time: a test of their own package must notice each
	cd e2e && go run ./cmd/mutate $(MUTATE_FLAGS)

soak: ## Run what takes hours: random order, 10,000 histories, fuzzing, mutations, high loads
	@$(STAGES) --soak $(SOAK)

lint: ## Run the linters (their first build takes some minutes)
	$(GOLANGCI_LINT) run ./...
	cd bench && $(GOLANGCI_LINT) run --config ../.golangci.yml ./...
	cd e2e && $(GOLANGCI_LINT) run --config ../.golangci.yml ./...

bench-judge: ## Measure how long it takes to judge a window
	go test -run '^$$' -bench . -benchmem ./analysis/judge

bench-analysis: ## Simulate how well the analysis decides, and write docs/benchmarks/analysis.md (about a minute)
	go build -C bench -o ../bin/ ./cmd/bench-analysis
	bin/bench-analysis -o docs/benchmarks/analysis.md $(BENCH_FLAGS)

plot: ## Draw docs/pictures/detectable-effect.svg
	go build -C bench -o ../bin/ ./cmd/bench-analysis
	bin/bench-analysis -plot docs/pictures/detectable-effect.svg

bench-proxy: ## Compare a proxy with a plain nginx, in turns, and time changes of weights
	go test -run '^$$' -bench . -benchmem ./traffic/nginx/conf ./proxy/counts ./proxy/weights
	go build -C bench -o ../bin/ ./cmd/bench-proxy
	bin/bench-proxy $(BENCH_FLAGS)

bench-splits: ## Measure what a split and a Service cost among 50 to 500 splits of one namespace
	go test -run '^$$' -bench 'Splits|EventsOfServices|EndpointSlices' -benchmem ./controllers/trafficsplit
	cd e2e && go test -count=1 -v -timeout 40m -run TestTheWorkGrowsWithTheNumberOfSplits ./integration -args -splits 50,100,200,500

bench-controller: ## Measure what releases cost a cluster (about half an hour)
	cd e2e && go run ./cmd/bench-controller $(BENCH_FLAGS)

bench-metrics: ## Measure what TrafficMetrics of a thousand pods cost: queries, time, memory
	go test -run '^$$' -bench 'List|Memory' -benchtime 10x ./metricsapi/aggregate ./metricsapi/inventory ./metricsapi/source/scrape ./metricsapi/source/prometheus
	cd e2e && go test -run '^$$' -bench 'ListThroughTheAPIServer/pods=1000$$' -benchtime 30x ./integration

bench-dashboard: ## Measure the dashboard with 5,000 Rollouts in a real browser
	cd e2e && go test -count=1 -v -timeout 20m -run TestManyRolloutsAreDrawnAsTheyAreSeen ./integration -args -fleet 5000

##  Change it

.PHONY: docs generate generate-api generate-docs generate-page build
generate: generate-api generate-docs generate-page ## Generate all that is made of the API types, the commands and the page

generate-api: ## Generate the CRDs, the deep copies and OpenAPI definitions from the API types
	$(CONTROLLER_GEN) object paths=./api/...
	$(OPENAPI_GEN) --output-dir metricsapi/server/openapi --output-pkg github.com/serin-dev/serin/metricsapi/server/openapi \
		--output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go --report-filename /dev/null ./api/metrics/v1alpha1
	rm -f config/crd/*.yaml charts/serin/files/crds/*.yaml
	$(CONTROLLER_GEN) crd:maxDescLen=2000 paths='./api/v1alpha1;./api/split/...;./api/specs/...' output:crd:dir=config/crd
	go run ./config/crdlines config/crd/*.yaml
	go run ./config/crdversions config/crd/split.smi-spec.io_trafficsplits.yaml v1alpha2 v1alpha3
	cp config/crd/*.yaml charts/serin/files/crds/

docs: ## Make the site of the documents into dist/docs
	cd e2e && go run ./cmd/docsite

generate-docs: ## Generate the pages of kubectl traffic from its help, and those of the kinds from their CRDs
	go run ./cmd/kubectl-traffic/gendocs docs/kubectl-traffic
	go run ./config/apidocs config/crd docs/reference

generate-page: ## Build the page of the dashboard from its sources, with npm
	cd e2e && go run ./cmd/page

build: ## Build the binaries into bin/
	go build -o bin/ ./cmd/...

##  Publish it; see docs/release.md

# The release of Go that what is published is compiled with: the newest patch of the version that go.mod names, also
# where the machine's Go is another. The go command downloads it once, as a module. All else takes the machine's Go.
RELEASE_GO := go1.26.11
images release vulnerabilities: export GOTOOLCHAIN := $(RELEASE_GO)

.PHONY: images release outdated vulnerabilities
RELEASE := cd e2e && go run ./cmd/release

images: ## Build the images for all architectures into dist/: TAG=… REGISTRY=… PUSH=1
	$(RELEASE) images --registry "$(REGISTRY)" --tag "$(or $(TAG),dev)" $(if $(PUSH),--push) $(RELEASE_FLAGS)

release: ## Make all of a release into dist/: VERSION=1.2.3 REGISTRY=… PUSH=1
	$(RELEASE) all --registry "$(REGISTRY)" --version "$(VERSION)" $(if $(PUSH),--push) $(RELEASE_FLAGS)

vulnerabilities: ## Fail when published programs call what Go's database knows a vulnerability of, or when it can't be had
	@.ci/vulnerabilities.sh

outdated: ## Fail when Debian has newer packages than published images: TAG=1.2.3 REGISTRY=…
	$(RELEASE) outdated --registry "$(REGISTRY)" --tag "$(TAG)" $(RELEASE_FLAGS)

-include e2e/cluster.mk
