"""The functions of ``cmath`` as programs over NumPy's.

Where Python raises an error, at a logarithm of 0 or an overflow, these give NumPy's number.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import numpy as np

_NAMES = {
    "exp": np.exp, "log10": np.log10, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh,
}  # fmt: skip


def _whole(z: Any) -> Any:
    return np.asarray(z, dtype=complex)


def _number(function: Callable[[Any], Any]) -> Callable[[Any], complex]:
    def program(z: Any) -> complex:
        return complex(function(_whole(z)))

    return program


def _asked(function: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def program(z: Any) -> bool:
        return bool(function(_whole(z)))

    return program


def _log(z: Any, base: Any = None) -> complex:
    made = complex(np.log(_whole(z)))
    return made if base is None else made / complex(np.log(_whole(base)))


def _phase(z: Any) -> float:
    return float(np.angle(_whole(z)))


def _polar(z: Any) -> tuple[float, float]:
    return float(np.abs(_whole(z))), float(np.angle(_whole(z)))


def _rect(r: Any, phi: Any) -> complex:
    if r == 0 and not math.isfinite(phi):
        return 0j  # no angle of 0 is not a number
    return complex(r * math.cos(phi), r * math.sin(phi))


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> bool:
    first, second = _whole(a), _whole(b)
    most = np.maximum(rel_tol * np.maximum(np.abs(first), np.abs(second)), abs_tol)
    near = np.isfinite(first) & np.isfinite(second) & (np.abs(first - second) <= most)
    return bool(near | (first == second))


PROGRAMS: dict[Any, Any] = {
    **{getattr(cmath, name): _number(function) for name, function in _NAMES.items()},
    **{getattr(cmath, name): _asked(getattr(np, name)) for name in ("isnan", "isinf", "isfinite")},
    cmath.log: _log, cmath.phase: _phase, cmath.polar: _polar, cmath.rect: _rect,
    cmath.isclose: _isclose,
}  # fmt: skip

__all__ = ["PROGRAMS"]
