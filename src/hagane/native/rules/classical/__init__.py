"""Operators of ai.onnx.ml: forests, support vectors, linear models, features."""

from hagane.native.lowering.state import Rule
from hagane.native.rules.classical import features, labels, linear, support_vectors, trees

# By domain and name; loaded where a model has one.
RULES: dict[tuple[str, str], Rule] = {
    **features.RULES,
    **labels.RULES,
    **linear.RULES,
    **support_vectors.RULES,
    **trees.RULES,
}
