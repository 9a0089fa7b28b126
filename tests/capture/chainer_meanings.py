"""Which functions and links of Chainer compute in a graph what Chainer computes.

``python -m tests.capture.chainer_meanings`` writes the list that capture goes by; it asks Chainer
itself, whose Python is named by ``HAGANE_CHAINER_PYTHON`` (``tests/outside/chainer_oracle.py`` says
how to make one). Without it ``hagane.functions`` and ``hagane.links`` are compared with.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime

import hagane
import hagane.links as L  # noqa: N812
from hagane.capturing.capture import model_of
from hagane.errors import CaptureError, HaganeError
from hagane.frontends.capture.capture import capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.graph import to_proto
from tests.frontends import chainer_calls
from tests.frontends.numpy_calls import calls
from tests.outside.chainer_values import flat, owners, set_values

from .meanings import loaded

ORACLE = Path(__file__).parents[1] / "outside" / "chainer_values.py"
MEANT = Path(__file__).parents[2] / "src/hagane/frontends/libraries/chainer/meant.py"
EXPRESSIONS = [*calls(chainer_calls.RIGHT), *calls(chainer_calls.VALUES)]
_HEAD = """import hagane as chainer
import hagane.functions as F
import hagane.links as L
import numpy as np
from hagane import Variable as V
"""
_LETTERS = {"f2": "float16", "f4": "float32", "f8": "float64", "i4": "int32", "i8": "int64"}
_STATEFUL = {
    f"L.{name}" for name in ("LSTM", "GRU", "StatefulGRU", "StatefulMGU", "StatefulPeepholeLSTM",
                             "StatefulZoneoutLSTM")
}  # fmt: skip
_IN_TRAINING = re.compile("ormaliz|rop|rrelu|zoneout|Zoneout|NStep|config")
_TITLE = '''"""Names of Chainer whose nodes compute what Chainer does; compared by running them.

