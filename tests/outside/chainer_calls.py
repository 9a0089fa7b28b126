"""Evaluate expressions over Chainer and print what they are: one JSON answer a line of input.

It needs the environment that ``chainer_oracle.py`` describes. A line is an expression, in which
``V`` is ``chainer.Variable`` and ``f4(2, 3)`` is an array of ones; the answer is ``{"values":
[[SHAPE, DTYPE], ...]}``, ``{"value": ...}`` for numbers and tuples, or ``{"error": TEXT}``.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any


def described(value: Any) -> Any:
    """Return shapes and element types in nested lists, other values as text."""
    if isinstance(value, tuple | list) and not all(isinstance(item, int) for item in value):
        return [described(item) for item in value]
    if hasattr(value, "dtype"):
        return [list(value.shape), str(value.dtype)]
    return repr(value)


def main() -> int:
    """Answer every line of the input."""
    import chainer
    import numpy as np

    np.float = float  # a name that Chainer 7 uses and NumPy 1.24 dropped
    warnings.simplefilter("ignore")
    names: dict[str, Any] = {
        "chainer": chainer,
        "F": chainer.functions,
        "L": chainer.links,
        "np": np,
        "V": chainer.Variable,
    }
    for letter, dtype in (("f2", "e"), ("f4", "f"), ("f8", "d"), ("i4", "i"), ("i8", "l")):
        names[letter] = lambda *shape, dtype=dtype: np.ones(shape, dtype)
    for line in sys.stdin:
        try:
            answer = {"value": described(eval(line, names))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
