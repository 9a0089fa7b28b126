"""Run PyTorch's tests of ``torch.compile`` and TorchScript with ``hagane.compile`` in their place.

``FOLDER`` holds a source tree of PyTorch, whose tests are imported unchanged::

    python tests/outside/torch_compile.py FOLDER [test/dynamo/test_misc.py ...] [--only TEXT]

``--inductor`` takes the tests of its compiler (``inductor_tools.py``) in the place of these.

Each test runs twice: first with plain functions, which tells the tests that this PyTorch and this
way of running them pass, then with compiled ones. Counters of graphs and operators, which are
PyTorch's own, equal everything. Prints the tests that fail with compiled functions alone, and those
of which a function ran in Python with the reason, and counts; status 1 if one failed. Needs
``expecttest``; the tests of 2.6 run with PyTorch 2.13.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib
import importlib.util
import io
import re
import signal
import subprocess
import sys
import unittest
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import inductor_tools

SECONDS = 25
FILES = [
    *(f"test/dynamo/test_{name}.py" for name in (
        "functions", "misc", "repros", "modules", "unspec", "subgraphs", "ctx_manager",
        "exceptions", "global", "model_output", "decorators", "input_attr_tracking",
        "skip_non_tensor", "reconstruct", "interop", "higher_order_ops",
    )),
    *(f"test/jit/test_{name}.py" for name in (
        "list_dict", "builtins", "class_type", "dataclasses", "enum", "hash", "isinstance",
         "misc", "models", "module_containers", "op_decompositions", "pdt", "slice",
        "string_formatting", "types", "union", "union_pep604", "with", "unsupported_ops",
    )),
]  # fmt: skip


class Everything:
    """Equals, and orders before and behind, all there is: a count that does not matter."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Everything:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def _itself(self, *_: Any) -> Everything:
        return self

    def _true(self, *_: Any) -> bool:
        return True

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __iadd__ = __getitem__ = __call__ = _itself
    __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = _true

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __index__(self) -> int:
        return 0

    def __setitem__(self, key: object, value: object) -> None:
        """Ignore it."""


class Counting:
    """Stands for PyTorch's counters of graphs."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Ignore the backend."""

    def __getattribute__(self, name: str) -> Any:
        special = name.startswith("__") or name == "clear"
        return object.__getattribute__(self, name) if special else Everything()

    def __setattr__(self, name: str, value: object) -> None:
        """Ignore it."""

    def clear(self) -> None:
        """Ignore it."""

    def __call__(self, graph: Any, _: Any) -> Any:
        return graph


class Compiler:
    """Compiles functions in the place of ``torch.compile``, or leaves them as they are.

    Attributes:
        is_on: Whether it compiles.
        made: What it compiled for the present test.
    """

    def __init__(self) -> None:
        self.is_on = False
        self.made: list[weakref.ref[Any]] = []  # (tests of memory look whether they are gone)

    def of(self, function: Any, dynamic: object = None) -> Any:
        """Return a compiled function."""
        import hagane

        if not self.is_on or not callable(function) or isinstance(function, type):
            return function
        compiled = hagane.compile(function, dynamic=True if dynamic else None)
        self.made.append(weakref.ref(compiled))
        return compiled

    def compile(self, model: Any = None, *_: Any, dynamic: object = None, **__: Any) -> Any:
        """Stand for ``torch.compile`` and ``torch.jit.script``."""
        if model is None:
            return lambda found: self.of(found, dynamic)
        return self.of(model, dynamic)

    def optimize(self, *_: Any, dynamic: object = None, **__: Any) -> Any:
        """Stand for ``torch._dynamo.optimize``."""
        return lambda found: self.of(found, dynamic)

    def check(self, test: Any, function: Any, inputs: Any = (), *_: Any, **settings: Any) -> Any:
        """Stand for ``checkScript`` of the tests of TorchScript: two runs beside the original."""
        if isinstance(function, str):
            raise unittest.SkipTest("a program that is a text of TorchScript")
        bounds = {name: settings.get(name) or 1e-4 for name in ("atol", "rtol")}
        expected = function(*copy.deepcopy(inputs))
        compiled = self.of(function)
        for _again in range(2):
            found = compiled(*copy.deepcopy(inputs))
            test.assertIs(type(expected), type(found))  # noqa: PT009
            if expected is not None:
                test.assertEqual(expected, found, **bounds)  # noqa: PT009
        return compiled

    def standard(self, test: Any, fn: Any, nargs: int, *_: Any, **__: Any) -> None:
        """Stand for ``standard_test`` of the tests of ``torch.compile``."""
        import torch
        from torch._dynamo.utils import same

        del test
        for seed in range(2):
            torch.manual_seed(seed)
            inputs = [torch.randn(10, 10) for _ in range(nargs)]
            copies = [x.clone() for x in inputs]
            assert same(fn(*inputs), self.of(fn)(*copies))


