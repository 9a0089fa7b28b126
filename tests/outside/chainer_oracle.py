"""Run the models in Chainer's style on Chainer itself, and print what their variables are.

Chainer 7.8.1 needs an environment of its own: Python 3.11 with ``numpy==1.26.4`` and
``setuptools<70``, then ``pip install --no-build-isolation chainer==7.8.1``. With its Python::

    python tests/outside/chainer_oracle.py cases [NAME ...]
    python tests/outside/chainer_oracle.py mistakes [NAME ...]
    python tests/outside/chainer_oracle.py trace NAME [SYMBOL=SIZE ...]

``cases`` runs every case, or those named, with the first of each symbol's sizes and then, symbol
by symbol, with each of the others. ``mistakes`` runs every seeded mistake, or those of the cases
named: it must raise at its line for the sizes at which it fails, or, if it goes wrong in silence,
must not raise; the right model must run at the same sizes. ``trace`` prints, as JSON, the
distinct shapes and dtypes of every value that the model's file assigns or returns; symbols left
out have the first of their sizes.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.models.case import Case, Mistake  # noqa: E402
from tests.models.catalogue_chainer import CASES  # noqa: E402
from tests.models.inputs import make_inputs  # noqa: E402
from tests.models.tracing import line_of_error, trace_values  # noqa: E402

FOLDER = ROOT / "tests" / "models"


def load(path: Path) -> ModuleType:
    """Return the module of the file."""
    spec = importlib.util.spec_from_file_location(f"model_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_target(case: Case, path: Path) -> Callable[..., Any]:
    """Return the bound method of a new object that the case names, from the file."""
    import chainer
    import numpy as np

    np.float = float  # a name that Chainer 7 uses and NumPy 1.24 dropped
    np.random.seed(0)
    chainer.config.train = True
    instance = eval(case.make, vars(load(path)))
    _, _, method = case.target.partition(".")
    return getattr(instance, method or "__call__")


def run(case: Case, sizes: Mapping[str, int], path: Path | None = None) -> Any:
    """Run the case's model, from another file if one is given."""
    return make_target(case, path or FOLDER / case.file)(**make_inputs(case, sizes))


def sizes_of(case: Case) -> Iterator[dict[str, int]]:
    """Yield the first of all sizes, and each of the others with the first of the rest."""
    first = {symbol: sizes[0] for symbol, sizes in case.sizes.items()}
    yield first
    for symbol, sizes in case.sizes.items():
        for size in sizes[1:]:
            yield {**first, symbol: size}


def check_case(case: Case) -> str | None:
    """Return what is wrong with the case, None if all is well."""
    slowest = 0.0
    runs = 0
    for sizes in sizes_of(case):
        start = time.process_time()
        try:
            run(case, sizes)
        except Exception as error:
            return f"{sizes}: {type(error).__name__}: {error}"
        slowest = max(slowest, time.process_time() - start)
        runs += 1
    print(f"{case.name}: {runs} runs, the slowest {slowest:.2f} s of processor time")
    return None


def spoil(case: Case, mistake: Mistake) -> str:
    """Return the text of the case's model with the mistake.

    Raises:
        ValueError: The old text, or the line, does not occur exactly once.
    """
    text = (FOLDER / case.file).read_text(encoding="utf-8")
    if text.count(mistake.old) != 1:
        raise ValueError(f"{mistake.old!r} occurs {text.count(mistake.old)} times, not once")
    text = text.replace(mistake.old, mistake.new)
    found = sum(mistake.line in line for line in text.splitlines())
    if found != 1:
        raise ValueError(f"{mistake.line!r} occurs in {found} lines, not in one")
    return text


def check_mistake(case: Case, mistake: Mistake) -> str | None:
    """Return what is wrong with the mistake, None if Chainer sees it as it is described."""
    text = spoil(case, mistake)
    expected = 1 + [mistake.line in line for line in text.splitlines()].index(True)
    first = next(sizes_of(case))
    sizes = {**first, **(mistake.fails or {})}
    run(case, sizes)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(case.file).name
        path.write_text(text, encoding="utf-8")
        try:
            run(case, sizes, path)
        except Exception as error:
            line = line_of_error(path, error)
            summary = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
            if mistake.fails is None:
                return f"expected no error, got one at line {line}: {summary}"
            if line != expected:
                where = text.splitlines()[line - 1].strip() if line else "nowhere"
                return f"raises at line {line} ({where}), expected line {expected}: {summary}"
            print(f"{case.name}: {mistake.kind}: line {line}: {summary}")
            return None
    if mistake.fails is not None:
        return f"expected an error at line {expected}, got none, with {sizes}"
    print(f"{case.name}: {mistake.kind}: line {expected}: silent")
    return None


def trace(case: Case, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Return the values of the case's model at the sizes, ready for JSON."""
    path = FOLDER / case.file
    values = trace_values(path, make_target(case, path), **make_inputs(case, sizes))
    return {
        "case": case.name,
        "sizes": dict(sizes),
        "values": [
            {
                "line": value.line,
                "name": value.name,
                "shape": list(value.shape),
                "dtype": value.dtype,
            }
            for value in values
        ],
    }


def report(results: Iterator[tuple[str, str | None]]) -> int:
    """Print what is wrong; return 1 if anything is."""
    wrong = 0
    for name, complaint in results:
        if complaint is not None:
            wrong += 1
            print(f"WRONG {name}: {complaint}")
    return int(wrong > 0)


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit status."""
    cases = {case.name: case for case in CASES}
    command, *names = arguments or [""]
    unknown = [name for name in names if "=" not in name and name not in cases]
    if (
        command not in ("cases", "mistakes", "trace")
        or unknown
        or (command == "trace" and not names)
    ):
        for name in unknown:
            print(f"unknown case {name!r}; known are {', '.join(cases)}", file=sys.stderr)
        print(__doc__, file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    if command == "trace":
        name, *settings = names
        chosen = dict(setting.split("=") for setting in settings)
        sizes = next(sizes_of(cases[name]))
        sizes.update((symbol, int(size)) for symbol, size in chosen.items())
        print(json.dumps(trace(cases[name], sizes)))
        return 0
    if command == "cases":
        return report((name, check_case(cases[name])) for name in names or cases)
    from tests.models.mistakes_chainer import MISTAKES

    return report(
        (f"{mistake.case}: {mistake.kind}", check_mistake(cases[mistake.case], mistake))
        for mistake in MISTAKES
        if not names or mistake.case in names
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
