"""``hagane run``: feed a model and show its outputs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hagane.cli.feeds import parse_shapes, read_feed
from hagane.cli.terminal.progress import working
from hagane.cli.terminal.width import show
from hagane.errors import InvalidArgument
from hagane.ops.values import describe_value
from hagane.runtime import InferenceSession
from hagane.ship.retrieved import model_source


def command(
    model: Annotated[Path, typer.Argument(help="The ONNX model, or a folder of chainer-trt.")],
    input: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=FILE (.npy, .npz, .json, .png, .jpg, .pb) or NAME=VALUE, once an input."
        ),
    ] = None,
    random: Annotated[
        int | None, typer.Option(help="Seed of random numbers for the inputs not given.")
    ] = None,
    shape: Annotated[
        list[str] | None, typer.Option(help="NAME=1,3,224,224: sizes of a random input.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write each output into, as NAME.npy.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print outputs as JSON.")] = False,
) -> None:
    """Run a model and show its outputs."""
    with working(f"loading {model.name}"):
        session = InferenceSession(model_source(model))
    feed = read_feed(session.get_inputs(), input or [], parse_shapes(shape or []), random)
    with working("running"):
        # The first run also takes memory and starts threads: the second shows the time of all later
        # ones.
        first, _ = _timed(session, feed)
        seconds, results = _timed(session, feed)
    named = dict(zip([item.name for item in session.get_outputs()], results, strict=True))
    if output is not None:
        _write(named, output)
    if as_json:
        times = {"seconds": seconds, "first_seconds": first}
        print(json.dumps(times | {"outputs": _to_json(named)}, allow_nan=True))
    else:
        _show(named)
        print(f"run: {seconds * 1000:.1f} ms (the first: {first * 1000:.1f} ms)")


def _timed(session: InferenceSession, feed: dict[str, Any]) -> tuple[float, list[Any]]:
    started = time.perf_counter()
    results = session.run(None, feed)
    return time.perf_counter() - started, results


def _write(named: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in named.items():
        if not isinstance(value, np.ndarray):
            raise InvalidArgument(f"--output: '{name}' is no tensor ({describe_value(value)})")
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)
        if value.dtype == object:
            value = value.astype(np.str_)
        np.save(folder / f"{safe}.npy", value)


def _to_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    if isinstance(value, np.ndarray):
        plain = value if value.dtype.kind in "iufbO" else value.astype(np.float32)
        return {"dtype": str(value.dtype), "shape": list(value.shape), "data": plain.tolist()}
    return value.item() if isinstance(value, np.generic) else value


def _show(named: dict[str, Any]) -> None:
    with np.printoptions(threshold=16, edgeitems=4, precision=5, suppress=True, linewidth=100):
        for name, value in named.items():
            show(f"{name}: {describe_value(value)}")
            print(f"  {str(value).replace(chr(10), chr(10) + '  ')}")
