"""Medians and quantiles of NumPy."""

from __future__ import annotations

from functools import partial

import numpy as np
import onnx_ir as ir

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy.operands import DOUBLE, axes, cast, shape_of, to_array, typed
from hagane.frontends.libraries.numpy.reducing import reduced
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.libraries.numpy.ufuncs import elementwise
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.tensors import ordering


def _median(name: str) -> None:
    def function(t: Core, a: Value, axis: Value = None, out: Value = None,
                 overwrite_input: Value = False, keepdims: Value = False) -> Tensor:  # fmt: skip
        x = to_array(t, a)
        dtype = x.dtype if x.dtype.numpy().kind in "fc" else DOUBLE
        if x.dtype.numpy().kind == "c":
            return reduced(t, "", x, axis, keepdims, dtype)
        rule = partial(ordering.quantiles, skip=name == "nanmedian")
        return reduced(
            t, "", cast(t, x, dtype), axis, keepdims, dtype,
            lambda x, places, keeps: rule(x, np.array(0.5), places, keeps),
        )  # fmt: skip

    NUMPY.function(name)(function)


_median("median")
_median("nanmedian")

_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str) -> None:
    def function(t: Core, a: Value, q: Value, axis: Value = None, out: Value = None,
                 overwrite_input: Value = False, method: Value = "linear",
                 keepdims: Value = False, **_: Value) -> Tensor:  # fmt: skip
        x, part = to_array(t, a), to_array(t, q)
        own = x.dtype if x.dtype.numpy().kind in "fc" else DOUBLE
        if isinstance(q, Tensor | list | tuple):
            common = np.result_type(own.numpy(), part.dtype.numpy(), np.float32)
            own = ir.DataType.from_numpy(common)
        exact = method in ("lower", "higher", "nearest")
        if exact or (method == "linear" and "quantile" in name and part.dtype.is_integer()):
            own = x.dtype  # elements as they are
        made = reduced(t, "", x, axis, keepdims, own)
        shape = (*shape_of(t, part), *shape_of(t, made))
        if x.dtype.numpy().kind == "c" or method not in _METHODS:
            return typed(t, "Quantile", [made], own, shape)
        share = cast(t, part, DOUBLE)
        if name.endswith("percentile"):
            share = elementwise(t, "divide", share, 100.0)
        places = axes(t, axis, len(shape_of(t, x)), x)
        rule = partial(ordering.quantiles, method=method, skip=name.startswith("nan"))
        wide = DOUBLE if own.is_integer() else own
        found = built(t, (wide, shape), rule, cast(t, x, wide), share, places, bool(keepdims))
        return cast(t, found, own)

    NUMPY.function(name)(function)


for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):
    _quantile(_name)
