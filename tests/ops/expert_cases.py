"""Cases of mixtures of experts, for the tests of ``com.microsoft``."""

from __future__ import annotations

from typing import Any

import numpy as np

_GENERATOR = np.random.default_rng(0)
_SWIGLU = {
    "activation_type": "swiglu",
    "swiglu_fusion": 1,
    "activation_alpha": 1.7,
    "activation_beta": 1.0,
    "swiglu_limit": 0.8,
}


def _floats(*shape: int) -> np.ndarray:
    return _GENERATOR.standard_normal(shape).astype(np.float32)


def _bytes(*shape: int) -> np.ndarray:
    return _GENERATOR.integers(0, 255, shape).astype(np.uint8)


def _mixture(k: int, **form: Any) -> tuple[Any, ...]:
    columns = 10 if form["activation_type"] == "swiglu" else 5
    weights = [_floats(4, columns, 6), _floats(4, columns), _floats(4, 6, 5), _floats(4, 6)]
    inputs = [_floats(2, 3, 6), _floats(6, 4), *weights]
    return "MoE", inputs, 1, {"k": k, "normalize_routing_weights": k % 2, **form}


def _quantized(bits: int, block: int, zeros: bool, **form: Any) -> tuple[Any, ...]:
    columns = 64 if form["activation_type"] == "swiglu" else 32
    inputs: list[np.ndarray | None] = [_floats(5, 64), _floats(5, 4)]
    points: list[np.ndarray | None] = []
    for rows, length in ((columns, 64), (64, 32)):
        blocks = (length // block,) if block else ()
        scales = np.abs(_floats(4, rows, *blocks)) / 99
        inputs += [_bytes(4, rows, length * bits // 8), scales, _floats(4, rows)]
        packed = (rows, -(-blocks[0] * bits // 8)) if blocks else (rows * bits // 8,)
        points.append(_bytes(4, *packed) if zeros else None)
    inputs += [None, None, None, *points, None, np.abs(_floats(5, 4)) if zeros else None]
    while inputs[-1] is None:
        inputs.pop()
    more = {"k": 2, "normalize_routing_weights": 1, "expert_weight_bits": bits}
    return "QMoE", inputs, 1, {**more, **({"block_size": block} if block else {}), **form}


EXPERTS: dict[str, tuple[Any, ...]] = {
    "MoE": _mixture(1, activation_type="relu"),
    "MoE of two": _mixture(2, activation_type="gelu"),
    "MoE of three": _mixture(3, activation_type="silu"),
    "MoE of linear experts": _mixture(2, activation_type="identity"),
    "MoE of gates": _mixture(3, **_SWIGLU),
    "QMoE": _quantized(4, 16, False, activation_type="silu"),
    "QMoE of gates": _quantized(4, 32, True, **_SWIGLU),
    "QMoE of bytes": _quantized(8, 16, True, **_SWIGLU),
    "QMoE by columns": _quantized(4, 0, False, activation_type="relu"),
    "QMoE of bytes by columns": _quantized(8, 0, True, activation_type="identity"),
}
# Weights and zero points.
EXPERT_CONSTANTS = {name: (2, 5, 11, 12) for name in EXPERTS if name.startswith("QMoE")}
