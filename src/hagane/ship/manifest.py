"""A build's description of itself: ``manifest.json`` and ``README.md``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hagane.errors import InvalidModel, NoSuchFile
from hagane.native.ready.plan_file import LARGEST
from hagane.native.ready.rows import TYPES
from hagane.ship.folder import KIND, MANIFEST
from hagane.ship.keys import fault_of
from hagane.ship.ranges import Axis
from hagane.ship.sum import sum_of

# Of the interface in c/hagane.h.
VERSION = "1.0"
# The element types of tensors, as ONNX numbers them: `element_types` in c/base.c.
TENSOR_TYPES = {
    name: number for name, number in TYPES.items() if number <= 16 and "complex" not in name
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An input or output of a build.

    Attributes:
        name: Its name.
        type: The element type, as ONNX numbers them.
        dtype: The same by name.
        shape: Numbers, and texts for sizes that a run tells.
        axes: The range of each; None where only a run tells.
    """

    name: str
    type: int
    dtype: str
    shape: tuple[int | str, ...]
    axes: tuple[Axis | None, ...]

    def least(self) -> list[int]:
        """Return the smallest sizes."""
        return [0 if axis is None else axis.least for axis in self.axes]

    def most(self) -> list[int]:
        """Return the largest sizes."""
        return [LARGEST if axis is None else axis.most for axis in self.axes]

    def as_json(self) -> dict[str, Any]:
        """Return its entry in the manifest."""
        return {
            "name": self.name,
            "type": self.type,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "least": self.least(),
            "most": self.most(),
        }


def manifest_text(content: Mapping[str, Any]) -> str:
    """Return a manifest with its checksum as the last key."""
    text = json.dumps({"kind": KIND, **content}, indent=2, ensure_ascii=True)
    head = text.removesuffix("\n}") + ",\n  "
    return f'{head}"check": "{sum_of(head.encode())}"\n}}\n'


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a build.

    Raises:
        NoSuchFile: There is none.
        InvalidModel: It is damaged, or a key has a value of another kind.
    """
    path = folder / MANIFEST
    try:
        text = path.read_text(encoding="utf-8")
        found = json.loads(text)
        head = text[: text.rindex('"check": "')]
        whole = found["check"] == sum_of(head.encode()) and found["kind"] == KIND
    except OSError:
        raise NoSuchFile(
            f"'{folder}' has no {MANIFEST}; expected a folder that hagane build wrote"
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        whole = False
    if not whole:
        raise InvalidModel(f"'{path}' is damaged: build the model again")
    fault = fault_of(found)
    if fault is not None:
        raise InvalidModel(f"'{path}' {fault}: build the model again")
    return dict(found)


def readme_text(manifest: Mapping[str, Any], name: str, program: str) -> str:
    """Return the text of the folder's README, with the line that compiles a program."""
    outputs = manifest["outputs"]
    static = str(manifest["library"]).endswith(".a")
    line = f"cc program.c -I DIR -L DIR -l{name}"
    if static:
        line += " -lm -lpthread"
    more = ""
    if static:
        more = (
            "\nA program of several archives names all of them between `-Wl,--whole-archive` and\n"
            "`-Wl,--no-whole-archive`.\n"
        )
    run = "./a.out DIR\n" if static else "LD_LIBRARY_PATH=DIR ./a.out DIR\n"
    rows = "\n".join(
        f"| {kind} | `{each['name']}` | {each['dtype']} | {_sizes(each)} |"
        for kind, group in (("input", manifest["inputs"]), ("output", outputs))
        for each in group
    )
    peak = manifest["peak_bytes"]
    needs = "its data decide the memory of a run" if peak is None else f"{peak} bytes at most"
    return f"""# {name}

A model, compiled for {manifest["target"]}. `hagane.h` tells its interface; DIR is this folder.

```sh
{line}
{run}```
{more}
| | name | type | sizes |
|---|---|---|---|
{rows}

Memory, weights included, inputs and outputs left out: {needs}.

```c
{program}```
"""


def _sizes(argument: Mapping[str, Any]) -> str:
    pairs = zip(argument["shape"], argument["least"], argument["most"], strict=True)
    parts = []
    for dim, least, most in pairs:
        if least == most:
            parts.append(str(least))
        elif most == LARGEST:
            parts.append(f"{dim}")
        else:
            parts.append(f"{dim}: {least}..{most}")
    return ", ".join(parts) or "one number"
