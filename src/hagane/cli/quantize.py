"""``hagane quantize``: a model of floats as one that computes with bytes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hagane.cli.named import named_function
from hagane.cli.terminal.progress import working
from hagane.errors import HaganeError, InvalidArgument
from hagane.ship.quantize import QuantizeOptions, Scheme, check_report, quantize, table_lines


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
    data: Annotated[
        str | None,
        typer.Option(help="FILE.py:make, a function that returns feeds {input: array}."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="minmax, entropy, percentile, mse or results.")
    ] = "minmax",
    percentile: Annotated[
        float, typer.Option(help="Numbers that are not clipped, in per cent.")
    ] = 99.99,
    report: Annotated[
        Path | None, typer.Option(help="A file.json or file.html with the error of each layer.")
    ] = None,
    keep_accuracy: Annotated[
        str | None,
        typer.Option(help="0.5%: the share of the metric that may be lost; layers stay in fp32."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(help="FILE.py:function of run(feed) that returns a number; larger is better."),
    ] = None,
    per_tensor: Annotated[
        bool, typer.Option("--per-tensor", help="One scale for all channels of weights.")
    ] = False,
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Activations as signed bytes around zero.")
    ] = False,
    weights_only: Annotated[
        bool, typer.Option("--weights-only", help="Activations stay as they are.")
    ] = False,
    dynamic: Annotated[
        bool, typer.Option("--dynamic", help="Each run finds the ranges of activations.")
    ] = False,
    bits: Annotated[int, typer.Option(help="Of weights: 8, or 4 with --weights-only.")] = 8,
    block: Annotated[int, typer.Option(help="Weights of 4 bits that share a scale.")] = 32,
    float_sums: Annotated[
        bool,
        typer.Option("--float-sums", help="Sums of residual networks stay floats beside bytes."),
    ] = False,
    equalize: Annotated[
        bool, typer.Option("--equalize", help="Balance the weights of successive convolutions.")
    ] = False,
    smooth: Annotated[
        float | None,
        typer.Option(
            help="0 to 1: how much of products' outliers goes into weights (SmoothQuant)."
        ),
    ] = None,
    correct_bias: Annotated[
        bool | None,
        typer.Option(help="Let biases make up for mean errors; done where data calibrate."),
    ] = None,
    fit_rounding: Annotated[
        bool,
        typer.Option(
            "--fit-rounding", help="Round weights so that errors make up for each other (GPTQ)."
        ),
    ] = False,
    fit_channels: Annotated[
        bool | None,
        typer.Option(help="Scale channels of images to one range; done where data calibrate."),
    ] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="Report each layer's effect on the outputs.")
    ] = False,
    times: Annotated[
        bool, typer.Option("--times", help="Report the time of each layer in fp32 and in bytes.")
    ] = False,
) -> None:
    """Write a model that computes with bytes, in ONNX's own operators.

    hagane quantize model.onnx --data data.py:make -o model.int8.onnx --report report.html
    """
    try:
        if report is not None:
            check_report(report)
        scheme = Scheme(not per_tensor, symmetric, weights_only, dynamic, bits, block, float_sums)
        options = QuantizeOptions(
            method,
            percentile,
            scheme,
            _share(keep_accuracy),
            equalize,
            smooth,
            correct_bias,
            fit_rounding,
            effects,
            fit_channels,
            times,
        )
        make = None if data is None else named_function(data, "--data")
        measure = None if metric is None else named_function(metric, "--metric")
        with working(f"quantising {model.name}"):
            found = quantize(model, make, output, options, metric=measure, where=str(data))
        if report is not None:
            found.write(report)
    except (HaganeError, OSError) as error:
        print(f"hagane quantize: error: {' '.join(str(error).split())}", file=sys.stderr)
        raise typer.Exit(2) from None
    for line in table_lines(found.layers):
        print(line)
    before, after = found.bytes
    print(f"{output}: {after / max(1, before):.0%} of {before:,} bytes")
    if found.milliseconds is not None:
        print(f"a run: {found.milliseconds[0]:.3g} ms in fp32, {found.milliseconds[1]:.3g} ms now")
    if found.metric is not None:
        print(f"metric: {found.metric[0]:.6g} before, {found.metric[1]:.6g} after")


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    number, percent, rest = text.partition("%")
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        share = -1.0
    if rest.strip() or not 0 <= share <= 1:
        raise InvalidArgument(f"--keep-accuracy: expected a share as 0.5%, got '{text}'")
    return share
