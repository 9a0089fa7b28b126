# Each target does its own set-up in .venv; a fresh machine needs Python 3.11, make and a C compiler.
# Bytecode is written as modules are imported, once for all processes: pip would compile ten times as much.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.installed

# Touched once the wheel of the newest sources has been tried.
WHEEL := .venv/.wheel
SOURCES := pyproject.toml $(shell find src -name "*.py" -o -name "*.[ch]")

.PHONY: test test-all lint types layers tests conformance wheel sanitize fuzz demo clean toolchains checks

test: checks tests

# One core tries the wheel, the other installs and reads types and layers; continuous integration adds toolchains.
checks:
	$(MAKE) --jobs=2 --output-sync $(FIRST) $(SETUP) $(WHEEL) lint types layers

lint: $(SETUP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(SETUP)
	$(BIN)/mypy

layers: $(SETUP)
	$(BIN)/lint-imports

# Kernels are compiled with -O1, in a third of the time; "make test-all" takes the usual flags, and the tests
# that CONTRIBUTING.md says are left out here.
tests: $(SETUP)
	HAGANE_CFLAGS=-O1 $(BIN)/pytest -n auto --dist worksteal -m "not long"

conformance: $(SETUP)
	HAGANE_CFLAGS=-O1 $(BIN)/python -W ignore tests/outside/conformance.py

wheel: $(WHEEL)

$(WHEEL): tests/outside/wheel.py $(SOURCES)
	$(PYTHON) tests/outside/wheel.py
	mkdir -p $(@D)
	touch $@

# The conformance cases are among the tests; the script counts them beside ONNX Runtime.
test-all: test conformance sanitize
	$(BIN)/pytest -n auto
	$(BIN)/python tests/outside/wheel.py --all

# Generated kernels and the engine under AddressSanitizer and UndefinedBehaviorSanitizer, which take
# a share of the examples that long tests draw, then under ThreadSanitizer. That one forbids a child
# of several threads to start one, takes the threads of OpenBLAS, which it cannot see into, for
# races, and lets no shell run, which the tests of broken compilers need. Emulated matrix tiles may
# take memory in the handler of a fault: it never comes in the middle of taking some.
ASAN := HAGANE_SANITIZE=address,undefined ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)"
TSAN := HAGANE_SANITIZE=thread OPENBLAS_NUM_THREADS=1 \
	TSAN_OPTIONS=halt_on_error=1:report_signal_unsafe=0:suppressions=tests/native/thread_sanitizer.supp \
	LD_PRELOAD="$$(gcc -print-file-name=libtsan.so)"

sanitize: $(SETUP)
	$(ASAN) HAGANE_EXAMPLES=1 $(BIN)/pytest -n 0 -m "not long" tests/native
	$(ASAN) HAGANE_EXAMPLES=0.02 $(BIN)/pytest -n 0 -m long tests/native
	$(TSAN) HAGANE_EXAMPLES=0.3 $(BIN)/pytest -n 0 -m "not long" -k "not fork and not child" \
	  --ignore=tests/native/test_safety_machine.py tests/native

# Drawn graphs for hours, by all engines: FUZZ times the number of examples of a long test.
FUZZ ?= 10
fuzz: $(SETUP)
	HAGANE_CFLAGS=-O1 HAGANE_EXAMPLES=$(FUZZ) $(BIN)/pytest -n auto -m long \
	  tests/native/test_drawn_sessions.py tests/native/test_shapes_graphs.py \
	  tests/native/test_drawn_networks.py tests/native/test_mutated_nodes.py

demo: $(SETUP)
	$(BIN)/hagane demo

# Compilers of other languages and an emulator for tests of builds, which do without where they lack.
toolchains:
	$(PYTHON) tests/outside/toolchains.py

$(SETUP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev,image,chainer,cluster,compiler,data,lsp,onednn,prob,rl,rtl]"
	touch $@

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
