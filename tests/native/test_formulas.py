"""Formulas of sizes as C: shared terms, the same numbers as Python's."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hagane.machine import NoCompiler, find_compiler
from hagane.native.kernels.formula import FLOOR, Formulas
from hagane.native.kernels.kernel import Body
from hagane.symbolic import Dim, ceildiv, maximum, minimum, number_of, symbol


def nested(depth: int) -> Dim:
    """Return a size whose text without shared terms doubles with each level."""
    value: Dim = symbol("n") * symbol("m")
    for level in range(depth):
        value = maximum(3, ceildiv(value + 7 * level, 3)) + minimum(value, 90) % 5
    return value


def test_the_text_of_nested_terms_grows_by_their_number() -> None:
    def length(depth: int) -> int:
        body = Body()
        formulas = Formulas(body, {"n": "n0", "m": "n1"})
        last = formulas.text(nested(depth)) + formulas.bound(nested(depth))
        return len(body.code()) + len(last)

    assert length(6) < 2.5 * length(3)
    assert length(6) < 10_000


def compiled(values: list[Dim], folder: Path) -> Callable[[int, int], list[int]]:
    """Return a function that computes sizes by C, with those of ``n`` and ``m``."""
    body = Body()
    formulas = Formulas(body, {"n": "n0", "m": "n1"})
    for i, value in enumerate(values):
        text = formulas.text(value)
        body.add(f"out[{i}] = {text};")
    inner = "\n".join(body.lines).replace("KERNEL_", "")
    source = folder / "formulas.c"
    source.write_text(
        "#include <stdint.h>\n"
        + FLOOR.replace("KERNEL_", "")
        + "\nvoid sizes(int64_t n0, int64_t n1, int64_t *out) {\n"
        + inner
        + "}\n"
    )
    library = folder / "formulas.so"
    try:
        find_compiler().call(["-shared", "-fPIC", str(source), "-o", str(library)], library)
    except NoCompiler as error:
        pytest.skip(f"no compiler: {error}")
    sizes = ctypes.CDLL(str(library)).sizes

    def found(n: int, m: int) -> list[int]:
        out = (ctypes.c_int64 * len(values))()
        sizes(ctypes.c_int64(n), ctypes.c_int64(m), out)
        return list(out)

    return found


def test_the_numbers_are_those_of_python(tmp_path: Path) -> None:
    values = [nested(depth) for depth in range(1, 6)]
    found = compiled(values, tmp_path)
    draw = random.Random(0)
    for _ in range(50):
        n, m = draw.randrange(0, 60), draw.randrange(1, 60)
        expected = [number_of(value, {"n": n, "m": m}) for value in values]
        assert found(n, m) == expected
