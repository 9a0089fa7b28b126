"""``hagane quantize``: a model of floats as one that computes with bytes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from hagane.errors import InvalidArgument, NoSuchFile, UnsupportedModel
from hagane.machine.whole_files import written_whole
from hagane.runtime import InferenceSession
from hagane.ship.quantize.balance import fit_channels
from hagane.ship.quantize.calibrate import Feed, checked_feeds, observe
from hagane.ship.quantize.correct import correct_biases, correctable
from hagane.ship.quantize.effects import effects
from hagane.ship.quantize.equalize import equalize
from hagane.ship.quantize.graph import RECURRENT, Layer, Source
from hagane.ship.quantize.insert import Scheme, error_model, quantized_model
from hagane.ship.quantize.ranges import fit_ranges
from hagane.ship.quantize.report import LayerReport, Report
from hagane.ship.quantize.rounding import fit_rounding
from hagane.ship.quantize.smooth import smooth
from hagane.ship.quantize.thresholds import COUNTED, range_of
from hagane.ship.quantize.times import layer_times

METHODS = ("minmax", "entropy", "percentile", "mse", "results")
# Feeds that biases, errors of layers, and their effect on outputs are measured with, at most.
_CORRECTED, _MEASURED, _FELT = 32, 8, 2

Run = Callable[[Feed], list[Any]]
Metric = Callable[[Run], float]


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """How a model is quantised.

    Attributes:
        method: How ranges are found: ``minmax``, ``entropy``, ``percentile``, ``mse`` or
            ``results``.
        percentile: The share of numbers in per cent that are not clipped, for that method.
        scheme: How numbers become bytes.
        keep_accuracy: The share of the metric that may be lost; None for no limit.
        equalize: Balance the weights of successive convolutions first.
        smooth: How much of the outliers of products' inputs goes into weights, 0 to 1; None: none.
        correct_bias: Let biases make up for mean errors; None for where activations are rounded to
            ranges that data give.
        fit_rounding: Round weights so that errors of one make up for those of others.
        effects: Report the error of the outputs that each layer makes.
        fit_channels: Scale channels between layers so that one range fits all of them; None as
            above.
        times: Report the time of each layer in fp32 and in bytes.
    """

    method: str = "minmax"
    percentile: float = 99.99
    scheme: Scheme = field(default_factory=Scheme)
    keep_accuracy: float | None = None
    equalize: bool = False
    smooth: float | None = None
    correct_bias: bool | None = None
    fit_rounding: bool = False
    effects: bool = False
    fit_channels: bool | None = None
    times: bool = False


def quantize(
    model: str | os.PathLike[str],
    data: Callable[[], Iterable[Feed]] | None,
    output: str | os.PathLike[str],
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
        data: Returns feeds ``{input: array}``; None where the scheme rounds no activations to
            ranges that are found beforehand.
        output: The file to write.
        options: Settings.
        metric: Gets a function from a feed to the list of outputs, and returns a number of which
            larger is better.
        where: The name of the data in errors.

    Raises:
        InvalidArgument: The data cannot be used, or an option does not fit.
        NoSuchFile: There is no model, or no folder for the output.
        UnsupportedModel: There is nothing to quantise.
    """
    model, output = Path(model), Path(output)
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
    scheme = options.scheme
    _check_options(options, data)
    if not output.absolute().parent.is_dir():
        raise NoSuchFile(f"-o '{output}': there is no folder '{output.parent}'")
    calibrated = data is not None and scheme.rounds_activations
    correct = calibrated if options.correct_bias is None else options.correct_bias
    fit = calibrated if options.fit_channels is None else options.fit_channels
    feeds = checked_feeds(source, data(), where) if data is not None else ()
    before = _measured(metric, source.model) if metric is not None else None
    if options.equalize:
        equalize(source)
    if fit:
        fit_channels(source, feeds)
    if options.smooth is not None:
        smooth(source, feeds, options.smooth)
    ranges: dict[str, tuple[float, float]] = {}
    if scheme.rounds_activations:
        rounded = [x for x in source.layers if x.operator not in RECURRENT]
        names = list(dict.fromkeys(n for x in rounded for n in (x.input, x.output)))
        seen = observe(source, names, feeds, counted=options.method in COUNTED)
        method = options.method if options.method in COUNTED else "minmax"
        ranges = {n: range_of(found, method, options.percentile) for n, found in seen.items()}
        if options.method == "results":
            ranges |= fit_ranges(source, ranges, scheme, feeds)
    measured = _spread(feeds, _MEASURED)
    if options.fit_rounding:
        centred = correctable(source) if correct else frozenset()
        fit_rounding(source, ranges, scheme, feeds, centred)
    if correct:
        correct_biases(source, ranges, scheme, _spread(feeds, _CORRECTED))
    errors = _errors(source, ranges, scheme, measured) if measured else {}
    felt: dict[str, float] = {}
    if measured and (options.effects or options.keep_accuracy is not None):
        felt = effects(source, ranges, scheme, _spread(measured, _FELT))
    kept: frozenset[str] = frozenset()
    values = None
    if metric is not None and before is not None:
        order = sorted(felt or errors, key=(felt or errors).__getitem__)
        kept, after = _kept_layers(source, ranges, options, metric, before, order)
        values = before, after
    made = quantized_model(source, ranges, scheme, kept)
    with written_whole(output) as path:
        onnx.save(made, path)
    slow, fast, spent = dict[str, float](), dict[str, float](), None
    if options.times:
        slow, whole = layer_times(source.model, source.layers, feeds[0])
        fast, now = layer_times(made, source.layers, feeds[0])
        spent = whole, now
    layers = tuple(
        LayerReport(
            layer.name,
            layer.operator,
            "fp32" if layer.name in kept else _precision(layer, scheme),
            _finite(errors.get(layer.name)),
            _finite(felt.get(layer.name)),
            slow.get(layer.name),
            fast.get(layer.name),
        )
        for layer in source.layers
    )
    sizes = model.stat().st_size, output.stat().st_size
    return Report(layers, options.method, len(feeds), values, sizes, spent)


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


