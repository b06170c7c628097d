# Two commands do everything: `make demo` and `make test`. Set-up is part of each and does only what is missing.
SHELL := /bin/sh
node = root=. && . tools/bootstrap.sh && "$$NODE"

.DEFAULT_GOAL := help
.PHONY: help demo test setup check e2e chaos soak bench lab-up lab-down generate format

help:
	@echo 'make demo      see it run: a real Kubernetes on this machine and pods on their way out'
	@echo 'make test      everything: check, then end-to-end tests in the lab'
	@echo 'make setup     all set-up (npm, Debian packages, Kubernetes from Go modules) and nothing else'
	@echo 'make check     types, lint, import boundaries, generated files, unit tests (under 60 s)'
	@echo 'make e2e       tests of the kernel and end-to-end tests in the lab only'
	@echo 'make chaos     some minutes of faults by chance in the lab (SALLYPORT_MINUTES, SALLYPORT_SEED)'
	@echo 'make soak      the same for half an hour, with another seed each time; it prints which'
	@echo 'make bench     benchmarks, each beside its baseline'
	@echo 'make lab-up    bring the lab up and leave it up;  make lab-down removes it'
	@echo 'make generate  write CRDs and reference docs anew from src/api;  make format tidies sources'

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
