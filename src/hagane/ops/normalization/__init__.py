"""Operators that normalise by statistics of their input."""

from hagane.ops.normalization import (
    batch,
    dropout,
    layer,
    local,
    loss,
    softmax,
    trained,
    trained_rows,
)

OPERATORS = (
    *batch.OPERATORS,
    *dropout.OPERATORS,
    *layer.OPERATORS,
    *local.OPERATORS,
    *loss.OPERATORS,
    *softmax.OPERATORS,
    *trained.OPERATORS,
    *trained_rows.OPERATORS,
)
