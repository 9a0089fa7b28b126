"""Find what each engine of ``hagane prob`` decides within a time limit.

For each program and engine: the stated size (400 dice, 20 clients, ranges of 1,000), then sizes
that grow until a run takes longer than the limit, or is beyond the engine's own. Each attempt
runs in a process of its own. Run it with
``python benchmarks/prob_scale.py [--seconds 10] [--programs dice,gps] [--engines dynamic]``;
``storm`` needs stormpy in the same environment.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hagane.tools.prob import check, load_program
from hagane.tools.prob.engines.engines import ENGINES


@dataclass(frozen=True)
class Program:
    """A program of a size: what is said of it, its text, the stated size, and the smallest."""

    about: str
    text: Callable[[int], str]
    stated: int
    first: int


def dice(n: int) -> str:
    return f"""
letfun sum(n: int, acc: int) : int = if n = 0 then acc else sum(n - 1, acc + rand(1, 6)) in
(sum({n}, 0)) : {{x:int | Prob(x >= {n}) = 1}}
"""


def dispatcher(n: int) -> str:
    """Return n jobs for n clients; overload is more than four jobs for one of them."""
    return f"""
letfun share(jobs: int, clients: int) : int =
  if jobs = 0 then 0 else share(jobs - 1, clients) + (if flip(1 / clients) then 1 else 0) in
letfun overload(left: int, clients: int) : bool =
  if clients = 1 then left > 4
  else let mine = share(left, clients) in
       if mine > 4 then true else overload(left - mine, clients - 1) in
(overload({n}, {n})) : {{bad:bool | Prob(bad) <= 1}}
"""


def counters(n: int) -> str:
    """Return the same question asked job by job, with a counter for each client."""
    lines = [f"let c{client}_0 = 0 in" for client in range(n)]
    for job in range(n):
        lines.append(f"let d{job} = rand(1, {n}) in")
        lines += [
            f"let c{client}_{job + 1} = c{client}_{job} + "
            f"(if d{job} = {client + 1} then 1 else 0) in"
            for client in range(n)
        ]
    event = " \\/ ".join(f"c{client}_{n} > 4" for client in range(n))
    return "\n".join(lines) + f"\n({event}) : {{bad:bool | Prob(bad) <= 1}}\n"


def gps(n: int) -> str:
    return f"""
(let a = rand(-{n}, {n}) in
 let b = a + rand(0, {n}) in
 not (b - a >= {n}) /\\ ((b + rand(0, {n // 2})) - (a + rand(0, {n // 2})) >= {n}))
 : {{x:bool | Prob(x) <= 1/2}}
"""


PROGRAMS = {
    "dice": Program("sum of n dice", dice, 400, 2),
    "dispatcher": Program("n jobs to n clients, one client after the other", dispatcher, 20, 2),
    "counters": Program("n jobs to n clients, one job after the other", counters, 20, 2),
    "gps": Program("speed trap with ranges of n", gps, 1000, 10),
}
LARGEST = 10_000


def _decide(text: str, engine: str, answer: Any) -> None:
    try:
        check(load_program(text), engine)
        answer.put(("done", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024))
    except Exception as error:  # the parent reports whatever it is
        answer.put((type(error).__name__, 0))


def attempt(text: str, engine: str, seconds: float) -> tuple[str, float, int]:
    """Return how an engine fared with a program, the seconds and the MiB it took."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    class Answer:
        put = staticmethod(sender.send)

    process = multiprocessing.Process(target=_decide, args=(text, engine, Answer))
    began = time.perf_counter()
    process.start()
    process.join(seconds)
    taken = time.perf_counter() - began
    if process.is_alive():
        process.kill()
        process.join()
        return f"over {seconds:g} s", taken, 0
    if not receiver.poll():
        return f"ended with {process.exitcode}", taken, 0
    outcome, memory = receiver.recv()
    return outcome, taken, memory


def at_size(program: Program, engine: str, seconds: float, size: int) -> str:
    """Return how long a size takes, or what stops it."""
    outcome, taken, memory = attempt(program.text(size), engine, seconds)
    return f"{taken:.1f} s, {memory} MiB" if outcome == "done" else outcome


def largest(program: Program, engine: str, seconds: float) -> str:
    """Return the largest size that an engine decides in time, and what stopped it."""
    best, size = "none", program.first
    while size <= LARGEST:
        outcome, taken, _ = attempt(program.text(size), engine, seconds)
        if outcome != "done":
            return f"{best} (at {size}: {outcome})"
        best = f"{size} in {taken:.1f} s"
        growth = 1.1 if taken > seconds / 4 else 1.5
        size = size + 1 if size < 12 else round(size * growth)
    return f"{best} and more"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--engines", default=",".join(ENGINES))
    given = parser.parse_args()
    print("| program | engine | stated size | largest |")
    print("|---|---|---|---|")
    for name in given.programs.split(","):
        program = PROGRAMS[name]
        for engine in given.engines.split(","):
            stated = at_size(program, engine, given.seconds, program.stated)
            most = largest(program, engine, given.seconds)
            print(
                f"| {program.about} | {engine} | n = {program.stated}: {stated} | {most} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
