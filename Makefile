# Each target does its own set-up in .venv; a fresh machine needs Python 3.11, make and a C compiler.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.installed

.PHONY: test test-all lint types layers tests conformance wheel sanitize demo clean

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

test-all: test sanitize
	$(BIN)/pytest -n auto -m long
	$(BIN)/python tests/outside/wheel.py --all

# Generated kernels and the engine under AddressSanitizer and UndefinedBehaviorSanitizer, then
# ThreadSanitizer, which forbids a child of several threads to start one, and takes the threads of
# OpenBLAS, which it cannot see into, for races.
sanitize: $(SETUP)
	HAGANE_SANITIZE=address,undefined ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	$(BIN)/pytest -n 0 tests/native
	OPENBLAS_NUM_THREADS=1 HAGANE_SANITIZE=thread TSAN_OPTIONS=report_bugs=1:halt_on_error=1 \
	LD_PRELOAD="$$(gcc -print-file-name=libtsan.so)" \
	$(BIN)/pytest -n 0 -k "not fork" tests/native/test_convolution.py tests/native/test_kernels.py \
	tests/native/test_session.py tests/native/test_safety_sessions.py \
	tests/native/test_safety_indices.py

demo: $(SETUP)
	$(BIN)/hagane demo

$(SETUP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --editable ".[dev,image,cluster,data,onednn,prob,rtl]"
	touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
