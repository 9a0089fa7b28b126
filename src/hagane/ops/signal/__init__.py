"""Signal processing: Fourier transforms, windows, mel weights."""

from hagane.ops.signal import fourier, window

OPERATORS = (*fourier.OPERATORS, *window.OPERATORS)
