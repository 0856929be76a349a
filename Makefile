# The developer's menu: `make` lists it. `make quickstart` and `make test` need git, make and a Python only.

SHELL := /bin/bash
VENV  := .venv
BIN   := $(VENV)/bin
LOCK  := requirements.lock

# The first Python that is declared (3.11, 3.12) and really runs.
PYTHON ?= $(shell for p in python3.12 python3.11 python3 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' >/dev/null 2>&1 && echo $$p && break; done)
PIP = PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet --constraint $(LOCK)

.DEFAULT_GOAL := help
.PHONY: help quickstart env test lint types pytest test-pythons bench fuzz nightly lock clean \
	env-train test-train env-serve test-serve env-leaderboard test-leaderboard env-scale test-scale env-peers
.PRECIOUS: .venv-%/.done

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

quickstart: $(VENV)/.core  ## build the benchmark from the bundled samples and score a reference agent on it
	$(BIN)/rbtc build --profile bundled --out out/robustbench-tc --force
	@rm -rf out/quickstart
	$(BIN)/rbtc eval out/robustbench-tc --agent name-biased --out out/quickstart

env: $(VENV)/.dev  ## .venv with everything that the tests need

test: env lint types pytest  ## what CI runs: lint, types, tests

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: env
	$(BIN)/mypy

pytest: env
	$(BIN)/python -m pytest

test-pythons:  ## the tests under every declared Python; one that is not on the machine is skipped by name
	@for v in 3.11 3.12; do \
	  if python$$v -c '' >/dev/null 2>&1; then \
	    echo "Python $$v:" && $(MAKE) --no-print-directory VENV=.venv-$$v PYTHON=python$$v pytest || exit 1; \
	  else echo "Python $$v: skipped, not on this machine"; fi; done

# Environments of their own: these packages disagree with each other, or are heavy.

env-train: .venv-train/.done  ## .venv-train: verl, transformers and torch on the CPU
test-train: env-train  ## the tests that need verl
	.venv-train/bin/python -m pytest tests/train_recipes

env-serve: .venv-serve/.done  ## .venv-serve: transformers serve
test-serve: env env-serve  ## the harness against a server that none of us wrote
	$(BIN)/python -m pytest tests/eval/test_transformers_serve.py

env-leaderboard: .venv-leaderboard/.done  ## .venv-leaderboard: gradio and playwright (the browser is the system's)
test-leaderboard: env-leaderboard  ## the leaderboard in a real browser
	.venv-leaderboard/bin/python -m pytest tests/eval/leaderboard

env-scale: .venv-scale/.done  ## .venv-scale: ray
test-scale: env-scale  ## builds and scores on a local Ray
	.venv-scale/bin/python -m pytest tests/test_cluster.py tests/test_parallel.py

EXTRAS_train       := .[train,dev]
EXTRAS_serve       := .[serve]
EXTRAS_leaderboard := .[leaderboard,report,dev]
ALSO_leaderboard   := playwright==1.65.2
EXTRAS_scale       := .[scale,dev]

# verl and transformers pin what the lock pins otherwise: these two go without it.
CONSTRAIN_leaderboard := --constraint $(LOCK)
CONSTRAIN_scale       := --constraint $(LOCK)

.venv-%/.done: pyproject.toml $(LOCK)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or 3.12 is needed and was not found: install one, or say make PYTHON=/path/to/python"; exit 1; }
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-$*/bin/python -m pip install --quiet $(CONSTRAIN_$*) --editable '$(EXTRAS_$*)' $(ALSO_$*)
	@touch $@

bench: env  ## speed and memory, side by side with yardsticks
	$(BIN)/python -m benchmarks

env-peers:  ## .venv-peers: what the benchmarks compare with, where it installs
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	-.venv-peers/bin/python -m pip install --quiet inspect_ai openai 'lm-eval[api]'
	-.venv-peers/bin/python -m pip install --quiet --no-deps --target .venv-peers/bfcl-eval bfcl-eval

fuzz: env  ## the long fuzz of the parser (100,000 texts)
	$(BIN)/python scripts/fuzz_parser.py

nightly: env fuzz  ## the long fuzz, and five kills over the real build
	RBTC_NIGHTLY=1 $(BIN)/python -m pytest tests/eval/test_run_killed.py

lock:  ## resolve everything but verl, vllm and transformers anew into requirements.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra audit --extra report --extra leaderboard --extra scale --extra dev --universal \
	  --python-version 3.11 --no-header --no-annotate --quiet --upgrade --output-file $(LOCK)

clean:  ## remove environments and outputs
	rm -rf .venv .venv-* out dist .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or 3.12 is needed and was not found: install one, or say make PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml $(LOCK) | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml $(LOCK) | $(VENV)/bin/python
	$(PIP) --editable '.[audit,report,dev]'
	@touch $@ $(VENV)/.core
