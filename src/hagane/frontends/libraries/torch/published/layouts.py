"""How the results of PyTorch's functions lie in memory, by the strides of their operands.

The rules lie in ``layouts.txt``, which ``measuring.py`` writes from runs of an installed PyTorch: a
line for each function, method or layer with a letter for each result.

====== =========================================================================================
letter strides of the result
====== =========================================================================================
``c``  without gaps, in the order of the axes
``p``  those of the first operand, without gaps
``k``  without gaps, in the order that an iterator over all operands has for the axes
``m``  ``channels_last`` if the first operand lies so, otherwise as ``c``
``n``  the same if any operand lies so
``a``  the same if all operands lie so
``w``  as ``m``, and of three axes, the last two swapped if those of the first operand are
``o``  without gaps, in the order of the first operand's axes
``f``  without gaps, the last two axes swapped: matrices by columns
``-``  one axis or none
``?``  none of these; taken for ``c`` where no operator inside says otherwise
====== =========================================================================================

The order of an iterator is that of PyTorch's TensorIterator (aten/src/ATen/TensorIterator.cpp): an
insertion sort of the axes, in which operands that are repeated along one of two axes do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from hagane.frontends.libraries.memory.viewing import is_view
from hagane.frontends.libraries.torch.memory import FORMATS
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.memory import note_in_order
from hagane.frontends.python.values.strides import (
    Strides,
    by_format,
    dense,
    in_order,
    is_one,
    iterated,
    lie,
    order_of,
    strides_of,
)
from hagane.frontends.python.values.values import (
    ListRef,
    Tensor,
    Value,
)
from hagane.symbolic import Dim, definitely_equal

# Operators of Python whose names differ from those of the functions.
_OPERATORS = {
    "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}  # fmt: skip
_FORMATS = {len(axes): axes for axes in FORMATS.values()}


def lay(
    core: Core, name: str, arguments: Sequence[Value], keywords: Mapping[str, Value], made: Value
) -> None:
    """Note how the results of a call lie in memory.

    Args:
        core: The interpreter.
        name: The function, method or layer's ``forward``, with dots.
        arguments: The arguments of the call.
        keywords: Those by name.
        made: What it returned.
    """
    asked = keywords.get("memory_format")
    rules = "c" if asked == "contiguous_format" else _rules().get(_key(name))
    if rules is None or (asked is None and is_view(name)):
        return
    if asked not in (None, "contiguous_format", "preserve_format"):
        return  # the function lays its result as it is told
    given = [x for value in (*arguments, *keywords.values()) for x in _tensors(core, value)]
    if not given or any(x.shape is None for x in given):
        return
    plain = all(x.strides is None for x in given)
    own = {id(x.value) for x in given}
    results = list(_tensors(core, made))
    for place, result in enumerate(results):
        rule = rules[min(place, len(rules) - 1)]
        if id(result.value) in own or result.shape is None or len(result.shape) < 2:
            continue
        if plain and rule in "cpkmnawo":
            strides: Strides | None = dense(result.shape)
        else:
            strides = _strides(core, rule, given, result.shape)
        if strides is None:
            continue
        lie(result, strides)
        if result.strides is None:
            note_in_order(result.value)


def _key(name: str) -> str:
    """Return the name by which the table has a function: functions and methods share theirs."""
    if name.endswith(".forward"):
        return name.removeprefix("torch.nn.")
    last = name.rpartition(".")[2]
    return _OPERATORS.get(last, last)


def _tensors(core: Core, value: Value) -> Iterator[Tensor]:
    if isinstance(value, ListRef):
        value = core.heap[value]
    if isinstance(value, Tensor):
        if value.kind == "torch.Tensor":
            yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(core, item)


def _strides(
    core: Core, rule: str, given: Sequence[Tensor], shape: Sequence[Dim]
) -> Strides | None:
    """Return the strides of a result; None where they are not known."""
    first = given[0]
    assert first.shape is not None
    if rule == "c":
        return dense(shape)
    if rule == "f":
        axes = range(len(shape))
        return in_order(shape, (*axes[:-2], axes[-1], axes[-2]))
    order = order_of(first, core.knowledge.is_nonnegative)
    if rule == "w" and order == (0, 2, 1) and len(shape) == len(order):
        return in_order(shape, order)
    if rule == "o":
        return (
            in_order(shape, order or range(len(shape))) if len(first.shape) == len(shape) else None
        )
    if rule in "mnaw":
        lain = [_channels_last(x) for x in (given if rule in "na" else given[:1])]
        return by_format(shape, lain, all if rule == "a" else any)
    if rule == "p":
        if order is not None and _equal(shape, strides_of(first), in_order(shape, order)):
            return strides_of(first)
        given = given[:1]
    if rule in "kp":
        spread = [_spread(x, shape) for x in given]
        if any(strides is None for strides in spread):
            return None
        return iterated(shape, [s for s in spread if s is not None], core.knowledge.is_nonnegative)
    return None


def _channels_last(x: Tensor) -> int:
    """Return the number of a tensor's axes if its channels lie last, 0 for others."""
    assert x.shape is not None
    axes = _FORMATS.get(len(x.shape))
    if axes is None or x.strides is None:
        return 0
    return len(axes) * _equal(x.shape, x.strides, in_order(x.shape, axes))


def _equal(shape: Sequence[Dim], strides: Strides, others: Strides) -> bool:
    """Whether tensors of a shape lie alike; where an axis of one item lies is all one."""
    pairs = zip(shape, strides, others, strict=True)
    return all(is_one(size) or definitely_equal(a, b) for size, a, b in pairs)


def _spread(x: Tensor, shape: Sequence[Dim]) -> Strides | None:
    """Return the strides of an operand in the shape of the result, 0 where it is repeated."""
    assert x.shape is not None
    rest = len(shape) - len(x.shape)
    if rest < 0:
        return None
    found: list[Dim] = [0] * rest
    for size, stride, whole in zip(x.shape, strides_of(x), shape[rest:], strict=True):
        if definitely_equal(size, whole):
            found.append(stride)
        elif is_one(size):
            found.append(0)
        else:
            return None
    return tuple(found)


@cache
def _rules() -> dict[str, str]:
    text = files(__package__).joinpath("layouts.txt").read_text(encoding="utf-8")
    return dict(line.split() for line in text.splitlines())


__all__ = ["lay"]
