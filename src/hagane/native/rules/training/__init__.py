"""Operators that only training has."""

from hagane.native.lowering.state import Rule
from hagane.native.rules.training import (
    batch_norm,
    layer_norm,
    pooled,
    recurrent,
    selected,
    weight_gradient,
    weight_gradient_any,
)

# By domain and name, in order of preference; loaded where a model has one.
RULES: dict[tuple[str, str], list[Rule]] = {
    ("hagane", "ConvWeightGradient"): [
        weight_gradient.lower_weight_gradient,
        weight_gradient_any.lower_any_weight_gradient,
    ],
    **batch_norm.RULES,
    **layer_norm.RULES,
    **pooled.RULES,
    **recurrent.RULES,
    **selected.RULES,
}
