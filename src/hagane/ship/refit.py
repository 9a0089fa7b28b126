"""``hagane refit``: other weights in a build, without compiling."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hagane.errors import InvalidArgument, InvalidModel
from hagane.native import choice_from_json
from hagane.ship.build import checksums, generate
from hagane.ship.folder import MANIFEST, replacing
from hagane.ship.manifest import manifest_text, read_manifest
from hagane.ship.options import BuildOptions
from hagane.ship.sum import sum_of
from hagane.ship.targets import target_named

# So many differences are listed.
_MOST_LISTED = 10


def refit(folder: str | os.PathLike[str], model: str | os.PathLike[str]) -> dict[str, Any]:
    """Put the weights of a model into a build of one with the same structure.

    Nothing is compiled. The folder is replaced as a whole, or stays as it was; programs that have
    it open go on with the weights that they mapped.

    Args:
        folder: A build.
        model: An ONNX file.

    Returns:
        The new manifest.

    Raises:
        NoSuchFile: There is no build, or no model.
        InvalidModel: The build is damaged.
        InvalidArgument: The model has another structure; the differences are listed.
    """
    folder = Path(folder)
    with replacing(folder) as fresh:
        return _refit_into(fresh, folder, Path(model))


def _refit_into(fresh: Path, folder: Path, model: Path) -> dict[str, Any]:
    """Write a build with other weights into an empty folder; return its manifest."""
    manifest = read_manifest(folder)
    for level in manifest["levels"]:
        (fresh / level).mkdir()
        _refit_into(fresh / level, folder / level, model)
    options = BuildOptions(
        shapes=_shapes(manifest),
        target=manifest["target"],
        precision=manifest["precision"],
        static=str(manifest["library"]).endswith(".a"),
        embed_weights=bool(manifest["embedded"]),
        name=manifest["name"],
        threads=int(manifest["threads"]),
        constants=tuple(manifest["constants"]),
        choices={
            key: choice_from_json(found) for key, found in manifest.get("choices", {}).items()
        },
    )
    weights = fresh / f"{manifest['name']}.weights"
    made = generate(model, options, target_named(options.target), weights, measured=False)
    _compare("operators", manifest["nodes"], made.nodes, model)
    _compare("kernels", manifest["kernels"], sorted(made.sources.kernels), model)
    if made.structure != manifest["build"]:
        raise InvalidArgument(
            f"refit '{model}': the build was made by another version of hagane, or its tables "
            "depend on the content of weights: build the model again"
        )
    content = weights.read_bytes()
    for path in folder.iterdir():
        if path.is_dir():
            if path.name not in manifest["levels"]:
                shutil.copytree(path, fresh / path.name)
        elif path.name not in (MANIFEST, weights.name):
            shutil.copy2(path, fresh / path.name)
    library = fresh / str(manifest["library"])
    if options.embed_weights:
        _embed(library, int(manifest["weights_at"]), content, manifest)
        weights.unlink()
    manifest.update(checksums(library.read_bytes(), content))
    del manifest["check"], manifest["kind"]
    (fresh / MANIFEST).write_text(manifest_text(manifest), encoding="utf-8")
    return manifest


def _shapes(manifest: dict[str, Any]) -> tuple[str, ...]:
    """Return the options with the ranges of a build, its own choices included."""
    return tuple(
        f"{each['name']}="
        + ",".join(
            str(least) if least == most else f"{least}..{most}"
            for least, most in zip(each["least"], each["most"], strict=True)
        )
        for each in manifest["inputs"]
        if each["least"]
    )


def _compare(kind: str, before: Sequence[str], after: Sequence[str], model: Path) -> None:
    """Raise InvalidArgument with the differences, if there are any."""
    if list(before) == list(after):
        return
    lines = [
        line
        for line in difflib.unified_diff(before, after, n=0, lineterm="")
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    told = "; ".join(
        f"{'the build has' if line[0] == '-' else 'the model has'} {line[1:]}"
        for line in lines[:_MOST_LISTED]
    )
    more = f"; and {len(lines) - _MOST_LISTED} more" if len(lines) > _MOST_LISTED else ""
    raise InvalidArgument(
        f"refit '{model}': other {kind} than those of the build: {told}{more}; "
        "build the model instead"
    )


def _embed(library: Path, at: int, content: bytes, manifest: dict[str, Any]) -> None:
    """Write weights over those in a library."""
    code = bytearray(library.read_bytes())
    old = bytes(code[at : at + len(content)])
    if sum_of(old) != manifest["sums"]["weights"]:
        raise InvalidModel(f"'{library.name}' is damaged: build the model again")
    code[at : at + len(content)] = content
    library.write_bytes(code)
