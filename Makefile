# "make" tells what there is. Everything works in a fresh clone with Go, a C compiler (for -race) and make.

MODULES  := $(shell awk '$$2 == "yes" || $$2 == "no" { print $$1 }' modules.txt)
PACKAGES := $(patsubst ././...,./...,$(MODULES:%=./%/...))

STORES   := ./stores/goredisstore/... ./stores/rueidisstore/...

LINT_VERSION := v2.15.0
LINT         := .tools/golangci-lint-$(LINT_VERSION)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help need demo run test check tidy cover fuzz bench bench-redis bench-redis-single bench-redis-cluster bench-memory lint vet fmt-check tidy-check arrows alone

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Show the limiters at work: starts a service, floods it, and tells what happened
	go run ./examples/routesapi/demo

run: ## Start the example service on :8080
	go run ./examples/routesapi -listen :8080

# What the stores' tests do to servers takes as long as it takes, on whatever machine: these run one after another, alone.
test: need ## Test every module, with the race detector, against Redis servers that the tests start
	go test -race -count=1 -timeout=10m $(filter-out $(STORES),$(PACKAGES))
	go test -race -count=1 -timeout=10m -p=1 $(STORES)

need:
	@scripts/need.sh

check: need fmt-check arrows tidy-check vet lint alone test ## Everything that CI checks; the tests come last

tidy: ## Write the requirements and replace lines of every go.mod
	go run ./internal/arch/tidy

cover: ## Measure what the root module's tests cover; leaves cover.out
	go test -count=1 -coverpkg=./... -coverprofile=cover.out ./... > /dev/null
	go tool cover -func=cover.out
	@echo 'Line by line: go tool cover -html=cover.out'

fuzz: ## Run every fuzz target for ten seconds
	scripts/fuzz.sh 10s

# Without the workspace, so that the versions are those of internal/bench/go.mod.
bench: bench-redis bench-memory ## Measure against other libraries, side by side; writes the tables of BENCHMARKS.md

TOPOLOGY ?= single

bench-redis: bench-redis-$(TOPOLOGY) ## The part of "make bench" that goes through Redis: about six minutes; with TOPOLOGY=cluster on clusters, two

bench-redis-single: need
	cd internal/bench && GOWORK=off go test -count=1 -run=NONE -bench=Redis -benchtime=1x -timeout=20m ./redisbench -args -write

bench-redis-cluster: need
	cd internal/bench && GOWORK=off go test -count=1 -run=NONE -bench=Cluster -benchtime=1x -timeout=20m ./redisbench -args -write

bench-memory: ## The part of "make bench" that stays in the process: about six minutes on a quiet machine
	cd internal/bench && GOWORK=off go test -count=1 -run=NONE -bench=Memory -benchtime=1x -timeout=20m ./membench -args -write
	cd internal/bench && GOWORK=off go test -count=1 -run=NONE -bench=Requests -benchtime=1x -timeout=20m ./webbench -args -write

lint: $(LINT) ## Run golangci-lint over every module
	$(LINT) run $(PACKAGES)

vet: ## Run go vet over every module
	go vet work

fmt-check: ## Fail where a file is not formatted
	@files=$$(gofmt -l .); [ -z "$$files" ] || { printf 'not formatted (gofmt -w):\n%s\n' "$$files"; exit 1; }

tidy-check: ## Fail where "make tidy" would change something
	go run ./internal/arch/tidy -check

arrows: ## Check what may import what, and the shape of the repository
	go test -count=1 ./internal/arch/...

# The workspace hides what a go.mod lacks; a user of one module has no workspace.
alone: ## Build and vet every module, and compile its tests, without the workspace
	@for m in $(MODULES); do \
		echo "alone: $$m"; \
		(cd "$$m" && export GOWORK=off && go build ./... && go vet ./... && go test -vet=off -c -o /dev/null ./...) || exit 1; \
	done

$(LINT):
	GOBIN="$(CURDIR)/.tools" go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv .tools/golangci-lint $@
