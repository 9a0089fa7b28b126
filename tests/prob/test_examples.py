from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from hagane.tools.prob import check, load_program
from hagane.tools.prob.claims.judge import terms_of
from hagane.tools.prob.engines.engines import run_unit
from hagane.tools.prob.engines.interpreter import Interpreter
from hagane.tools.prob.engines.ledger import main_unit
from hagane.tools.prob.engines.sampling import sample
from hagane.tools.prob.language.operators import evaluate
from hagane.tools.prob.language.program import VALUE

EXAMPLES = Path(__file__).parents[2] / "examples" / "prob"
PROGRAMS = sorted(EXAMPLES.glob("*.pml"))


def load(path: Path):
    return load_program(path.read_text(encoding="utf-8"), path.name)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_claim_of_the_worked_examples_holds(path: Path) -> None:
    report = check(load(path))
    assert report.verdicts
    assert report.holds


# Forty dice take diagrams seven seconds; random programs compare the engines on sums as well.
_FOR_DIAGRAMS = [path for path in PROGRAMS if path.stem != "dice"]


@pytest.mark.parametrize("engine", ["dynamic", "diagram"])
@pytest.mark.parametrize("path", _FOR_DIAGRAMS, ids=lambda path: path.stem)
def test_worked_examples_get_the_same_from_tables_and_diagrams(path: Path, engine: str) -> None:
    program = load(path)
    expected = run_unit(program, main_unit(program)).ledger
    found = run_unit(program, main_unit(program), engine).ledger
    assert found.result == expected.result
    assert found.tables == expected.tables


def sampled_within_four_standard_errors(path: Path, runs: int) -> None:
    """Compare each Prob of the last claim with its share among random runs."""
    program = load(path)
    unit = main_unit(program)
    verdict = check(program).verdicts[-1]
    (site,) = (s for s in unit.sites if s.claim.text == verdict.type and s.role == "annotation")
    exact = {item.event: item.value for item in verdict.probabilities}
    keys: Counter[object] = Counter()

    def watch(interpreter: Interpreter) -> None:
        keys.update(key for reached, key in interpreter.records if reached is site)

    sample(program, unit, runs, Random(1), watch)
    names = (*site.claim.variables, VALUE)
    compared = 0
    for term, (_, value) in zip(terms_of(site.claim.formula), exact.items(), strict=True):
        if not hasattr(term, "event"):
            continue
        given = inside = 0
        for key, count in keys.items():
            values = dict(zip(names, key, strict=True))
            if term.condition is None or evaluate(term.condition, values):
                given += count
                inside += count * evaluate(term.event, values)
        error = float(value * (1 - value) / given) ** 0.5
        assert abs(inside / given - float(value)) <= 4 * error
        compared += 1
    assert compared


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_ten_thousand_runs_agree_with_the_verdicts(path: Path) -> None:
    runs = 2_000 if path.stem in ("dice", "dispatcher", "walk") else 10_000
    sampled_within_four_standard_errors(path, runs)


@pytest.mark.long
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_million_runs_agree_with_the_verdicts(path: Path) -> None:
    sampled_within_four_standard_errors(path, 1_000_000)


def test_noisy_classifier_is_bounded_exactly() -> None:
    name = "noisy_classifier"
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    network = ([[3, -1], [-2, 4]], [5, -1], [2, -3], 7)
    point = [2, 3]
    report = module.check_point(network, point, True, "1/20")
    wrong = 0
    for dx in range(-module.NOISE, module.NOISE + 1):
        for dy in range(-module.NOISE, module.NOISE + 1):
            x, y = point[0] + dx, point[1] + dy
            hidden = [max(0, 3 * x - y + 5), max(0, -2 * x + 4 * y - 1)]
            wrong += (2 * hidden[0] - 3 * hidden[1] + 7 > 0) is not True
    assert report.verdicts[0].probabilities[0].value * 25 == wrong
    assert report.holds is (wrong <= 1)
