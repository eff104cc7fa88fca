# Every command of the project. `make` alone lists them.
#
# Set-up is a file target: it runs when a lock file or pyproject.toml changed, needs no root and no
# account, and is held by a lock so that two terminals can start at once (.ci/setup.py).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
WORKERS ?= 2
ARGS ?=
JSON ?=

BIN := .venv/bin
LOCKED := requirements/run.txt requirements/build.txt pyproject.toml .ci/setup.py
COMPILE = $(UV) pip compile --quiet --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header $(ARGS)

# What the caller's shell says about other Pythons must not reach ours.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help up test check demo bench lock clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: .venv/.installed-run ## set up what is missing, then serve the bot (stop with Ctrl-C)
	@exec $(BIN)/harmonia up $(ARGS)

# `python -O` drops the assertions that keep invariants: refuse it rather than test something else.
ifneq ($(strip $(PYTHONOPTIMIZE)),)
ifneq ($(filter test check demo,$(MAKECMDGOALS)),)
$(error unset PYTHONOPTIMIZE first: python -O removes the assertions that keep invariants)
endif
endif

test: .venv/.installed-dev ## run every test (ARGS=... goes to pytest)
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

check: .venv/.installed-dev ## format, lint, types, layers, tidy tests, branch coverage of the domain
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m pytest tests/tidy
	$(BIN)/coverage run --branch --source=runtime/domain -m pytest tests/runtime/domain
	$(BIN)/coverage report --skip-covered --show-missing --fail-under=95

demo: .venv/.installed-dev ## play the whole story with a real kill in it (JSON=FILE keeps the figures)
	$(BIN)/python -m tests.acceptance.demo $(if $(JSON),--json "$(JSON)") $(ARGS)

bench: .venv/.installed-dev ## measure throughput and latency (JSON=FILE keeps the figures)
	$(BIN)/python -m tests.benchmarks.bench $(if $(JSON),--json "$(JSON)") $(ARGS)

lock: UV := $(or $(shell command -v uv),$(wildcard $(BIN)/uv))
lock: ## write requirements/*.txt again from pyproject.toml (needs uv; ARGS=--upgrade for newer)
	@test -n "$(UV)" || { echo "make lock needs uv: pip install uv"; exit 1; }
	$(COMPILE) --group dev pyproject.toml -o requirements/dev.txt
	$(COMPILE) -c requirements/dev.txt pyproject.toml -o requirements/run.txt
	printf 'hatchling\neditables\n' | $(COMPILE) -c requirements/dev.txt - -o requirements/build.txt

clean: ## remove the environment and every cache; your data directory stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	rm -f .coverage .coverage.*
	find bot runtime connectors tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed-run: $(LOCKED)
	@"$(PYTHON)" .ci/setup.py run

.venv/.installed-dev: $(LOCKED) requirements/dev.txt
	@"$(PYTHON)" .ci/setup.py dev
