"""Operators of ai.onnx.ml: forests, support vectors, linear models, features."""

from hagane.native.lowering.state import Rule
from hagane.native.rules.classical import labels, linear, trees

# By domain and name; loaded where a model has one.
RULES: dict[tuple[str, str], Rule] = {**labels.RULES, **linear.RULES, **trees.RULES}
