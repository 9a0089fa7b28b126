"""Run the models in Chainer's style on Chainer itself, and print what their variables are.

Chainer 7.8.1 needs an environment of its own: Python 3.11 with ``numpy==1.26.4`` and
``setuptools<70``, then ``pip install --no-build-isolation chainer==7.8.1``. With its Python::

    python tests/outside/chainer_oracle.py cases [NAME ...]
    python tests/outside/chainer_oracle.py mistakes [NAME ...]
    python tests/outside/chainer_oracle.py trace NAME [SYMBOL=SIZE ...]
    python tests/outside/chainer_oracle.py serve

``cases`` runs every case, or those named, with the first of each symbol's sizes and then, symbol
by symbol, with each of the others. ``mistakes`` runs every seeded mistake, or those of the cases
named: it must raise at its line for the sizes at which it fails, at which the right model must
run, and must not raise for those at which it passes. ``trace`` prints, as JSON, the distinct
shapes and dtypes of every value that the model's file assigns or returns; symbols left out have
the first of their sizes. ``serve`` does the same for each line of its input, ``{"case": NAME,
"sizes": {SYMBOL: SIZE}, "source": TEXT}``: the text, if there is one, replaces the model's. A
model that raises is answered with ``{"case": ..., "sizes": ..., "error": TEXT, "line": LINE}``.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.models.case import Case, load  # noqa: E402
from tests.models.catalogue_chainer import CHAINER  # noqa: E402
from tests.models.inputs import draw_arrays  # noqa: E402
from tests.models.mistake import Mistake  # noqa: E402
from tests.models.mistakes_chainer import MISTAKES  # noqa: E402
from tests.models.tracing import line_of_error, trace_source  # noqa: E402

CASES = {case.name: case for case in CHAINER}


def make_target(case: Case, source: str | None = None) -> Callable[..., Any]:
    """Return the bound method of a new object that the case names, as Chainer is by default."""
    import chainer
    import numpy as np

    np.float = float  # a name that Chainer 7 uses and NumPy 1.24 dropped
    np.random.seed(0)
    chainer.config.train = True
    instance = eval(case.make, vars(load(case.path, source)))
    return getattr(instance, case.target.partition(".")[2] or "__call__")


def run(case: Case, sizes: Mapping[str, int], source: str | None = None) -> Any:
    """Run the case's model, or another text of it."""
    return make_target(case, source)(**draw_arrays(case, sizes))


def first_sizes(case: Case) -> dict[str, int]:
    """Return the first of each symbol's sizes."""
    return {symbol: sizes[0] for symbol, sizes in case.sizes.items()}


def sizes_of(case: Case) -> Iterator[dict[str, int]]:
    """Yield the first of all sizes, and each of the others with the first of the rest."""
    first = first_sizes(case)
    yield first
    for symbol, sizes in case.sizes.items():
        for size in sizes[1:]:
            yield {**first, symbol: size}


def check_case(case: Case) -> str | None:
    """Return what is wrong with the case, None if all is well."""
    seconds = []
    for sizes in sizes_of(case):
        start = time.process_time()
        try:
            run(case, sizes)
        except Exception as error:
            return f"{sizes}: {type(error).__name__}: {error}"
        seconds.append(time.process_time() - start)
    print(f"{case.name}: {len(seconds)} runs, the slowest {max(seconds):.2f} s of processor time")
    return None


def check_mistake(mistake: Mistake) -> str | None:
    """Return what is wrong with the mistake, None if Chainer refuses it where it says."""
    case = CASES[mistake.case]
    source = mistake.apply(case.path.read_text(encoding="utf-8"))
    expected = mistake.line_number(source)
    if mistake.fails is None:
        return "no sizes at which it fails"
    try:
        run(case, mistake.fails)
        if mistake.passes is not None:
            run(case, mistake.passes, source)
    except Exception as error:
        return f"raises where it must not: {type(error).__name__}: {error}"
    try:
        run(case, mistake.fails, source)
    except Exception as error:
        line = line_of_error(case.path, error)
        summary = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
        if line != expected:
            where = source.splitlines()[line - 1].strip() if line else "nowhere"
            return f"raises at line {line} ({where}), expected line {expected}: {summary}"
        print(f"{case.name}: {mistake.kind}: line {line}: {summary}")
        return None
    return f"expected an error at line {expected}, got none, with {mistake.fails}"


def trace(case: Case, sizes: Mapping[str, int], source: str | None = None) -> dict[str, Any]:
    """Return the values of the case's model at the sizes, or its error, ready for JSON."""
    answer: dict[str, Any] = {"case": case.name, "sizes": dict(sizes)}
    inputs = draw_arrays(case, sizes)
    try:
        target = make_target(case, source)
        text = source or case.path.read_text(encoding="utf-8")
        values = trace_source(text, case.path, target, **inputs)
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return {**answer, "error": message, "line": line_of_error(case.path, error)}
    return {
        **answer,
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


def serve() -> int:
    """Answer each line of the input with a line; return 0 at its end."""
    for line in sys.stdin:
        request = json.loads(line)
        case = CASES[request["case"]]
        sizes = {**first_sizes(case), **request.get("sizes", {})}
        print(json.dumps(trace(case, sizes, request.get("source"))), flush=True)
    return 0


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit status."""
    warnings.simplefilter("ignore")
    match arguments:
        case ["serve"]:
            return serve()
        case ["trace", name, *settings] if name in CASES:
            pairs = (setting.split("=") for setting in settings)
            sizes = first_sizes(CASES[name]) | {symbol: int(size) for symbol, size in pairs}
            print(json.dumps(trace(CASES[name], sizes)))
            return 0
        case ["cases", *names] if set(names) <= set(CASES):
            return report((name, check_case(CASES[name])) for name in names or CASES)
        case ["mistakes", *names] if set(names) <= set(CASES):
            return report(
                (f"{mistake.case}: {mistake.kind}", check_mistake(mistake))
                for mistake in MISTAKES
                if not names or mistake.case in names
            )
    print(__doc__, f"The cases are {', '.join(CASES)}.", sep="\n", file=sys.stderr)
    return 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
