"""Original and graph, run on drawn inputs and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from hagane.capturing.branches import Branches
from hagane.capturing.tensors import in_parts
from hagane.errors import KernelError
from hagane.frontends.python.values.type_text import TensorText, parse_type
from hagane.runtime import GraphOptimizationLevel, InferenceSession, SessionOptions
from hagane.symbolic import evaluate, symbols_of

_SIZES = (2, 1, 3, 5)  # named sizes are drawn from these


@dataclass(frozen=True, slots=True)
class Verified:
    """Texts of runs of an original and of its graph.

    Attributes:
        difference: How they differ; empty if they do not.
        runs: How many runs there were in which the original returned.
        branches: How many branches the graph has.
        unreached: The sides of branches that no run took, with file and line.
    """

    difference: str
    runs: int = 0
    branches: int = 0
    unreached: tuple[str, ...] = ()


def difference(
    original: Any, model: ir.Model, types: Mapping[str, str], *, draws: int = 12, seed: int = 0
) -> str:
    """Run original and graph on drawn inputs; return how they differ, empty if they do not.

    Args:
        original: The function or model.
        model: Its graph.
        types: The types of its arguments by name, as text.
        draws: How many inputs are drawn; sizes change from one to the next, and floats are drawn
            around zero, above and below it, so that branches go both ways.
        seed: Of the random numbers.
    """
    return verified(original, model, types, draws=draws, most=draws, seed=seed).difference


def verified(
    original: Any,
    model: ir.Model,
    types: Mapping[str, str],
    *,
    draws: int = 12,
    most: int = 150,
    seed: int = 0,
) -> Verified:
    """Run original and graph on drawn inputs, until each branch has gone both ways.

    Inputs for which the original raises an error say nothing about the graph.

    Args:
        original: The function or model.
        model: Its graph.
        types: The types of its arguments by name, as text.
        draws: How many inputs are drawn at least; sizes change from one to the next.
        most: How many are drawn at most while sides of branches are left.
        seed: Of the random numbers.
    """
    random = np.random.default_rng(seed)
    session = InferenceSession(model)
    branches = Branches(model)
    plain = GraphOptimizationLevel.ORT_DISABLE_ALL
    noting = InferenceSession(
        model, SessionOptions(backends=[branches], graph_optimization_level=plain)
    )
    names = {str(value.name) for value in model.graph.inputs}
    runs, raised = 0, ""
    for number in range(most):
        if number >= draws and not any(branches.left()):
            break
        given = _drawn(types, number, random)
        feeds = {name: array for name, array in given.items() if name in names}
        shapes = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in given.items())
        theirs, after = _called(original, given)
        if isinstance(theirs, Exception):
            raised = f"with {shapes}: the original {_ended(theirs)}"
            continue
        runs += 1
        for engine in (session, noting) if branches.count else (session,):
            told = _compared(engine, feeds, theirs, after)
            if told:
                return Verified(f"with {shapes}: {told}", runs, branches.count)
    if not runs:
        return Verified(f"no drawn input is one that the original takes; {raised}")
    return Verified("", runs, branches.count, tuple(branches.left()))


def _compared(
    session: InferenceSession, feeds: Mapping[str, Any], theirs: Any, after: Mapping[str, Any]
) -> str:
    """Return the difference of a run from the original's results, and from its new arguments."""
    try:
        ours = session.run(None, {name: in_parts(array) for name, array in feeds.items()})
    except KernelError as error:
        return f"the original {_ended(theirs)}, the graph {_ended(error)}"
    names = [output.name for output in session.get_outputs()]
    pairs = [*zip(names, _flat(theirs), ours, strict=False)]
    made = dict(zip(names, ours, strict=True))
    pairs += [(f"{n}.new", a, made[f"{n}.new"]) for n, a in after.items() if f"{n}.new" in made]
    for name, a, b in pairs:
        told = _unlike(in_parts(np.asarray(a)), np.asarray(b))
        if told:
            return f"output '{name}': {told}"
    return ""


