"""Complex arguments, results, and values of branches and loops."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch

import hagane

RANDOM = np.random.default_rng(0)


def drawn(*shape: int, dtype: Any = np.complex128) -> Any:
    return (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(dtype)


def moved(z: Any) -> Any:
    return {"sum": z * 2 + 1j, "parts": (z.real, np.abs(z), z.conj())}


def branched(z: Any) -> Any:
    if z.real.sum() > 0:  # noqa: SIM108
        w = z * z
    else:
        w = z + 1
    return w


def iterated(z: Any, n: Any) -> Any:
    w = z
    for _ in range(n):
        w = w * w + z
    return w


def escaped(z: Any) -> Any:
    n = 0
    while abs(z) < 2 and n < 30:
        z = z * z + 0.3
        n += 1
    return n, z


def masked(c: Any) -> Any:
    z = np.zeros(c.shape, complex)
    for _ in range(4):
        near = np.abs(z) < 2
        z[near] = z[near] ** 2 + c[near]
    return z


def of_numbers(x: Any) -> Any:
    turn = complex(x, 2.0) * 1j
    still = complex(3, 4)
    return turn, still.real + turn.imag, 2j + 1


def functions(z: Any) -> Any:
    return (
        np.sqrt(z), np.sin(z), np.cosh(z), np.log10(z), z**-2, z**0.5, z == z.conj(), np.isnan(z),
        z.astype(np.complex64), z.real.astype(complex),
    )  # fmt: skip


def composed(z: Any) -> Any:
    return (
        np.array([z[0], 1j, 2]), np.array([1 + 2j, 3]) * z[0], np.outer(z, z), np.round(z, 1),
        z / np.linalg.norm(z), np.fft.fft([1, 2, 3]), np.angle([1 + 1j, 2]), np.zeros(2, complex),
        np.zeros_like(z, dtype=np.float64), np.zeros_like(z, float), np.ones_like(z),
    )  # fmt: skip


def with_numbers(z: Any, n: Any) -> Any:
    half = float(n) / 2
    return z / n**2, z * half, z - z.shape[0]


def turned(z: torch.Tensor) -> Any:
    return torch.fft.fft(z), z * torch.view_as_complex(torch.ones(3, 2))


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    return [y for x in value for y in flat(x)] if isinstance(value, list | tuple) else [value]


def pairs(array: Any) -> Any:
    array = np.asarray(array)
    return np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array


@pytest.mark.parametrize(
    ("program", "types", "arguments"),
    [
        (moved, ["complex64[n, 2]"], [drawn(3, 2, dtype=np.complex64)]),
        (branched, ["complex128[n]"], [np.array([1 + 1j, 2])]),
        (branched, ["complex128[n]"], [np.array([-1 + 1j, -2, 3j])]),
        (iterated, ["complex128[n]", "int64"], [drawn(3) * 0.3, np.int64(3)]),
        (iterated, ["complex128[n]", "int64"], [drawn(2), np.int64(0)]),
        (escaped, ["complex128"], [np.complex128(0.1 + 0.2j)]),
        (masked, ["complex128[n]"], [drawn(6)]),
        (of_numbers, ["float64"], [np.float64(0.5)]),
        (functions, ["complex128[n]"], [np.array([1 + 2j, -3 + 0.5j, -2 - 1j, 4, 0.5j])]),
        (with_numbers, ["complex128[n]", "int64"], [drawn(3), np.int64(3)]),
        (composed, ["complex128[n]"], [drawn(3)]),
        (turned, ["complex64[2, 3]"], [torch.from_numpy(drawn(2, 3, dtype=np.complex64))]),
    ],
)
def test_complex_numbers_are_pairs_in_a_last_axis(program: Any, types: Any, arguments: Any) -> None:
    model = hagane.capture(program, *types)
    names = [str(value.name) for value in model.graph.inputs]
    session = hagane.InferenceSession(model)
    want = flat(program(*copy.deepcopy(arguments)))
    feeds = dict(zip(names, map(pairs, arguments), strict=True))
    for ours, theirs in zip(session.run(None, feeds), want, strict=True):
        np.testing.assert_allclose(ours, pairs(theirs), rtol=1e-5, atol=1e-6)

    compiled = hagane.compile(program, fullgraph=True)
    for mine, theirs in zip(flat(compiled(*copy.deepcopy(arguments))), want, strict=True):
        assert isinstance(mine, type(theirs))
        assert np.asarray(mine).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


def test_a_complex_argument_changes_in_place() -> None:
    def program(z: Any) -> Any:
        z[0] = 1j
        z *= 2
        return z.sum()

    z = drawn(4)
    want = z.copy()
    total = program(want)
    found = hagane.compile(program, fullgraph=True)(z)
    np.testing.assert_allclose(z, want)
    np.testing.assert_allclose(found, total)


def test_a_type_that_drops_imaginary_parts_is_refused() -> None:
    with pytest.raises(
        hagane.errors.CaptureError, match=r"drops the imaginary parts; take x\.real"
    ):
        hagane.capture(lambda z: z.astype(np.float64), "complex128[n]")


def test_an_input_that_a_loop_reads_first_is_read_behind_it() -> None:
    def program(z: Any, n: Any) -> Any:
        total = 0.0
        for _ in range(n):
            total += z.real.sum()
        return total + z.imag.sum()

    session = hagane.InferenceSession(hagane.capture(program, "complex128[k]", "int64"))
    z = drawn(3)
    for n in (0, 2):
        (found,) = session.run(None, {"z": pairs(z), "n": np.array(n)})
        np.testing.assert_allclose(found, program(z, n))


def test_later_calls_take_complex_arrays_in_any_order_of_memory() -> None:
    compiled = hagane.compile(lambda a, b: np.dot(a, b), fullgraph=True)
    for kind in (np.complex128, np.complex64):
        a, b = drawn(3, dtype=kind), drawn(3, dtype=kind)
        for left, right in ((a, b), (b, a), (a[::-1], b), (a, b[::-1])):
            np.testing.assert_allclose(compiled(left, right), np.dot(left, right), 1e-5)
