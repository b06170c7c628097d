# Two commands are enough: `make demo` and `make test`. Each includes the set-up, which does only what is missing.
SHELL := /bin/sh
node = root=. && . tools/bootstrap.sh && "$$NODE"

.DEFAULT_GOAL := help
.PHONY: help demo test setup check e2e chaos soak bench lab-up lab-down generate format

help:
	@echo 'make demo      a demonstration: a real Kubernetes on this machine, and pods that leave with an EIP'
	@echo 'make test      run everything: check, then end-to-end tests in the lab'
	@echo 'make setup     only the set-up (npm, Debian packages, Kubernetes from Go modules)'
	@echo 'make check     types, lint, import boundaries, generated files, unit tests (under 60 s)'
	@echo 'make e2e       only kernel tests and end-to-end tests in the lab'
	@echo 'make chaos     some minutes of random faults in the lab (SALLYPORT_MINUTES, SALLYPORT_SEED)'
	@echo 'make soak      the same for half an hour, with a new seed each time; it prints the seed'
	@echo 'make bench     benchmarks, each with its baseline'
	@echo 'make lab-up    start the lab and keep it;  make lab-down removes it'
	@echo 'make generate  regenerate CRDs and reference docs from src/api;  make format formats sources'

setup:
	@bin/lab setup

demo:
	@$(node) lab/demo.ts

check:
	@$(node) tools/check.ts

e2e: setup
	@$(node) tools/e2e.ts

test: setup check e2e

chaos: setup
	@$(node) --test --test-force-exit --test-reporter=spec test/chaos/chaos.test.ts

soak: export SALLYPORT_SEED := $(or $(SALLYPORT_SEED),$(shell date +%s))
soak: export SALLYPORT_MINUTES := $(or $(SALLYPORT_MINUTES),30)
soak: chaos

bench: setup
	@$(node) bench/main.ts

lab-up:
	@bin/lab up

lab-down:
	@bin/lab down

generate:
	@$(node) tools/generate.ts

format:
	@$(node) -e '' && node_modules/@biomejs/cli-linux-x64/biome check --write .