def _drawn(
    types: Mapping[str, str], number: int, random: np.random.Generator
) -> dict[str, np.ndarray[Any, Any]]:
    sizes: dict[str, int] = {}
    given = {}
    for name, text in types.items():
        type_ = parse_type(text)
        if not isinstance(type_, TensorText):
            given[name] = np.array(int(random.integers(1, 6)))
            continue
        shape = []
        for axis in type_.axes:
            for symbol in sorted(symbols_of(axis.size)) if axis.size is not None else ():
                sizes.setdefault(symbol, _SIZES[(number + len(sizes)) % len(_SIZES)])
            shape.append(1 if axis.size is None else int(str(evaluate(axis.size, sizes))))
        dtype = type_.dtypes[0].numpy() if type_.dtypes else np.dtype(np.float32)
        given[name] = _array(dtype, tuple(shape), number, random)
    return given


def _array(
    dtype: np.dtype[Any], shape: tuple[int, ...], number: int, random: np.random.Generator
) -> np.ndarray[Any, Any]:
    if dtype.kind == "c":
        part = np.empty(0, dtype).real.dtype
        real, imaginary = (_array(part, shape, number, random) for _ in range(2))
        return np.asarray(real + 1j * imaginary, dtype)
    wide = number >= 12  # what ordinary numbers left: large, negative, equal and sorted ones
    if dtype.kind in "iu":
        low, high = random.choice([(0, 4), (0, 2), (-4, 5), (0, 40)]) if wide else (0, 4)
        return random.integers(max(low, 0) if dtype.kind == "u" else low, high, shape).astype(dtype)
    if dtype.kind == "b":
        return random.random(shape) < (random.choice([0.0, 0.1, 0.9, 1.0]) if wide else 0.5)
    centre, scale = (0.0, 1.5, -1.5)[number % 3], 1.0
    if wide:
        centre, scale = random.choice([0, 1, -1, 20, -20]), random.choice([0, 0.01, 1, 30])
    found = (random.standard_normal(shape) * scale + centre).astype(dtype)
    return np.sort(found) if wide and shape and random.random() < 0.2 else found


def _called(
    original: Any, given: Mapping[str, np.ndarray[Any, Any]]
) -> tuple[Any, dict[str, np.ndarray[Any, Any]]]:
    """Return the original's result or error, and its arguments after the call."""
    values: dict[str, Any] = {name: array.copy() for name, array in given.items()}
    if _is_torch(original):
        import torch

        values = {name: torch.from_numpy(np.array(array)) for name, array in given.items()}
    try:
        found = original(**values)
    except Exception as error:
        return error, {}
    return found, dict(zip(values, _flat(values), strict=True))


def _is_torch(original: Any) -> bool:
    owner = getattr(original, "__self__", original)
    if any(base.__module__.startswith("torch.") for base in type(owner).__mro__):
        return True
    names = getattr(original, "__globals__", {})
    used = getattr(getattr(original, "__code__", None), "co_names", ())
    methods = {"numpy", "np"} & {*used}
    return any(getattr(v, "__name__", "").startswith("torch") for v in names.values()) and not (
        methods
    )


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for item in value:
            yield from _flat(item)
    elif hasattr(value, "detach"):
        yield value.detach().cpu().numpy()
    elif value is not None and not isinstance(value, str):
        yield value


def _ended(value: Any) -> str:
    if isinstance(value, Exception):
        return f"raises {type(value).__name__}: {str(value)[:200]}"
    return "returns"


def _unlike(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> str:
    if expected.shape != found.shape:
        return f"the original has shape {list(expected.shape)}, the graph {list(found.shape)}"
    if not np.allclose(
        expected.astype(np.float64), found.astype(np.float64), rtol=1e-3, atol=1e-4, equal_nan=True
    ):
        worst = float(np.max(np.abs(expected.astype(np.float64) - found.astype(np.float64))))
        return f"the values differ by up to {worst:.3g}"
    return ""


__all__ = ["Verified", "difference", "verified"]
