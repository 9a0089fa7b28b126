"""Rules of operators that ONNX Runtime adds, whose modules are imported where a model has them."""

from __future__ import annotations

from hagane.native.lowering.state import Rule
from hagane.native.rules.bytes import recurrent
from hagane.native.rules.looped import few_bits

RULES: dict[tuple[str, str], Rule] = {**recurrent.RULES, **few_bits.RULES}
