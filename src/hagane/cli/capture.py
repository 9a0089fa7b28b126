"""``hagane capture``: a Python model or function as an ONNX model."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from hagane.capturing.capture import CaptureNotice, capture
from hagane.capturing.difference import verified
from hagane.errors import InvalidArgument
from hagane.frontends.python.enter.explore import import_program
from hagane.graph import save


def command(
    target: Annotated[
        str, typer.Argument(metavar="FILE.py:Class|:function", help="What to capture.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="The type of an argument, as x=float32[batch, 3]."),
    ] = None,
    make: Annotated[
        str, typer.Option(help="An expression that makes the object, as 'Model(10)'.")
    ] = "",
    opset: Annotated[
        int | None, typer.Option(help="The opset; the least that has all operators if not given.")
    ] = None,
    keep_prints: Annotated[
        bool, typer.Option("--keep-prints", help="Make outputs of tensors that are printed.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare original and graph on drawn inputs.")
    ] = False,
) -> None:
    """Write a Python model or function as an ONNX model: exit 0 written, 1 if the two differ.

    hagane capture model.py:Net --make 'Net(10)' --input 'x=float32[batch, 3]' -o net.onnx
    """
    found = _object(target, make)
    with warnings.catch_warnings(record=True) as notices:
        warnings.simplefilter("always", CaptureNotice)
        model = capture(found, opset=opset, keep_prints=keep_prints, **_types(inputs or []))
    for notice in notices:
        print(notice.message, file=sys.stderr)
    told = verified(found, model, _types(inputs or [])) if verify else None
    if told is not None and told.difference:
        print(f"{told.difference}; {output} is not written")
        raise typer.Exit(1)
    save(model, output)
    nodes = sum(1 for _ in model.graph.all_nodes())
    opset_found = model.graph.opset_imports[""]
    print(f"{output}: {nodes} nodes, opset {opset_found}")
    if told is not None:
        for side, count in Counter(told.unreached).items():  # a loop written out repeats them
            print(f"not verified: {side}" + (f" ({count} times)" if count > 1 else ""))
        print(
            f"the graph returns what the original returns: {told.runs} runs, "
            f"{2 * told.branches - len(told.unreached)} of {2 * told.branches} sides "
            "of branches"
        )


def _types(inputs: list[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in inputs:
        name, equals, type_ = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise InvalidArgument(
                f"--input '{text}': expected NAME=TYPE, as x=float32[batch, 3, 224, 224]"
            )
        given[name.strip()] = type_.strip()
    return given


def _object(target: str, make: str) -> Any:
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise InvalidArgument(
            f"'{target}': expected FILE.py:NAME, the file and the class or function in it"
        )
    if not Path(path).is_file():
        raise InvalidArgument(f"there is no file '{path}'; expected Python source")
    names = vars(import_program(Path(path)))
    first, _, method = name.partition(".")
    if first not in names:
        known = ", ".join(n for n, v in names.items() if callable(v) and not n.startswith("_"))
        raise InvalidArgument(f"'{path}' has no '{first}'; it has: {known or 'nothing to call'}")
    try:
        owner = eval(make, dict(names)) if make else names[first]
        if isinstance(owner, type):
            owner = owner()
    except Exception as error:
        how = make or f"{first}()"
        raise InvalidArgument(
            f"'{how}' cannot be made: {type(error).__name__}: {error}; say how with --make"
        ) from None
    return getattr(owner, method) if method else owner
