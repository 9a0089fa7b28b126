"""``hagane build``: a model as a library for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from hagane.cli.named import named_function
from hagane.cli.terminal.progress import working
from hagane.errors import HaganeError
from hagane.ship import BuildOptions, build_model
from hagane.ship.quantize import QuantizeOptions


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model.")],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The folder: new, empty, or a build.")
    ],
    shape: Annotated[
        list[str] | None,
        typer.Option(help="INPUT=1..8,3,224,32..640: sizes, or ranges of sizes, of an input."),
    ] = None,
    constant: Annotated[
        list[str] | None,
        typer.Option(help="INPUT=16000: an input that is always the same."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="x86-64-v4, x86-64-v3, x86-64 or aarch64, or levels separated by commas, the best "
            "first; this machine if not given."
        ),
    ] = None,
    precision: Annotated[str, typer.Option(help="fp32, bf16 or int8.")] = "fp32",
    data: Annotated[
        str | None,
        typer.Option(help="FILE.py:make, a function that returns feeds; for int8."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="For int8: minmax, entropy, percentile, mse or results.")
    ] = "minmax",
    smooth: Annotated[
        float | None, typer.Option(help="For int8, as hagane quantize has it; so the next three.")
    ] = None,
    correct_bias: Annotated[
        bool | None,
        typer.Option(help="Let biases make up for mean errors; done where data calibrate."),
    ] = None,
    fit_rounding: Annotated[
        bool, typer.Option("--fit-rounding", help="Round weights so that errors make up.")
    ] = False,
    fit_channels: Annotated[
        bool | None,
        typer.Option(help="Scale channels of images to one range; done where data calibrate."),
    ] = None,
    static: Annotated[
        bool, typer.Option("--static/--shared", help="An archive, or a shared library.")
    ] = False,
    embed_weights: Annotated[
        bool, typer.Option("--embed-weights", help="Put the weights into the library.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Name of the library; that of the file if not given.")
    ] = None,
    menoh: Annotated[
        bool, typer.Option("--menoh", help="Add the header and library of Menoh's functions.")
    ] = False,
    threads: Annotated[
        int, typer.Option(help="Threads to divide kernels for; the cores here if 0.")
    ] = 0,
    tune: Annotated[
        float | None,
        typer.Option(help="Seconds for measuring the forms of large layers on this machine."),
    ] = None,
    tuning_cache: Annotated[
        Path | None,
        typer.Option(help="A file of measured forms; another machine may have written it."),
    ] = None,
) -> None:
    """Compile a model into a folder that C programs load: library, header, weights, manifest.

    hagane build model.onnx -o model.hagane --shape x=1..8,3,224,224
    """
    try:
        given = None if data is None else named_function(data, "--data")
    except HaganeError as error:
        _end(error)
    options = BuildOptions(
        shapes=tuple(shape or ()),
        target=target,
        precision=precision,
        static=static,
        embed_weights=embed_weights,
        name=name,
        threads=threads,
        menoh=menoh,
        constants=tuple(constant or ()),
        data=given,
        tune=tune,
        tuning_cache="" if tuning_cache is None else str(tuning_cache),
        quantization=QuantizeOptions(
            method,
            smooth=smooth,
            correct_bias=correct_bias,
            fit_rounding=fit_rounding,
            fit_channels=fit_channels,
        ),
    )
    try:
        with working(f"building {model.name}") as progress:
            manifest = build_model(model, output, options, notice=_note, progress=progress)
    except (HaganeError, OSError) as error:
        _end(error)
    peak = manifest["peak_bytes"]
    memory = "" if peak is None else f", {peak / (1 << 20):.1f} MiB at most"
    targets = ", ".join([*manifest["levels"], manifest["target"]])
    print(f"{output}: {manifest['library']} for {targets}{memory}")


def _end(error: Exception) -> NoReturn:
    # One line, so that the caller can show it.
    print(f"hagane build: error: {' '.join(str(error).split())}", file=sys.stderr)
    raise typer.Exit(2) from None


def _note(text: str) -> None:
    print(text)