def _check_options(options: QuantizeOptions, data: object) -> None:
    """Raise InvalidArgument for options that do not fit each other."""
    scheme = options.scheme
    if scheme.bits not in (4, 8):
        raise InvalidArgument(f"--bits: expected 8 or 4, got {scheme.bits}")
    if scheme.dynamic and scheme.weights_only:
        raise InvalidArgument(
            "--dynamic rounds activations and --weights-only does not: choose one of them"
        )
    if not 0 < options.percentile <= 100:
        raise InvalidArgument(
            f"--percentile: expected more than 0 and at most 100, got {options.percentile:g}"
        )
    if scheme.bits == 4 and not scheme.weights_only:
        raise InvalidArgument("--bits 4 needs --weights-only: activations of four bits are too few")
    if scheme.bits == 4 and options.fit_rounding:
        raise InvalidArgument("--fit-rounding rounds to eight bits: leave it out with --bits 4")
    if scheme.block < 16 or scheme.block & (scheme.block - 1):
        raise InvalidArgument(f"--block: expected a power of two from 16 on, got {scheme.block}")
    if options.smooth is not None and not 0 <= options.smooth <= 1:
        raise InvalidArgument(f"--smooth: expected a number from 0 to 1, got {options.smooth:g}")
    wanting = [
        name
        for name, wanted in (
            ("--smooth", options.smooth is not None),
            ("--correct-bias", bool(options.correct_bias)),
            ("--fit-rounding", options.fit_rounding),
            ("--fit-channels", bool(options.fit_channels)),
            ("--effects", options.effects),
            ("--times", options.times),
            ("--keep-accuracy", options.keep_accuracy is not None),
            (
                "rounding activations (all but --dynamic and --weights-only)",
                scheme.rounds_activations,
            ),
        )
        if wanted
    ]
    if data is None and wanting:
        raise InvalidArgument(f"{wanting[-1]} needs --data FILE.py:make, which gives feeds")


def _spread(feeds: Sequence[Feed], most: int) -> Sequence[Feed]:
    """Return some of all feeds, from the first to the last: neighbours are often alike."""
    return [feeds[i * len(feeds) // most] for i in range(most)] if len(feeds) > most else feeds


def _precision(layer: Layer, scheme: Scheme) -> str:
    return "int4" if scheme.bits == 4 and layer.operator in ("MatMul", "Gemm") else "int8"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _kept_layers(
    source: Source,
    ranges: Mapping[str, tuple[float, float]],
    options: QuantizeOptions,
    metric: Metric,
    before: float,
    worst: Sequence[str],
) -> tuple[frozenset[str], float]:
    """Return the layers that stay in fp32, as few as accuracy allows, and the metric."""
    found: dict[int, float] = {}

    def value(count: int) -> float:
        if count not in found:
            kept = frozenset(worst[:count])
            found[count] = _measured(metric, quantized_model(source, ranges, options.scheme, kept))
        return found[count]

    if options.keep_accuracy is None:
        return frozenset(), value(0)
    least = before - options.keep_accuracy * abs(before)
    if value(0) >= least:
        return frozenset(), value(0)
    low, high = 0, 1
    while high < len(worst) and value(high) < least:
        low, high = high, min(2 * high, len(worst))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if value(middle) >= least else (middle, high)
    return frozenset(worst[:high]), value(high)


def _measured(metric: Metric, model: onnx.ModelProto) -> float:
    session = InferenceSession(model)
    found = metric(lambda feed: session.run(None, feed))
    try:
        value = float(found)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"--metric: expected a number, larger is better, got {type(found).__name__}"
        ) from None
    if math.isnan(value):
        raise InvalidArgument("--metric returned NaN: expected a number, larger is better")
    return value
