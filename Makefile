# Everything a contributor runs. Each target makes .venv from the lock first; see scripts/bootstrap.py.

PYTHON ?= python3
N ?= 1000
SEED ?= 1
ARGS ?=
BIN := .venv/bin
BENCH := .venv-bench/bin/python
FAST := not slow and not postgres and not s3 and not spark and not simulation and not crash
COMPILE := env -u PIP_FIND_LINKS -u UV_FIND_LINKS $(BIN)/uv pip compile pyproject.toml --quiet \
	--universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links $(UPGRADE)

.SHELLFLAGS := -eu -c
.DEFAULT_GOAL := help
.SILENT:
.PHONY: help setup setup-bench demo demo-table lint check test simulate mutants bench bench-commit bench-spark lock fmt clean

help: ## Show this list
	awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## Make .venv from requirements.lock (at once if it is current)
	$(PYTHON) scripts/bootstrap.py

setup-bench:
	$(PYTHON) scripts/bootstrap.py --bench

demo: setup ## A plant streams through Spark into a table, is killed, goes on; with a report
	$(BIN)/python examples/demo.py $(ARGS)

demo-table: setup ## What a table does, without Spark, in a minute
	$(BIN)/python examples/demo_table.py

lint: setup ## ruff, formatting, mypy --strict, floors
	$(BIN)/ruff check --quiet
	$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --check || true; echo 'Run: make fmt' >&2; exit 1; }
	$(BIN)/mypy --strict
	report=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$report"; exit 1; }; echo "$$report" | tail -n 1

check: lint ## lint and the fast tests: the loop, under 90 seconds
	$(BIN)/pytest -m "$(FAST)" -n 2 -q

test: lint ## lint and every test, servers and simulations too
	$(BIN)/pytest -n 2 --dist loadfile

simulate: setup ## Run N=1000 simulated histories from SEED=1
	$(BIN)/python -m lakebed.testing.simulate --histories $(N) --seed $(SEED)

mutants: setup ## Break the code on purpose, and see the tests notice
	$(BIN)/python scripts/mutants.py

bench: setup-bench ## Run every bench/*.py (a leading _ marks a shared piece)
	for file in bench/[!_]*.py; do echo "== $$file"; $(BENCH) "$$file"; done

bench-commit: setup-bench ## Cost of a commit beside Delta and Iceberg (ARGS=--quick for a smoke test)
	$(BENCH) bench/commit.py $(ARGS)

bench-spark: setup-bench ## Spark: scan, write, append, stream beside Parquet and Delta (ARGS=--quick)
	$(BENCH) bench/spark.py $(ARGS)

lock: setup ## Write both locks anew (UPGRADE=--upgrade to move the pins)
	$(COMPILE) --extra dev -o requirements.lock
	$(COMPILE) --extra bench -o requirements-bench.lock

fmt: setup ## Format, and fix what ruff can fix
	$(BIN)/ruff check --fix --quiet || true
	$(BIN)/ruff format --quiet

clean: ## Remove caches and build products; the environments stay
	rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov
	find . -name __pycache__ -type d -not -path './.venv*' -prune -exec rm -rf {} +