Written by ``python -m tests.capture.chainer_meanings``.
"""

'''


@dataclass(frozen=True)
class Program:
    """An expression as a function of arrays.

    Attributes:
        expression: The expression over ``a0``, ``a1``, …
        inputs: Element types and shapes of these.
        layers: Expressions that make the links in it, by name.
    """

    expression: str
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    layers: tuple[tuple[str, str], ...]

    def module(self) -> str:
        """Return the source of a module whose function ``call`` computes the expression."""
        made = "".join(f"{name} = {text}\n" for name, text in self.layers)
        names = ", ".join(f"a{i}" for i in range(len(self.inputs)))
        return f"{_HEAD}\n{made}\n\ndef call({names}):\n    return {self.expression}\n"

    def types(self) -> dict[str, str]:
        """Return the types of the inputs as text."""
        return {
            f"a{i}": f"{dtype}[{', '.join(map(str, shape))}]"
            for i, (dtype, shape) in enumerate(self.inputs)
        }

    def drawn(self, seed: int) -> list[Any]:
        """Return inputs: floats on both sides of zero, integers 0 and 1."""
        random = np.random.default_rng(seed)
        low, width = (-0.9, 1.8) if seed else (0.0, 1.0)
        return [
            np.asarray(
                random.integers(0, 2, shape)
                if dtype.startswith("int")
                else random.random(shape) * width + low,
                dtype,
            )
            for dtype, shape in self.inputs
        ]


class _Parts(ast.NodeTransformer):
    """Takes arrays and links out of an expression."""

    def __init__(self) -> None:
        self.inputs: list[tuple[str, tuple[int, ...]]] = []
        self.layers: list[tuple[str, str]] = []
        self.is_stateful = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        text = ast.unparse(node.func)
        if text in _LETTERS:
            shape = tuple(int(ast.unparse(argument)) for argument in node.args)
            self.inputs.append((_LETTERS[text], shape))
            return ast.Name(f"a{len(self.inputs) - 1}")
        self.is_stateful |= text in _STATEFUL
        if text in ("chainer.Sequential", "chainer.ChainList") or (
            isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "L"
        ):
            self.layers.append((f"layer{len(self.layers)}", ast.unparse(node)))
            return ast.Name(self.layers[-1][0])
        return self.generic_visit(node)


def program(expression: str) -> Program:
    """Return an expression of the lists as a function."""
    parts = _Parts()
    tree = parts.visit(ast.parse(expression, mode="eval"))
    text = ast.unparse(tree)
    if parts.is_stateful:  # the second call starts from the state after the first one
        text = f"({parts.layers[0][0]}.reset_state(), {text}, {text})[1:]"
    return Program(text, tuple(parts.inputs), tuple(parts.layers))


@dataclass
class Attempt:
    """A program that was captured, with what it computed.

    Attributes:
        program: The program.
        train: Whether it was captured for training.
        told: Why it was not captured, empty if it was.
        names: The names of Chainer that it uses.
        model: The graph, as bytes.
        cases: Inputs and the results that hagane computes eagerly, or its error.
        values: Arrays of its links by name and path.
    """

    program: Program
    train: bool
    told: str
    names: set[str]
    model: bytes
    cases: list[tuple[list[Any], list[Any] | str]]
    values: dict[str, dict[str, Any]]


def attempt(text: str, folder: Path, *, train: bool, trusting: bool = True) -> Attempt:
    """Capture an expression, and compute it by ``hagane.functions`` and ``hagane.links``."""
    made = Attempt(program(text), train, "", set(), b"", [], {})
    drawn = [made.program.drawn(seed) for seed in range(2)]
    with warnings.catch_warnings(), hagane.using_config("train", train):
        warnings.simplefilter("ignore")
        try:
            call = loaded(made.program.module(), folder)
            layers = {name: call.__globals__[name] for name, _ in made.program.layers}
            if layers:
                call(*drawn[0])  # sizes come with the inputs
            made.values = {name: _filled(link) for name, link in layers.items()}
            for inputs in drawn:
                for name, link in layers.items():
                    set_values(link, made.values[name])
                    _reset(link)
                try:
                    result: list[Any] | str = [np.array(x) for x in flat(call(*inputs))]
                except Exception as error:
                    result = f"{type(error).__name__}: {error}"
                made.cases.append((inputs, result))
            for name, link in layers.items():
                set_values(link, made.values[name])
                _reset(link)
            tables = MeaningTables(made.names.add, trusting=trusting)
            model = model_of(capture_object(call, (), made.program.types(), tables))
            made.model = to_proto(model).SerializeToString()
        except (CaptureError, HaganeError) as error:
            made.told = f"refused: {str(error)[:300]}"
        except Exception as error:
            made.told = f"failed: {type(error).__name__}: {str(error)[:200]}"
    return made


def _filled(link: Any) -> dict[str, Any]:
    """Return drawn arrays for the parameters and other saved values of a link, by path."""
    random = np.random.default_rng(5)
    found: dict[str, Any] = {}
    for path, parameter in link.namedparams(include_uninit=False):
        found[path] = (random.random(parameter.shape) * 1.6 - 0.8).astype(parameter.dtype)
    for path, inner in owners(link):
        for name in inner._persistent:
            held = getattr(inner, name)
            if hasattr(held, "shape"):
                found[f"{path}{name}"] = (random.random(held.shape) + 0.5).astype(held.dtype)
    return found


def _reset(link: Any) -> None:
    for inner in link.links():
        if hasattr(inner, "reset_state"):
            inner.reset_state()
        if isinstance(inner, L.Classifier):
            inner.y = inner.loss = inner.accuracy = None


def judged(made: Attempt, expected: Sequence[list[Any] | str]) -> str:
    """Return ``right``, ``refused: …`` or ``wrong: …`` for a captured program."""
    if made.told:
        return made.told
    compared = 0
    for (inputs, _), results in zip(made.cases, expected, strict=True):
        if isinstance(results, str):
            continue
        if not results:  # None, which is no output
            compared += 1
            continue
        try:
            told = difference(made, inputs, results)
        except Exception as error:
            return f"wrong: {type(error).__name__}: {str(error)[:200]}"
        if told:
            return f"wrong: {told}"
        compared += 1
    return "right" if compared else f"failed: {expected[0]}"


def difference(made: Attempt, inputs: list[Any], expected: list[Any]) -> str:
    """Return how the results of a graph differ from the expected ones, empty if they do not.

    The new states of links follow the results.
    """
    # ONNX Runtime's largest of minus infinity is the lowest finite number.
    is_finite = all(np.isfinite(one).all() for one in expected if one.dtype.kind == "f")
    session: Any = None
    if is_finite:
        try:
            session = onnxruntime.InferenceSession(made.model)
        except Exception as error:
            if "NOT_IMPLEMENTED" not in str(error):
                raise
    session = hagane.InferenceSession(made.model) if session is None else session
    names = [value.name for value in session.get_inputs()]
    given = {f"a{i}": value for i, value in enumerate(inputs)}
    for layer, content in made.values.items():  # states, by their paths
        given |= {f"{layer}{path}".replace("/", "."): array for path, array in content.items()}
    found = session.run(None, {name: given[name] for name in names})
    if len(found) < len(expected):
        return f"{len(found)} results, expected {len(expected)}"
    for ours, theirs in zip(found, expected, strict=False):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        loose = 20 if ours.dtype == np.float16 else 1
        if not np.allclose(ours, theirs, rtol=1e-4 * loose, atol=1e-5 * loose, equal_nan=True):
            return "other values"
    return ""


def chainers(attempts: Sequence[Attempt], python: str) -> list[list[list[Any] | str]]:
    """Return what Chainer computes for each attempt and each of its inputs."""
    requests, arrays = [], {}
    for number, made in enumerate(attempts):
        values = {
            name: {path: f"{number}:{name}{path}" for path in content}
            for name, content in made.values.items()
        }
        for name, content in made.values.items():
            arrays.update({f"{number}:{name}{path}": array for path, array in content.items()})
        for case, (inputs, _) in enumerate(made.cases):
            keys = [f"{number}.{case}.{i}" for i in range(len(inputs))]
            arrays.update(dict(zip(keys, inputs, strict=True)))
            requests.append({
                "expression": made.program.expression, "inputs": keys, "values": values,
                "layers": dict(made.program.layers), "train": made.train,
            })  # fmt: skip
    with TemporaryDirectory() as folder:
        files = [str(Path(folder, n)) for n in ("requests.json", "arrays.npz", "answers.npz")]
        Path(files[0]).write_text(json.dumps(requests))
        np.savez(files[1], **arrays)
        subprocess.run([python, str(ORACLE), *files], check=True)
        answers = np.load(files[2])
        results: dict[int, dict[str, Any]] = {}
        for key in answers.files:
            number, _, place = key.partition("/")
            results.setdefault(int(number), {})[place] = answers[key]
    told = []
    for number in range(len(requests)):
        found = results.get(number, {})
        ordered = [found[str(i)] for i in range(len(found)) if str(i) in found]
        told.append(str(found["error"]) if "error" in found else ordered)
    back = iter(told)
    return [[next(back) for _ in made.cases] for made in attempts]


Outcome = tuple[str, set[str]]


def outcomes(
    texts: Sequence[str], folder: Path, *, trusting: bool = True, python: str = ""
) -> Iterator[tuple[str, Outcome]]:
    """Yield what becomes of every expression: in training, and without where that may differ."""
    attempts: list[tuple[str, Attempt]] = []
    for text in texts:
        made = attempt(text, folder, train=True, trusting=trusting)
        attempts.append((text, made))
        if made.told or _IN_TRAINING.search(text):
            attempts.append((text, attempt(text, folder, train=False, trusting=trusting)))
    expected = [[result for _, result in made.cases] for _, made in attempts]
    if python:
        expected = chainers([made for _, made in attempts], python)
    told: dict[str, list[str]] = {}
    names: dict[str, set[str]] = {}
    for (text, made), results in zip(attempts, expected, strict=True):
        told.setdefault(text, []).append(judged(made, results))
        names.setdefault(text, set()).update(made.names)
    for text, found in told.items():
        wrong = next((one for one in found if one.startswith("wrong")), "")
        yield text, (wrong or ("right" if "right" in found else found[-1]), names[text])


def shown(found: Iterable[Outcome]) -> frozenset[str]:
    """Return the names of Chainer that are right in every call of theirs."""
    told = list(found)
    right = {name for one, names in told if one == "right" for name in names}
    wrong = {name for one, names in told if one.startswith("wrong") for name in names}
    return frozenset(name for name in right - wrong if name.startswith("chainer."))


def main(words: Sequence[str]) -> None:
    """Write the list; with words, only tell of the expressions that have one of them."""
    python = os.environ.get("HAGANE_CHAINER_PYTHON", "")
    texts = [text for text in EXPRESSIONS if not words or any(word in text for word in words)]
    with TemporaryDirectory() as folder:
        found = list(outcomes(texts, Path(folder), python=python))
    for text, (told, names) in found:
        print(f"{told[:220]!r} {text} {'' if told == 'right' else sorted(names)}")
    counts = [told.partition(":")[0] for _, (told, _) in found]
    print({one: counts.count(one) for one in sorted(set(counts))})
    if not words and python:
        names = sorted(shown(outcome for _, outcome in found))
        lines = "\n".join(f'    "{name}",' for name in names)
        MEANT.write_text(f"{_TITLE}MEANT = frozenset({{\n{lines}\n}})  # fmt: skip\n")
        print(len(names))


if __name__ == "__main__":
    main(sys.argv[1:])
