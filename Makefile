# Everything runs in .venv, which is made once from requirements-dev.txt; nothing else is needed
# but Python 3.11 or newer. The demo and the end-to-end tests build a control plane from source the
# first time (minutes; cached), unless KUBEBUILDER_ASSETS names a folder with etcd and kube-apiserver.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILE := $(BIN)/uv pip compile pyproject.toml --quiet --generate-hashes --universal \
	--python-version 3.11 --no-emit-index-url --custom-compile-command "make requirements"

.PHONY: help demo test servers lint format unit e2e bench-decision bench-relay bench-redis bench-explain bench-waiting bench-confirmation bench-plugins \
	requirements generate clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## Place 1,000 sandboxes on a real control plane (KEEP=1 leaves it running)
	@$(BIN)/cubesched demo $(if $(KEEP),--keep) $(ARGS)

test: lint servers ## Run every check and test: lint, unit, model and end-to-end
	@$(BIN)/pytest tests

servers: $(READY) ## Find the servers' programs, or build them (minutes, once a machine)
	@$(BIN)/cubesched local build >/dev/null

unit: $(READY) ## Run the tests that need no servers (seconds)
	@$(BIN)/pytest tests/unit tests/model

e2e: servers ## Run the tests on a real control plane
	@$(BIN)/pytest tests/e2e

lint: $(READY) ## Check style, types, layers and generated files
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/cubesched generate --check

format: $(READY) ## Rewrite the sources in the project's format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

generate: $(READY) ## Write the CRDs, roles and admission rules that follow from the models
	@$(BIN)/cubesched generate

bench-decision: $(READY) ## Measure a full decision: one JSON object a line
	@$(BIN)/python benchmarks/decision.py $(ARGS)

bench-relay: servers ## Measure what watching agents cost the API server, with and without a relay
	@$(BIN)/python benchmarks/relay.py $(ARGS)

bench-redis: $(READY) ## Measure a pass over all nodes' reports in Redis: one JSON object a line
	@$(BIN)/python benchmarks/nodemetrics.py $(ARGS)

bench-explain: servers ## Time `cubesched explain` on 5,000 nodes: one JSON object a line
	@$(BIN)/python benchmarks/explain.py $(ARGS)

bench-waiting: servers ## Measure memory, and placing beside 2,000 hopeless requests
	@$(BIN)/python benchmarks/waiting.py $(ARGS)

bench-confirmation: servers ## Measure placements and writes by who confirms: one JSON object a line
	@$(BIN)/python benchmarks/confirmation.py $(ARGS)

bench-plugins: $(READY) ## Measure what plugins add to a decision: one JSON object a line
	@$(BIN)/python benchmarks/plugins.py $(ARGS)
	@$(BIN)/python benchmarks/plugins_grpc.py

requirements: $(READY) ## Pin the newest allowed version of every package, with hashes
	$(COMPILE) --upgrade --output-file requirements.txt
	$(COMPILE) --upgrade --extra dev --output-file requirements-dev.txt

clean: ## Remove the virtual environment and all caches of the checkout
	rm -rf $(VENV) dist .demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find operator tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(READY): requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cubesched needs Python 3.11 or newer; try: make PYTHON=python3.12 ...")'
	@echo "preparing $(VENV): about 250 MB of packages, a minute or two ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@
	@echo "$(VENV) is ready"