def substitute(compiler: Compiler) -> None:
    """Put the compiler in the place of PyTorch's."""
    import torch
    import torch._dynamo.testing as tools
    from torch.testing._internal.jit_utils import JitTestCase

    for name in ("CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs",
                 "AotEagerAndRecordGraphs", "InductorAndRecordGraphs"):  # fmt: skip
        setattr(tools, name, Counting)
    torch.compile = compiler.compile
    torch._dynamo.optimize = torch._dynamo.optimize_assert = compiler.optimize
    torch._dynamo.eval_frame.optimize = compiler.optimize
    tools.standard_test = compiler.standard

    def checked(test: Any, *given: Any, **named: Any) -> Any:
        return compiler.check(test, *given, **named)

    JitTestCase.checkScript = JitTestCase.checkModule = checked
    unittest.TestCase.assertExpectedInline = lambda *_, **__: None  # type: ignore[attr-defined]


def loaded(path: Path) -> ModuleType:
    """Import a file of tests; names that this PyTorch lacks do nothing."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    for _ in range(30):
        try:
            spec.loader.exec_module(module)
            break
        except ImportError as error:
            found = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
            if found is None:
                raise
            setattr(importlib.import_module(found[2]), found[1], _nothing)
    return module


def _nothing(found: Any = None, *_: Any, **__: Any) -> Any:
    return found if callable(found) else lambda other: other


def run(case: type[unittest.TestCase], name: str) -> tuple[str, str]:
    """Run a test; return ``ok``, ``skipped`` or ``failed``, and what is told of its failure."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"more than {SECONDS} s")

    result = unittest.TestResult()
    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        quiet = io.StringIO()
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            case(name).run(result)
    except BaseException as error:
        return "failed", repr(error)
    finally:
        signal.alarm(0)
    if result.skipped or result.expectedFailures:
        return "skipped", ""
    bad = [*result.failures, *result.errors]
    return ("failed", bad[0][1]) if bad else ("ok", "")


def compared(path: Path, only: str) -> Counter[str]:
    """Run the tests of a file; return how many there are of each kind."""
    import torch

    compiler, counts = Compiler(), Counter[str]()
    is_inductor = "inductor" in path.parts
    substitute(compiler)
    with contextlib.ExitStack() as stack:
        if "jit" in path.parts:
            stack.enter_context(mock.patch.object(torch.jit, "script", compiler.compile))
            stack.enter_context(mock.patch.object(torch.jit, "script_method", _nothing))
        if is_inductor:
            inductor_tools.substitute(Everything())
        module = loaded(path)
        if is_inductor:
            inductor_tools.settle(module, compiler, Everything())
        for case in [*vars(module).values()]:
            is_case = isinstance(case, type) and issubclass(case, unittest.TestCase)
            if not is_case or case.__module__ != path.stem:
                continue
            for name in unittest.defaultTestLoader.getTestCaseNames(case):
                left_out = any(
                    part in f"{case.__name__}.{name}" for part in inductor_tools.LEFT_OUT
                )
                if only in name and not (is_inductor and left_out):
                    counts[_tried(compiler, case, name)] += 1
    return counts


def _tried(compiler: Compiler, case: type[unittest.TestCase], name: str) -> str:
    import torch

    for compiler.is_on in (False, True):
        compiler.made.clear()
        torch.manual_seed(0)
        with warnings.catch_warnings(record=True) as noted:
            warnings.simplefilter("always")
            state, told = run(case, name)
        if state != "ok":
            break
    if not compiler.is_on:
        return "not run"
    if state != "ok":
        lines = told.partition("To execute this test")[0].strip().splitlines()[-4:]
        print(f"failed {case.__name__}.{name}\n    " + "\n    ".join(lines), flush=True)
        return "failed"
    notes = [str(one.message) for one in noted if " in Python: " in str(one.message)]
    if notes:
        print(f"in Python {case.__name__}.{name}: {notes[0].partition(' in Python: ')[2]}")
        return "in Python"
    found = [one() for one in compiler.made]
    is_used = any(one is None or one.captures for one in found)
    return "compiled" if is_used else "untouched"


def main() -> int:
    """Run the tests of the files, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("files", nargs="*", default=FILES)
    parser.add_argument("--only", default="", help="a part of the names of the tests to run")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--inductor", action="store_true", help="the tests of Inductor")
    given = parser.parse_args()
    if not given.one:
        failed = 0
        for name in inductor_tools.FILES if given.inductor else given.files:
            command = [sys.executable, __file__, str(given.folder), name, "--one"]
            failed |= subprocess.run([*command, "--only", given.only], check=False).returncode
        return failed
    rooms = ("test/dynamo", "test/inductor", "test")
    sys.path[:0] = [str(given.folder / room) for room in rooms]
    counts = compared(given.folder / given.files[0], given.only)
    print(f"{given.files[0]}: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return int(counts["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
