.DEFAULT_GOAL := help
SHELL := /bin/bash
CARGO := cargo
export CARGO_TERM_COLOR ?= auto

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install build run demo test test-faults test-browser contract sdk sdk-lint sdk-test sdk-host lint bench golden clean-local
install: ## install RabbitMQ and Redis if they are missing (starts nothing)
	@deploy/local/install

build: ## build the workers and the command line
	$(CARGO) build --locked --bins

run: install build sdk-host ## a whole fleet on this machine with the example project; Ctrl-C stops it
	@target/debug/runfleet dev

demo: install build sdk-host ## the same, but ends when the outcome job has arrived: exit 0, otherwise 1
	@target/debug/runfleet dev --demo

test: install sdk-test ## everything but the fault suite, on a private RabbitMQ and Redis
	$(CARGO) build --locked --workspace --all-targets
	@deploy/local/with-services deploy/local/cargo-test all

test-faults: install ## crashes and outages: real workers killed, servers restarted
	$(CARGO) build --locked --workspace --all-targets
	@deploy/local/with-services deploy/local/cargo-test faults

test-browser: install ## the chat page of `make run` in a headless Chromium (needs Node 20; installs Chromium where apt-get may)
	$(CARGO) build --locked --bins
	@tests/browser/run

contract: ## judge the published contract with public validators (needs Node 20 and npm)
	@command -v npm >/dev/null || { echo "contract: npm is missing; install Node.js 20 (Debian: apt-get install nodejs npm)" >&2; exit 1; }
	@cd shared/contracts/check && npm ci --ignore-scripts --no-audit --no-fund --silent && node check.mjs

sdk: sdk-lint sdk-test ## check, test and build the TypeScript SDK (needs Node 20 and npm)

sdk-test: shared/sdk/node_modules/.package-lock.json
	@cd shared/sdk && node scripts/test.mjs test/unit test/host/local && npm run --silent build

# A fleet runs without it; then a stand-in takes the jobs of the example.
sdk-host:
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory shared/sdk/node_modules/.package-lock.json && cd shared/sdk && npm run --silent build; fi

sdk-lint: shared/sdk/node_modules/.package-lock.json
	@cd shared/sdk && npm run --silent lint && npm run --silent lint:example

# npm writes this file last; it is as old as what is installed.
shared/sdk/node_modules/.package-lock.json: shared/sdk/package-lock.json
	@command -v npm >/dev/null || { echo "sdk: npm is missing; install Node.js 20 (Debian: apt-get install nodejs npm)" >&2; exit 1; }
	@cd shared/sdk && timeout 300 npm ci --ignore-scripts --no-audit --no-fund --silent && touch node_modules/.package-lock.json

lint: sdk-lint ## formatting, clippy and documentation, warnings are errors
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --quiet

bench: install sdk-host ## runs/s beside a bare relay, waiting runs, agents, messages, hosts (needs Node 20); ONLY=part for one part
	$(CARGO) build --locked --release --bins -p runfleet-tests
	$(CARGO) build --locked --release --bins
	@target/release/runfleet-bench $(if $(ONLY),--only $(ONLY))

golden: ## rewrite the golden files, schemas and files of the SDK from the types; look at the difference
	UPDATE_GOLDEN=1 $(CARGO) test --locked -p runfleet-domain -p runfleet-contracts -p runfleet-catalog -p runfleet-store --lib
	@$(MAKE) --no-print-directory shared/sdk/node_modules/.package-lock.json && cd shared/sdk && npm run --silent generate && npm run --silent docs

clean-local: ## stop the development servers of this checkout and remove their data
	@deploy/local/services stop .runfleet && rm -rf .runfleet
