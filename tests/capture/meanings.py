"""Which functions of libraries compute in a graph what they compute for real.

``python -m tests.capture.meanings`` writes the list that capture goes by.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
import torch

import hagane
from hagane.capturing.capture import model_of
from hagane.errors import CaptureError, HaganeError
from hagane.frontends.capture.capture import capture_object
from hagane.frontends.libraries.meaning import MeaningTables
from hagane.graph import to_proto
from tests.frontends import numpy_calls
from tests.frontends.calls import Call, made_input
from tests.frontends.numpy_calls import ARRAYS
from tests.frontends.test_real_layers import with_layer
from tests.frontends.test_torch_table import SECTIONS

MEANT = Path(__file__).parents[2] / "src/hagane/frontends/libraries/names/meant.py"


_HEAD = '''"""Functions of libraries whose nodes compute their values; compared by running them.

Written by ``python -m tests.capture.meanings``; other names of the same functions count.
"""

'''
# Inputs that are drawn do not show what is special about these.
# Vectors of these have the sign that an algorithm happens to give them.
FREE_SIGNS = re.compile(r"linalg\.(eigh|svd)\(|torch\.svd\(")
# What these hold nobody knows: any content is theirs.
ANY_CONTENT = re.compile(r"\b(new_)?empty(_like|_strided)?\(|torch\.(Float)?Tensor\(\d")
UNSHOWN = re.compile(r"bernoulli|multinomial|normal_?$|rand|to_sparse$")  # asked for a flag alone


def loaded(source: str, folder: Path) -> Any:
    """Return the function ``call`` of a module."""
    number = len(list(folder.iterdir()))
    file = folder / f"call_{number}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(f"call_{number}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.call


def flat(value: Any) -> Iterator[Any]:
    """Yield the arrays and numbers of a result in order."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().resolve_conj().resolve_neg()
        yield plain.float().numpy() if plain.dtype == torch.bfloat16 else plain.numpy()
    elif isinstance(value, dict):
        for item in value.values():
            yield from flat(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from flat(item)
    elif value is not None and not isinstance(value, str):
        yield np.asarray(value)


def difference(function: Any, model: bytes, inputs: list[Any], *, signs: bool = True) -> str:
    """Return how a graph and the function it came from differ, empty if they do not.

    ``signs`` says whether numbers have to have the same sign.
    """
    expected = list(flat(function(*inputs)))
    if not expected:  # a text, or nothing
        return ""
    if any(one.dtype.kind == "c" for one in expected):
        raise TypeError("complex results, which other lists are about")
    try:
        session = onnxruntime.InferenceSession(model)
    except Exception as error:
        # Some element types and new operators are hagane's alone.
        if "NOT_IMPLEMENTED" not in str(error) and "opset" not in str(error):
            raise
        session = hagane.InferenceSession(model)
    feed = {
        value.name: np.array(next(flat(array)))
        for value, array in zip(session.get_inputs(), inputs, strict=True)
    }
    found = session.run(None, feed)
    if len(expected) != len(found):
        raise ValueError(f"{len(found)} results, expected {len(expected)}")
    for ours, theirs in zip(found, expected, strict=True):
        if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
            return f"{ours.dtype}{ours.shape}, expected {theirs.dtype}{theirs.shape}"
        if not signs:
            ours, theirs = np.abs(ours), np.abs(theirs)
        if not np.allclose(ours, theirs, rtol=1e-3, atol=1e-4, equal_nan=True):
            return "other values"
    return ""


def drawn(text: str, limit: int, sizes: Mapping[str, int], signed: bool) -> torch.Tensor:
    """Return a tensor of a type; where ``signed``, numbers lie on both sides of zero."""
    made = made_input(text, limit, sizes)
    if not signed or made.dtype == torch.bool or made.dtype == torch.uint8:
        return made
    if made.dtype.is_floating_point or made.dtype.is_complex:
        return (made * 6 - 3).to(made.dtype)
    return made if limit else made * (torch.randint(0, 2, made.shape) * 2 - 1).to(made.dtype)


def outcome(call: Call, folder: Path, *, trusting: bool = True) -> tuple[str, set[str]]:
    """Return what became of a call: ``right``, ``refused: …`` or ``wrong: …``, and its names.

    Layers that are refused in training, or move statistics there, are asked for their result in
    evaluation.
    """
    source = with_layer(call) if "nn." in call.source else None
    told, names = _outcome(call, source, folder, trusting)
    if source is not None and told.startswith(("refused", "failed")):
        return _outcome(
            call, source.replace("\n\n\ndef", "\nlayer.eval()\n\n\ndef"), folder, trusting
        )
    return told, names


def _outcome(call: Call, source: str | None, folder: Path, trusting: bool) -> tuple[str, set[str]]:
    names: set[str] = set()
    types = {name: re.sub(r"=\d+", "", text) for name, text, _ in call.inputs}
    if any("bfloat16" in text for text in types.values()):
        return "failed: NumPy has no bfloat16", names
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            function = loaded(source or call.module(), folder)
            tables = MeaningTables(names.add, trusting=trusting)
            model = to_proto(model_of(capture_object(function, (), types, tables)))
            grown = {n: s + 1 for n, s in call.sizes.items()}
            for sizes, signed in ((call.sizes, False), (call.sizes, True), (grown, True)):
                inputs = [drawn(text, limit, sizes, signed) for _, text, limit in call.inputs]
                try:
                    function(*[one.clone() for one in inputs])
                except Exception:  # sizes that PyTorch refuses
                    continue
                signs = FREE_SIGNS.search(call.source) is None
                told = difference(function, model.SerializeToString(), inputs, signs=signs)
                if told and not (told == "other values" and ANY_CONTENT.search(call.source)):
                    return f"wrong: {told}", names
    except (CaptureError, HaganeError) as error:
        return f"refused: {str(error)[:300]}", names
    except Exception as error:
        kind = "wrong" if "onnx" in type(error).__module__ else "failed"
        return f"{kind}: {type(error).__name__}: {str(error)[:200]}", names
    return "right", names


# NumPy.


def numpy_source(expression: str) -> tuple[str, list[str]]:
    """Return a module whose function ``call`` returns an expression, and the arrays it takes."""
    names = [name for name in ARRAYS if re.search(rf"\b{name}\b", expression)]
    return (
        f"import numpy as np\n\n\ndef call({', '.join(names)}):\n    return {expression}\n",
        names,
    )


def drawn_array(like: np.ndarray[Any, Any], source: np.random.Generator) -> Any:
    """Return an array of the type of another one; integers are places in short axes."""
    if like.dtype.kind == "b":
        return source.random(like.shape) < 0.5
    if like.dtype.kind in "iu":
        return source.integers(0, 3, like.shape).astype(like.dtype)
    if like.dtype.kind == "c":
        return like
    return (source.random(like.shape) * 6 - 3).astype(like.dtype)


def numpy_outcome(expression: str, folder: Path, *, trusting: bool = True) -> tuple[str, set[str]]:
    """Return what became of an expression over NumPy's arrays, and the names that it uses."""
    names: set[str] = set()
    source, given = numpy_source(expression)
    types = {
        name: f"{ARRAYS[name].dtype}[{', '.join(map(str, ARRAYS[name].shape))}]" for name in given
    }
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            function = loaded(source, folder)
            tables = MeaningTables(names.add, trusting=trusting)
            model = to_proto(model_of(capture_object(function, (), types, tables)))
            for seed in range(3):
                drawn_ = np.random.default_rng(seed)
                inputs = [drawn_array(ARRAYS[name], drawn_) for name in given]
                told = difference(function, model.SerializeToString(), inputs)
                if told:
                    return f"wrong: {told}", names
    except (CaptureError, HaganeError) as error:
        return f"refused: {str(error)[:300]}", names
    except Exception as error:
        kind = "wrong" if "onnx" in type(error).__module__ else "failed"
        return f"{kind}: {type(error).__name__}: {str(error)[:200]}", names
    return "right", names


# The list.

Outcome = tuple[str, set[str]]


def outcomes(told: Callable[[str], None] = lambda line: None) -> Iterator[Outcome]:
    """Yield what becomes of every call of the lists; ``told`` hears of each."""
    with TemporaryDirectory() as folder:
        for call in CALLS:
            found = outcome(call, Path(folder))
            told(f"{found[0][:200]!r} {call}")
            yield found
        for expression in EXPRESSIONS:
            found = numpy_outcome(expression, Path(folder))
            told(f"{found[0][:200]!r} {expression}")
            yield found


def listed(found: Iterable[Outcome]) -> frozenset[str]:
    """Return the names that are right in every call of theirs."""
    right: set[str] = set()
    mistakes: list[set[str]] = []
    alone: set[str] = set()
    for told, names in found:
        if told == "right":
            right |= names
            alone |= names if len(names) == 1 else set()
        elif told.startswith("wrong"):
            mistakes.append(names)
    # Those names of a wrong call are in doubt that are not right in a call of their own.
    wrong = {name for names in mistakes for name in names - alone or names}
    return frozenset(
        name
        for name in right - wrong
        if not UNSHOWN.match(name.rpartition(".")[2])
        and not (name.endswith("_") and not name.endswith("__"))
    )


CALLS = [call for section in SECTIONS for call in section.calls]
EXPRESSIONS = numpy_calls.calls(numpy_calls.RIGHT + numpy_calls.OPEN)


def main() -> None:
    """Write the list."""
    names = listed(outcomes(lambda line: print(line, flush=True)))
    lines = "\n".join(f'    "{name}",' for name in sorted(names))
    MEANT.write_text(f"{_HEAD}MEANT = frozenset({{\n{lines}\n}})  # fmt: skip\n")
    print(len(names))


if __name__ == "__main__":
    main()
