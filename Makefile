# `make demo` and `make test` work on a fresh machine with Python 3.11+, git and make: they create .venv first.
PYTHON ?= python3
VENV ?= .venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?= -n auto --dist worksteal
CASE ?= resnet

export JAX_PLATFORMS ?= cpu
export KERAS_BACKEND = jax
export TF_CPP_MIN_LOG_LEVEL ?= 3
export OMP_NUM_THREADS ?= 1
# What is compiled here runs once: compile fast, and keep it for the other worker and the next run.
export XLA_FLAGS ?= --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
export JAX_COMPILATION_CACHE_DIR ?= $(abspath $(VENV))/jax-cache
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES ?= -1

.PHONY: demo test test-full lint fixtures docs docs-site pictures record clean

demo: $(VENV)/ready
	$(VENV)/bin/migrate convert fixtures/$(CASE)/torch.py -o build/demo/$(CASE).py --force --check

# XLA's optimiser takes longer than what it would save here.
test: export XLA_FLAGS ?= --xla_backend_optimization_level=0
test: $(VENV)/ready
	$(PY) -m pytest $(PYTEST_ARGS)

# Every case of the long tables; `make test` runs one in three of them.
test-full: $(VENV)/ready
	$(PY) -m pytest $(PYTEST_ARGS) --full

lint: $(VENV)/ready
	$(PY) -m ruff check .
	$(PY) -m mypy

# After a change that is meant: the golden output of fixtures/, to be read in the diff before it is committed.
fixtures: $(VENV)/ready
	$(PY) tests/update_fixtures.py

docs: $(VENV)/ready
	$(PY) -m migrate.report.pages docs/diagnostics.md
	$(PY) -m migrate.report.operators docs/operators

# How many samples of PyTorch's own databases agree, and with which releases: for the pages of docs/operators.
record: $(VENV)/ready
	$(PY) -m pytest $(PYTEST_ARGS) --full tests/test_databases.py --record migrate/mappings/verified.json
	$(MAKE) docs

# The documentation as pages in build/site; links are checked.
docs-site: $(VENV)/docs-ready
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	@echo build/site/index.html

# The pictures of the documentation, from real runs.
pictures: $(VENV)/ready
	$(PY) tools/pictures.py docs/pictures

$(VENV)/docs-ready: pyproject.toml constraints.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

$(VENV)/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "migrate needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
