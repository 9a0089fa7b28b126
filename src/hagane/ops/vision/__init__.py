"""Operators on pictures: resizing, sampling, regions, boxes, decoding."""

from hagane.ops.vision import boxes, decode, grid, resize

OPERATORS = (
    *boxes.OPERATORS,
    *decode.OPERATORS,
    *grid.OPERATORS,
    *resize.OPERATORS,
)
