"""scikit-learn: the parts of arrays that ``train_test_split`` makes."""

from __future__ import annotations

import math

from hagane.frontends.libraries.table import Table
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import (
    Host,
    Many,
    Tensor,
    Value,
    is_size,
)
from hagane.symbolic import Dim

SKLEARN = Table("sklearn", "sklearn.Tensor")


@SKLEARN.function("model_selection.train_test_split")
def train_test_split(
    t: Core, *arrays: Value, test_size: Value = None, train_size: Value = None, **_: Value
) -> Value:
    """Return, of each array, a part to train with and a part to test with."""
    made: list[Value] = []
    for array in map(t.unwrap, arrays):
        count = _length(t, array)
        test, train = _counts(t, count, test_size, train_size)
        made += [_part(t, array, train), _part(t, array, test)]
    return made


def _length(t: Core, array: Value) -> Value:
    if isinstance(array, Tensor):
        return array.shape[0] if array.shape else t.emit.fresh("rows")
    if isinstance(array, Many):
        return array.length
    return len(array) if isinstance(array, list | tuple) else t.call(Host(len), [array], {})


def _counts(t: Core, count: Value, test: Value, train: Value) -> tuple[Dim, Dim]:
    """Return how many rows the two parts have."""
    if test is None and train is None:
        test = 0.25
    if is_size(test):
        first: Dim | None = test
    elif isinstance(test, float) and isinstance(count, int):
        first = math.ceil(test * count)
    else:
        first = None
    if is_size(train):
        second: Dim | None = train
    elif isinstance(train, float) and isinstance(count, int):
        second = math.floor(train * count)
    else:
        second = None
    if train is None and first is not None and is_size(count):
        second = count - first
    if test is None and second is not None and is_size(count):
        first = count - second
    fresh = t.emit.fresh
    return fresh("rows") if first is None else first, fresh("rows") if second is None else second


def _part(t: Core, array: Value, count: Dim) -> Value:
    if isinstance(array, Tensor):
        if array.shape is None:
            return array
        made = t.emit.new(array.dtype, (count, *array.shape[1:]), kind=array.kind)
        made.origin = array.origin
        return made
    items = array if isinstance(array, Many) else t.many_items(list(array))
    return Many(items.element, count)


__all__ = ["SKLEARN"]
