"""Compute expressions over Chainer's functions and links, for arrays and parameters that are given.

It needs the environment that ``chainer_oracle.py`` describes::

    python tests/outside/chainer_values.py REQUESTS.json ARRAYS.npz ANSWERS.npz

``REQUESTS.json`` is a list of ``{"expression": TEXT, "inputs": [KEY, ...], "layers": {NAME: TEXT},
"values": {NAME: {PATH: KEY}}, "train": BOOL}``. The expression speaks of its inputs as ``a0``,
``a1``, …, and of links by the names in ``layers``, whose parameters and other saved values are set
to the arrays of ``values``. ``KEY`` is the name of an array. The answers are arrays
``REQUEST/RESULT``, with ``REQUEST/error`` for what Chainer refuses.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any


def flat(value: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a result in order."""
    import numpy as np

    if isinstance(value, tuple | list):
        for item in value:
            yield from flat(item)
    elif hasattr(value, "array"):
        yield value.array
    elif isinstance(value, int | float | np.ndarray | np.generic):
        yield np.asarray(value)


def owners(link: Any) -> Iterator[tuple[str, Any]]:
    """Yield a link and all in it with their paths, each ending in a slash."""
    yield "/", link
    for path, inner in link.namedlinks(skipself=True):
        yield f"{path}/", inner


def set_values(link: Any, values: dict[str, Any]) -> None:
    """Set parameters and other saved values by their paths."""
    parameters = dict(link.namedparams())
    inside = dict(owners(link))
    for path, array in values.items():
        if path in parameters:
            parameters[path].array[...] = array
        else:
            owner, _, name = path.rpartition("/")
            held = getattr(inside[f"{owner}/"], name)
            if hasattr(held, "shape"):
                held[...] = array


def main(requests: str, arrays: str, answers: str) -> int:
    """Answer all requests."""
    import chainer
    import numpy as np

    np.float = float  # names that Chainer 7 uses and NumPy 1.24 dropped
    np.int = int
    warnings.simplefilter("ignore")
    given = np.load(arrays)
    found: dict[str, Any] = {}
    with open(requests, encoding="utf-8") as file:
        asked = json.load(file)
    for number, request in enumerate(asked):
        names: dict[str, Any] = {
            "chainer": chainer, "F": chainer.functions, "L": chainer.links, "np": np,
            "V": chainer.Variable,
        }  # fmt: skip
        inputs = {f"a{i}": given[key] for i, key in enumerate(request["inputs"])}
        try:
            with chainer.using_config("train", request["train"]):
                for name, text in request["layers"].items():
                    names[name] = eval(text, names)
                if request["layers"]:
                    eval(request["expression"], {**names, **inputs})  # sizes come with the inputs
                for name, values in request["values"].items():
                    set_values(names[name], {path: given[key] for path, key in values.items()})
                    for link in names[name].links():
                        if hasattr(link, "reset_state"):
                            link.reset_state()
                result = eval(request["expression"], {**names, **inputs})
            for place, array in enumerate(flat(result)):
                found[f"{number}/{place}"] = array
        except Exception as error:
            found[f"{number}/error"] = np.array(f"{type(error).__name__}: {error}")
    np.savez(answers, **found)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
