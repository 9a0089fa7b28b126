# Each target does its own set-up in .venv; a fresh machine needs Python 3.11, make and a C compiler.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.installed

.PHONY: test test-all lint types layers tests conformance wheel demo clean

test: lint types layers tests conformance wheel

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

layers: $(SETUP)
	$(BIN)/lint-imports

tests: $(SETUP)
	$(BIN)/pytest -n auto -m "not long"

conformance: $(SETUP)
	$(BIN)/python -W ignore tests/outside/conformance.py

wheel: $(SETUP)
	$(BIN)/python tests/outside/wheel.py

test-all: test
	$(BIN)/pytest -n auto -m long
	$(BIN)/python tests/outside/wheel.py --all

demo: $(SETUP)
	$(BIN)/hagane demo

$(SETUP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --editable ".[dev,image,cluster,data,prob,rtl]"
	touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
