# SPDX-License-Identifier: Apache-2.0

# The local cluster; see docs/local-cluster.md.

.PHONY: cluster-up cluster-down cluster-images

cluster-up: ## Start a Kubernetes cluster on this machine, or repair it
	cd e2e && go run ./cmd/cluster up

cluster-down: ## Remove the local cluster; compiled programs and images stay
	cd e2e && go run ./cmd/cluster down

cluster-images: ## Build the images and put them into the cluster
	cd e2e && go run ./cmd/cluster load-images
