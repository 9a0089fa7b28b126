# Each target does its own set-up in .venv; a fresh machine needs Python 3.11, make and a C compiler.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.installed

.PHONY: test test-all lint types layers tests demo clean

test: lint types layers tests

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

layers: $(SETUP)
	$(BIN)/lint-imports

tests: $(SETUP)
	$(BIN)/pytest -n auto -m "not long"

test-all: test
	$(BIN)/pytest -n auto -m long

demo: $(SETUP)
	$(BIN)/hagane demo

$(SETUP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --editable ".[dev,image,rtl]"
	touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
