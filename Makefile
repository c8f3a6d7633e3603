# `make` lists the targets. PYTHON selects the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# Which set of constraints/ an interpreter gets; the matrix gives SET itself.
SETS := 3.10:oldest 3.11:middle 3.12:middle 3.13:newest
SET := $(patsubst $(VERSION):%,%,$(filter $(VERSION):%,$(SETS)))

VENV := .venv/$(SET)-$(VERSION)
BIN := $(VENV)/bin
READY := $(if $(SET),$(VENV)/.ready,no-set)

.PHONY: no-set help install demo demo-mjx run-mjx test matrix lint types bench all clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-8s %s\n", $$1, $$2}' Makefile

install: $(READY) ## Make the environment (the other targets do it by themselves)

demo: $(READY) ## Run the example: identify a rex-lib pipeline, many parameter sets at once
	$(BIN)/python examples/rex_pipeline/run.py

demo-mjx: ## Run the other example: 2,048 different worlds in MuJoCo MJX, by Python 3.12 or 3.13
	@python=$$($(PYTHON) tools/matrix.py --python newest) && \
	$(MAKE) --silent PYTHON=$$python SET=newest run-mjx

run-mjx: $(READY)
	$(BIN)/python examples/mjx_randomisation/run.py

test: $(READY) ## Run all tests, the README and the docstrings
	$(BIN)/pytest

matrix: $(READY) ## Run all tests on the oldest, a middle and the newest JAX
	rm -rf build
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build .
	$(BIN)/pip install --quiet --no-deps --target build/installed build/*.whl
	$(PYTHON) tools/matrix.py $(SET) $(OTHERS)

lint: $(READY) ## Check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY) ## Check the package's types
	$(BIN)/mypy

bench: $(READY) ## Print the table of benchmarks
	$(BIN)/python -m benchmarks

all: test matrix lint types demo ## Everything that .ci/run runs

clean: ## Remove what the other targets made
	rm -rf .venv build dist .hypothesis .pytest_cache .mypy_cache .ruff_cache

# A set is complete and installed as it stands: pip resolves nothing.
$(VENV)/.ready: constraints/$(SET).txt pyproject.toml
	@echo "Installing constraints/$(SET).txt into $(VENV): a minute or two, once"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --no-deps --only-binary :all: -r constraints/$(SET).txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

no-set:
	@echo "constraints/ has no set for PYTHON=$(PYTHON) (version '$(VERSION)')."
	@echo "The Pythons that have one: $(SETS)"
	@exit 1
