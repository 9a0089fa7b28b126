"""Ufuncs that change elements at places, each as often as it comes up: ``np.add.at``."""

from __future__ import annotations

from hagane.frontends.libraries.computing import built
from hagane.frontends.libraries.numpy.operands import cast, shape_of, to_array
from hagane.frontends.libraries.numpy.table import NUMPY
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.builder import op
from hagane.ops.functions.tensors import placing

# Ufuncs, and how ScatterND joins elements.
_WAYS = {"add": "add", "subtract": "add", "multiply": "mul", "maximum": "max", "minimum": "min"}


def _at(name: str, how: str) -> None:
    def function(t: Core, a: Value, indices: Value, b: Value) -> Tensor:
        """Return the array with a ufunc applied at indices; the call itself returns None."""
        x = to_array(t, a)
        places = list(indices) if isinstance(indices, tuple) else [indices]
        arrays = [to_array(t, place) for place in places]
        for place in arrays:
            if not place.dtype.is_integer() or shape_of(t, place) != shape_of(t, arrays[0]):
                t.fail("dtype-mismatch", f"np.{name}.at: expected arrays of integers of one shape "
                       f"as indices, got {t.show(place)}; make them so", place)  # fmt: skip
        source = cast(t, to_array(t, b), x.dtype)
        sign = op if name == "subtract" else None
        return built(
            t,
            x,
            lambda x, source, *at: placing.put_together(
                x, at, source if sign is None else sign("Neg", source), how
            ),
            x,
            source,
            *arrays,
        )

    NUMPY.function(f"{name}.at")(function)


for _name, _how in _WAYS.items():
    _at(_name, _how)
