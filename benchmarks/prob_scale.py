"""Find the largest size that each engine of ``hagane prob`` decides within a time limit.

Sizes grow until a run takes longer than the limit, or is beyond the engine's own; each runs in a
process of its own. Run it with ``python benchmarks/prob_scale.py [--seconds 10]``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from typing import Any

from hagane.tools.prob import check, load_program

DICE = """
letfun sum(n: int, acc: int) : int = if n = 0 then acc else sum(n - 1, acc + rand(1, 6)) in
(sum({n}, 0)) : {{x:int | Prob(x >= {n}) = 1}}
"""

# As many jobs as clients; overload is more than four jobs for one of them.
DISPATCHER = """
letfun share(jobs: int, clients: int) : int =
  if jobs = 0 then 0 else share(jobs - 1, clients) + (if flip(1 / clients) then 1 else 0) in
letfun overload(left: int, clients: int) : bool =
  if clients = 1 then left > 4
  else let mine = share(left, clients) in
       if mine > 4 then true else overload(left - mine, clients - 1) in
(overload({n}, {n})) : {{bad:bool | Prob(bad) <= 1}}
"""

GPS = """
(let a = rand(-{n}, {n}) in
 let b = a + rand(0, {n}) in
 not (b - a >= {n}) /\\ ((b + rand(0, {half})) - (a + rand(0, {half})) >= {n}))
 : {{x:bool | Prob(x) <= 1/2}}
"""

PROGRAMS = {"dice": (DICE, 2), "dispatcher": (DISPATCHER, 2), "gps": (GPS, 10)}
LARGEST = 3000


def _decide(text: str, engine: str, answer: Any) -> None:
    try:
        check(load_program(text), engine)
        answer.put("done")
    except Exception as error:  # the parent reports whatever it is
        answer.put(type(error).__name__)


def attempt(text: str, engine: str, seconds: float) -> tuple[str, float]:
    """Return how an engine fared with a program, and the seconds it took."""
    answer: Any = multiprocessing.Queue()
    process = multiprocessing.Process(target=_decide, args=(text, engine, answer))
    began = time.perf_counter()
    process.start()
    process.join(seconds)
    taken = time.perf_counter() - began
    if process.is_alive():
        process.kill()
        process.join()
        return f"over {seconds:g} s", taken
    return answer.get() if not answer.empty() else "no answer", taken


def largest(template: str, engine: str, seconds: float, start: int) -> str:
    """Return the largest size that an engine decides in time, and what stopped it."""
    best, size = 0, start
    while size <= LARGEST:
        outcome, taken = attempt(template.format(n=size, half=size // 2), engine, seconds)
        if outcome != "done":
            return f"{best} (at {size}: {outcome})"
        best = size
        size = size + 1 if size < 8 else round(size * (1.1 if taken > seconds / 4 else 1.5))
    return f"{best} and more"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    given = parser.parse_args()
    for name, (template, start) in PROGRAMS.items():
        for engine in ("enumerate", "diagram", "dynamic", "storm"):
            found = largest(template, engine, given.seconds, start)
            print(f"{name:>10} {engine:>10}: {found}", flush=True)


if __name__ == "__main__":
    main()
