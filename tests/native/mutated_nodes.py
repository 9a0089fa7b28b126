"""Cases of one operator, mutated: types, sizes, attributes, contents, constants and outputs.

A mutation need not make sense: engines then have to refuse it alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, helper, numpy_helper

from tests.native.node_cases import Case

_REAL = ("float32", "float64", "float16")
_WHOLE = ("int64", "int32", "int8", "uint8", "int16", "uint16", "uint32", "uint64")
# Numbers that mean something else than a choice: element types, and counts that weights follow.
_KEPT = ("to", "dtype", "output_dtype", "stash_type", "K", "N", "bits")
# Yes or no; ONNX Runtime takes other numbers for either.
_FLAGS = re.compile(
    r"keepdims|count_include|do_rotary|unidirectional|is_|_mode$|trans|smooth|interleaved"
)
_SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 33)
_MOST = 60_000
"""Elements of the largest input: reference kernels are slow."""
_FEW = 16
"""Elements of an array of whole numbers that may be axes, bounds or counts."""


@dataclass(slots=True)
class Mutated:
    """A model, its outputs, and feeds of several sizes, the first of which is the case's.

    ``changes`` says what was done to the case.
    """

    model: onnx.ModelProto
    outputs: list[str]
    feeds: list[dict[str, np.ndarray]]
    changes: list[str] = field(default_factory=list)


def mutated(case: Case, seed: int) -> Mutated:
    """Return a mutation of a case."""
    random = np.random.default_rng(seed)
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = min(model.ir_version, 10)  # ONNX Runtime's newest
    made = Mutated(model, [value.name for value in model.graph.output], [dict(case.feed)])
    made.changes.append(case.name)
    if random.random() < 0.35:
        _another_type(made, random)
    _other_attributes(made, random)
    if random.random() < 0.15:
        _without_an_input(made, random)
    given = made.feeds[0]
    for _ in range(3):
        sizes = _other_sizes(given, case.constant, random)
        made.feeds.append({name: _content(made, name, sizes[name], random) for name in given})
    _inputs(made, case.constant, random)
    if len(made.outputs) > 1 and random.random() < 0.4:
        _fewer_outputs(made, random)
    _open_outputs(made)
    return made


def _another_type(made: Mutated, random: np.random.Generator) -> None:
    """Give the inputs of one type another one."""
    feed = made.feeds[0]
    kinds = sorted({array.dtype.name for array in feed.values() if array.dtype.kind in "fiu"})
    if not kinds or any(_bodies(node) for node in made.model.graph.node):
        return  # bodies declare types of their own
    old = str(random.choice(kinds))
    new = str(random.choice(_REAL if old.startswith("f") or random.random() < 0.2 else _WHOLE))
    for name, array in feed.items():
        if array.dtype.name == old:
            with np.errstate(all="ignore"):
                feed[name] = array.astype(new)
    made.changes.append(f"{old} as {new}")


def _bodies(node: onnx.NodeProto) -> bool:
    return any(each.type == AttributeProto.GRAPH for each in node.attribute)


def _other_attributes(made: Mutated, random: np.random.Generator) -> None:
    """Change numbers of attributes, or leave attributes out."""
    for node in made.model.graph.node:
        for attribute in list(node.attribute):
            if attribute.name in _KEPT:
                continue
            kind = random.random()
            if kind < 0.12 and attribute.type == AttributeProto.INT:
                choices = (
                    (0, 1) if _FLAGS.search(attribute.name) else (0, 1, -1, 2, attribute.i + 1)
                )
                attribute.i = int(random.choice(choices))
            elif kind < 0.06 and attribute.type == AttributeProto.INTS and attribute.ints:
                at = int(random.integers(len(attribute.ints)))
                attribute.ints[at] = int(random.choice([0, 1, -1, 2, attribute.ints[at] + 1]))
            elif kind < 0.06 and attribute.type == AttributeProto.FLOAT:
                attribute.f = float(random.choice([0, 1, -0.5, 3]))
            elif kind > 0.97 and attribute.type != AttributeProto.GRAPH:
                node.attribute.remove(attribute)
                made.changes.append(f"without {attribute.name}")
                continue
            else:
                continue
            made.changes.append(f"{attribute.name}={helper.get_attribute_value(attribute)}")


def _without_an_input(made: Mutated, random: np.random.Generator) -> None:
    """Leave out an input behind the first: an optional one, or one that is missed."""
    graph = made.model.graph
    names = list(made.feeds[0])
    if len(names) < 2 or len(graph.node) != 1:
        return
    gone = str(random.choice(names[1:]))
    node = graph.node[0]
    node.input[:] = ["" if name == gone else name for name in node.input]
    while node.input and not node.input[-1]:
        del node.input[-1]
    del made.feeds[0][gone]
    made.changes.append(f"no input {gone}")


def _other_sizes(
    feed: Mapping[str, np.ndarray], constant: frozenset[str], random: np.random.Generator
) -> dict[str, list[int]]:
    """Return other sizes: axes of one size mostly stay of one size."""
    sizes: dict[int, int] = {}
    found = {}
    for name, array in feed.items():
        found[name] = list(array.shape)
        if name in constant or (_may_be_bounds(array) and len(feed) > 1):
            continue
        for axis, size in enumerate(array.shape):
            if size not in sizes:
                kept = size <= 1 or random.random() < 0.4
                sizes[size] = size if kept else int(random.choice((*_SIZES, size + 1, 2 * size)))
            found[name][axis] = sizes[size]
            if random.random() < 0.01:
                found[name][axis] = int(random.choice(_SIZES))
    if any(np.prod([max(1, n) for n in shape]) > _MOST for shape in found.values()):
        return {name: list(array.shape) for name, array in feed.items()}
    return found


def _may_be_bounds(array: np.ndarray) -> bool:
    return array.dtype.kind in "iu" and array.ndim <= 1 and array.size <= _FEW


def _content(
    made: Mutated, name: str, shape: Sequence[int], random: np.random.Generator
) -> np.ndarray:
    """Return numbers of an input in another order and number, sometimes special ones."""
    array = made.feeds[0][name]
    count = int(np.prod(shape))
    if array.size == 0 or count == 0:
        return np.zeros(shape, array.dtype)
    if list(array.shape) == list(shape) and (_may_be_bounds(array) or random.random() < 0.3):
        found = array.copy()
    else:
        found = array.reshape(-1)[random.integers(0, array.size, count)].reshape(shape)
    kind = random.random()
    if array.dtype.kind in "iu" and kind < 0.08:
        limits = np.iinfo(array.dtype)
        near = int(found.flat[0])
        special = [0, 1, near + 1, near - 1, limits.min, limits.max, -1, 2]
        found.flat[int(random.integers(count))] = random.choice(
            np.array([n for n in special if limits.min <= n <= limits.max], array.dtype)
        )
    elif array.dtype.kind == "f" and kind < 0.08 and array.ndim:  # others are scales
        special = [0, np.inf, -np.inf, np.nan, -1, 0.5, 1e4]
        found.flat[int(random.integers(count))] = random.choice(np.array(special, array.dtype))
    return found


def _inputs(made: Mutated, constant: frozenset[str], random: np.random.Generator) -> None:
    """Make inputs constants, or declare them with sizes, names of sizes, or neither."""
    graph, feeds = made.model.graph, made.feeds
    del graph.input[:]
    for name, array in list(feeds[0].items()):
        same = all(
            feed[name].shape == array.shape and np.array_equal(feed[name], array) for feed in feeds
        )
        small = array.dtype.kind in "iu" and array.ndim <= 1
        if (name in constant and same) or (same and small and random.random() < 0.4):
            graph.initializer.append(numpy_helper.from_array(array, name))
            for feed in feeds:
                del feed[name]
            continue
        shapes = [feed[name].shape for feed in feeds]
        sizes: list[str | int] | None = [f"{name}_{axis}" for axis in range(array.ndim)]
        form = random.random()
        if sizes is not None and form < 0.2:  # those that do not change, as numbers
            for axis, size in enumerate(array.shape):
                if all(shape[axis] == size for shape in shapes):
                    sizes[axis] = size
        elif form > 0.9:
            sizes = None
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(helper.make_tensor_value_info(name, kind, sizes))


def _fewer_outputs(made: Mutated, random: np.random.Generator) -> None:
    """Leave some outputs out, but of a Split, which has as many as there are parts."""
    if any(node.op_type == "Split" for node in made.model.graph.node):
        return
    many = int(random.integers(1, len(made.outputs)))
    gone = set(random.choice(made.outputs, many, replace=False))
    made.outputs = [name for name in made.outputs if name not in gone]
    for node in made.model.graph.node:
        node.output[:] = ["" if name in gone else name for name in node.output]
        while node.output and not node.output[-1]:
            del node.output[-1]
    made.changes.append(f"without {', '.join(sorted(gone))}")


def _open_outputs(made: Mutated) -> None:
    """Leave the types of outputs to inference: mutations changed them."""
    graph: GraphProto = made.model.graph
    kept = [value for value in graph.output if value.name in made.outputs]
    del graph.output[:]
    for value in kept:
        if value.type.WhichOneof("value") in ("tensor_type", None):
            value.ClearField("type")
        graph.output.append(value)
