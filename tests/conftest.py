"""Settings of all tests: patience, Ctrl-C, progress, shares of tables, C that compiles."""

from __future__ import annotations

import gc
import os
import random
import re
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from hagane.machine import Compiler, NoCompiler, find_compiler
from tests.progress import Progress

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

# Eager calls are NumPy's: no process compiles beside the tests, and results do not change
os.environ.setdefault("HAGANE_EAGER", "off")

# Children of a fork leave what the tests before have dropped: objects of some libraries (pyslang)
# wait in their destructors for threads that a child does not have.
os.register_at_fork(before=gc.freeze, after_in_parent=gc.unfreeze)

# Background jobs and nohup ignore SIGINT, which Python and the processes that it starts inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)  # the terminal comes first
def pytest_configure(config: pytest.Config) -> None:
    """Show progress by the twentieth, and why tests are skipped."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(terminal))


@pytest.hookimpl(tryfirst=True)  # before the marks choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as long: a test's levels but one, most of the cases of tables."""
    tables: dict[tuple[Path, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and _TESTS in item.path.parents:
            tables[item.path, item.originalname].append(item)
    for (path, name), cases in tables.items():
        left = _at_one_level(cases, name)
        place = path.relative_to(_TESTS).as_posix()
        if len(left) > _FEW and place.startswith(_SHARED):
            share = 4 if len(left) <= _SHORT else 8
            share = 12 if place.startswith("models/") else share  # a model takes a second
            chosen = [case for case in left if crc32(case.name.encode()) % share == 0]
            left = chosen or left[:1]
        for case in set(cases) - set(left):
            case.add_marker(pytest.mark.long)


def _at_one_level(cases: Sequence[pytest.Function], name: str) -> list[pytest.Function]:
    """Return the cases at one level of vector instructions, which the test's name chooses."""
    called = [case for case in cases if hasattr(case, "callspec")]
    levels = {case: case.callspec.params.get("level") for case in called}
    names = sorted({level for level in levels.values() if isinstance(level, str)})
    if len(names) < 2:
        return list(cases)
    chosen = names[crc32(name.encode()) % len(names)]
    return [case for case in cases if levels.get(case, chosen) == chosen]


_TESTS = Path(__file__).parent
# Where a case takes long: kernels of many forms, models and their mistakes, operators, programs.
_SHARED = (
    *("native/", "models/", "ops/", "passes/", "capture/", "training/", "frontends/", "lexgen/"),
    *("nn/", "ship/", "runtime/", "prob/", "zoo/", "tools/", "cli/", "reviewing/"),
)
_FEW, _SHORT = 2, 8


def _begin_streams(name: str) -> int:
    """Begin the global streams of random numbers at a place of a name's own, and return it."""
    seed = crc32(name.encode())
    np.random.seed(seed)
    random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)
    return seed


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Let what a module draws when it is imported not depend on the modules before it."""
    _begin_streams(collector.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin the streams of random numbers, the module's too, at a place of each test's own.

    A test's numbers then do not depend on the tests that its worker ran before.
    """
    seed = _begin_streams(item.nodeid)
    for value in vars(getattr(item, "module", None) or object).values():
        if isinstance(value, np.random.Generator):
            value.bit_generator.state = type(value.bit_generator)(seed).state


@pytest.fixture(autouse=True)
def _generated_c_compiles(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test in which the machine's compiler found an error in C.

    A session would then run on its reference kernels, or call by the longer way, and results would
    be right all the same. Tests of wrong C have the mark ``wrong_c``; a compiler that a test has
    made to fail is not the machine's.
    """
    errors: list[str] = []
    call = Compiler.call

    def noted(self: Compiler, arguments: Sequence[str], made: Path) -> None:
        try:
            call(self, arguments, made)
        except NoCompiler as error:
            text = str(error)
            if self == _COMPILER and _ERROR.search(text) and "No space left on device" not in text:
                errors.append(text)
            raise

    monkeypatch.setattr(Compiler, "call", noted)
    yield
    if errors and request.node.get_closest_marker("wrong_c") is None:
        pytest.fail(f"C of hagane's does not compile: {errors[0]}", pytrace=False)


# "kernels.c:3:14: error: ..."; a lost file has no such place.
_ERROR = re.compile(r"\.[ch]:\d+:\d+: error:")


@pytest.fixture
def without_ziglang(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the compiler among Python's packages."""
    monkeypatch.setitem(sys.modules, "ziglang", None)


def _machines_compiler() -> Compiler | None:
    try:
        return find_compiler(dict(os.environ))
    except NoCompiler:
        return None


_COMPILER = _machines_compiler()
