"""``hagane quantize``: a model of floats as one that computes with bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from hagane.errors import InvalidArgument, UnsupportedModel
from hagane.runtime import InferenceSession
from hagane.ship.quantize.calibrate import Feed, checked_feeds, observe
from hagane.ship.quantize.graph import Source
from hagane.ship.quantize.insert import Scheme, error_model, quantized_model
from hagane.ship.quantize.report import LayerReport, Report
from hagane.ship.quantize.thresholds import range_of

METHODS = ("minmax", "entropy", "percentile", "mse")
# Feeds that errors of layers are measured with, at most.
_MEASURED = 8

Run = Callable[[Feed], list[Any]]
Metric = Callable[[Run], float]


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """How a model is quantised.

    Attributes:
        method: ``minmax``, ``entropy``, ``percentile`` or ``mse``: how ranges are found.
        percentile: The share of numbers in per cent that are not clipped, for that method.
        scheme: How numbers become bytes.
        keep_accuracy: The share of the metric that may be lost; None: whatever comes.
    """

    method: str = "minmax"
    percentile: float = 99.99
    scheme: Scheme = field(default_factory=Scheme)
    keep_accuracy: float | None = None


def quantize(
    model: Path,
    data: Callable[[], Iterable[Feed]],
    output: Path,
    options: QuantizeOptions | None = None,
    *,
    metric: Metric | None = None,
    where: str = "the data",
) -> Report:
    """Write a model whose convolutions and products with constant weights compute with bytes.

    It is of ONNX's own operators, QuantizeLinear and DequantizeLinear, and runs anywhere. Batch
    normalisations are put into the convolutions before them.

    Args:
        model: An ONNX file.
        data: Returns feeds ``{input: array}``.
        output: The file to write.
        options: Settings.
        metric: Gets a function from a feed to the list of outputs, and returns a number of which
            larger is better.
        where: What errors call the data.

    Raises:
        InvalidArgument: The data cannot be used, or an option does not fit.
        UnsupportedModel: There is nothing to quantise.
    """
    options = options or QuantizeOptions()
    if options.method not in METHODS:
        raise InvalidArgument(
            f"--method: expected one of {', '.join(METHODS)}, got '{options.method}'"
        )
    if options.keep_accuracy is not None and metric is None:
        raise InvalidArgument("--keep-accuracy needs --metric FILE.py:function, to measure it")
    source = Source(model)
    if not source.layers:
        raise UnsupportedModel(
            [f"'{model}' has no Conv, Gemm or MatMul with constant weights of float32 to quantise"]
        )
    feeds = checked_feeds(data(), where)
    names = list(dict.fromkeys(n for x in source.layers for n in (x.input, x.output)))
    seen = observe(source, names, feeds, counted=options.method != "minmax")
    ranges = {
        name: range_of(found, options.method, options.percentile) for name, found in seen.items()
    }
    errors = _errors(source, ranges, options.scheme, feeds[:_MEASURED])
    kept, values = _kept_layers(source, ranges, options, metric, errors)
    made = quantized_model(source, ranges, options.scheme, kept)
    onnx.save(made, output)
    layers = tuple(
        LayerReport(
            layer.name,
            layer.operator,
            "fp32" if layer.name in kept else "int8",
            decibels if math.isfinite(decibels := errors[layer.name]) else None,
        )
        for layer in source.layers
    )
    sizes = model.stat().st_size, output.stat().st_size
    return Report(layers, options.method, len(feeds), values, sizes)


def _errors(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    scheme: Scheme,
    feeds: Sequence[Feed],
) -> dict[str, float]:
    """Return the signal to noise of each layer in decibels, infinite where there is no error."""
    session = InferenceSession(error_model(source, ranges, scheme))
    total = np.zeros(2 * len(source.layers))
    for feed in feeds:
        total += np.array([float(value) for value in session.run(None, feed)])
    return {
        layer.name: 10 * math.log10(signal / error) if signal > 0 and error > 0 else math.inf
        for layer, (signal, error) in zip(source.layers, total.reshape(-1, 2), strict=True)
    }


def _kept_layers(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    options: QuantizeOptions,
    metric: Metric | None,
    errors: Mapping[str, float],
) -> tuple[frozenset[str], tuple[float, float] | None]:
    """Return the layers that stay in fp32, as few as accuracy allows, and the metric."""
    if metric is None:
        return frozenset(), None
    worst = sorted(errors, key=lambda name: errors[name])
    before = _measured(metric, source.model)
    found: dict[int, float] = {}

    def value(count: int) -> float:
        if count not in found:
            kept = frozenset(worst[:count])
            found[count] = _measured(metric, quantized_model(source, ranges, options.scheme, kept))
        return found[count]

    if options.keep_accuracy is None:
        return frozenset(), (before, value(0))
    least = before - options.keep_accuracy * abs(before)
    if value(0) >= least:
        return frozenset(), (before, value(0))
    low, high = 0, 1
    while high < len(worst) and value(high) < least:
        low, high = high, min(2 * high, len(worst))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if value(middle) >= least else (middle, high)
    return frozenset(worst[:high]), (before, value(high))


def _measured(metric: Metric, model: onnx.ModelProto) -> float:
    session = InferenceSession(model)
    value = float(metric(lambda feed: session.run(None, feed)))
    if math.isnan(value):
        raise InvalidArgument("--metric returned NaN: expected a number, larger is better")
    return value
