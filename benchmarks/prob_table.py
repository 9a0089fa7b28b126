"""Thirty classic programs: ``hagane prob`` against known answers, and beside Storm.

Both are exact. hagane's time is that from the text to the distribution; Storm's that from the text
of the same Markov chain in PRISM's language, whose states hagane has found, to the probability.
Rounds alternate, medians are given. Run it with
``python benchmarks/prob_table.py [--rounds 5] [--only die,grass]``; without ``stormpy`` in the same
environment the answers are still compared.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from prob_programs import PROGRAMS, Program

from hagane.tools.prob import load_program, solve
from hagane.tools.prob.engines.chains.endless import Endless
from hagane.tools.prob.engines.chains.prism import Part, label, model_text
from hagane.tools.prob.engines.ledger import DEFAULT_LIMITS, main_unit
from hagane.tools.prob.language.recursion import deep_recursion


def by_hagane(text: str) -> tuple[Fraction, str]:
    solution = solve(load_program(text))
    found = Fraction(str(solution.distribution.get(True, Fraction(0))))
    return found, solution.engine.partition(" ")[0]


def chain_text(text: str) -> tuple[str, int]:
    program = load_program(text)
    with deep_recursion():
        chain = Endless(program, main_unit(program), DEFAULT_LIMITS, sums=False).explore(
            program.main
        )
    ends = {
        value: [i for i, s in enumerate(chain.states) if s.kind == "end" and s.key[0] is value]
        for value in (True, False)
    }
    labels = [label("yes", ends[True]), label("no", ends[False])]
    return model_text(program.source, [Part(chain.states)], labels), len(chain.states)


def by_storm(stormpy: Any, text: str, folder: Path) -> Fraction:
    path = folder / "program.pm"
    path.write_text(text, encoding="utf-8")
    model = stormpy.parse_prism_program(str(path))
    asked = stormpy.parse_properties('P=? [ F "yes" ]; P=? [ F "no" ]', model)
    built = stormpy.build_model[stormpy.Rational](model, asked)
    start = built.initial_states[0]
    yes, no = (
        Fraction(str(stormpy.model_checking(built, each).get_value(start))) for each in asked
    )
    return yes / (yes + no)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    try:
        import stormpy
    except ImportError:
        stormpy = None
        print("stormpy is not installed: answers are compared, and hagane's times stand alone\n")
    chosen = [p for p in PROGRAMS if not given.only or p.name in given.only.split(",")]
    print("| program | known from | probability | engine | states | hagane | Storm | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for program in chosen:
            ratio = _row(program, stormpy, Path(folder), given.rounds)
            if ratio is not None:
                ratios.append(ratio)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\n{len(ratios)} programs, Storm's time over hagane's: {mean:.2f} (geometric mean)")


def _row(program: Program, stormpy: Any, folder: Path, rounds: int) -> float | None:
    expected = program.answer()
    found, engine = by_hagane(program.text)
    if found != expected:
        raise SystemExit(f"{program.name}: hagane says {found}, the answer is {expected}")
    chain, states = chain_text(program.text)
    own, other = [], []
    for _ in range(rounds):
        start = time.process_time()
        by_hagane(program.text)
        own.append(time.process_time() - start)
        if stormpy is not None:
            start = time.process_time()
            answer = by_storm(stormpy, chain, folder)
            other.append(time.process_time() - start)
            if answer != expected:
                raise SystemExit(f"{program.name}: Storm says {answer}, the answer is {expected}")
    mine = statistics.median(own)
    shown = str(expected) if len(str(expected)) < 24 else f"{float(expected):.10g}"
    theirs, ratio = "", None
    if other:
        ratio = statistics.median(other) / mine
        theirs = f"{1000 * statistics.median(other):.1f} ms"
    print(
        f"| {program.name} | {program.origin} | {shown} | {engine} | {states} | "
        f"{1000 * mine:.1f} ms | {theirs} | {'' if ratio is None else f'{ratio:.2f}'} |",
        flush=True,
    )
    return ratio


if __name__ == "__main__":
    main()
