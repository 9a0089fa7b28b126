"""Exact probabilities by the model checker Storm, over the exported Markov chain.

Storm is asked in exact arithmetic; in floating point it gives 0.5000000000000002 for the chance
that one of six numbers is even. ``stormpy`` 2.0 or later is used where it is installed.
"""

from __future__ import annotations

import importlib
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from hagane.errors import HaganeError
from hagane.tools.prob.engines.chains.machine import explore
from hagane.tools.prob.engines.chains.prism import Part, label, model_text
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, Ledger, Limits, Unit
from hagane.tools.prob.language.program import Program


class NoStorm(HaganeError, ImportError):
    """Storm's Python interface is not installed, or too old."""

    def __init__(self, version: str | None = None) -> None:
        found = "which is not installed" if version is None else f"found {version}"
        super().__init__(
            f"the engine 'storm' needs stormpy 2.0 or later, {found}: "
            "pip install --upgrade stormpy; the other engines need nothing of the kind"
        )


def run_storm(program: Program, unit: Unit, limits: Limits = DEFAULT_LIMITS) -> Ledger:
    """Return the distributions of a unit, exactly, as Storm computes them.

    Raises:
        NoStorm: stormpy is not installed, or too old.
        PathError: Some possible run goes wrong.
        TooLarge: More states than ``limits.states``.
    """
    stormpy = _stormpy()
    chain = explore(program, unit, limits)
    wanted: dict[Any, list[int]] = {}
    for index, state in enumerate(chain.states):
        if state.kind == "claim":
            wanted.setdefault((state.site, state.key), []).append(index)
        elif state.kind == "end":
            wanted.setdefault((None, state.key), []).append(index)
    labels = [label(f"q{number}", states) for number, states in enumerate(wanted.values())]
    weights = _ask(stormpy, model_text(program.source, [Part(chain.states)], labels), len(labels))
    ledger = chain.calls
    ledger.size = len(chain.states)
    for (site, key), weight in zip(wanted, weights, strict=True):
        if site is None:
            ledger.result[key[0]] = weight
        else:
            ledger.tables.setdefault(site, {})[key] = weight
    return ledger


def _stormpy() -> Any:
    try:
        stormpy = importlib.import_module("stormpy")
    except ImportError:
        raise NoStorm from None
    # Before 2.0 there is no ``build_model[Rational]``.
    if int(stormpy.__version__.partition(".")[0]) < 2:
        raise NoStorm(stormpy.__version__)
    return stormpy


def _ask(stormpy: Any, text: str, count: int) -> list[Fraction]:
    """Return the probability of reaching each of the labels q0, q1, ..."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.pm"
        path.write_text(text, encoding="utf-8")
        model = stormpy.parse_prism_program(str(path))
        asked = ";".join(f'P=? [ F "q{number}" ]' for number in range(count))
        properties = stormpy.parse_properties(asked, model)
        built = stormpy.build_model[stormpy.Rational](model, properties)
        start = built.initial_states[0]
        results = [stormpy.model_checking(built, each) for each in properties]
        return [Fraction(str(result.get_value(start))) for result in results]
