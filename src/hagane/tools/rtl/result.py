"""The result of a search: the standing of every point, and its form as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.simulate import Test
from hagane.tools.rtl.replay.replay import Difference
from hagane.tools.rtl.replay.verilator import Run
from hagane.tools.rtl.search.assertions import Standing
from hagane.tools.rtl.search.search import Found

KINDS = ("line", "branch", "statement", "condition", "toggle", "cover")


@dataclass(frozen=True, slots=True)
class Status:
    """Where a point stands: covered with a test, dead with a proof, reachable, waived, or unknown.

    ``reachable`` points need more cycles than a replay takes: ``cycles``, by a proved loop or
    inputs held so long.
    """

    kind: str
    where: str
    status: str
    test: int | None = None
    why: str = ""
    cycles: int | None = None
    file: str = ""
    line: int = 0


@dataclass(slots=True)
class Result:
    """The result of ``cover``."""

    top: str
    statuses: list[Status]
    tests: list[Test]
    found: Found
    model: CycleModel
    simulator: str | None
    line_covered: int
    differences: tuple[Difference, ...]
    defects: list[str]
    notices: list[str]
    seconds: float
    testbench: str
    csv: str
    cocotb: str = ""
    ports: str = ""
    outputs: list[list[dict[str, int]]] = field(default_factory=list)
    assertions: list[Standing] = field(default_factory=list)
    growth: list[tuple[int, int]] = field(default_factory=list)
    random_growth: list[tuple[int, int]] = field(default_factory=list)
    replayed: Run | None = None
    signals_compared: int = 0
    unmatched: list[str] = field(default_factory=list)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return total, covered, dead, reachable, waived and unknown for each kind of point.

        ``dead_within_cycles`` says how many of the dead are proved for so many cycles only.
        """
        table = {}
        for kind in KINDS:
            mine = [item for item in self.statuses if item.kind == kind]
            table[kind] = {
                "total": len(mine),
                **{
                    word: sum(item.status == word for item in mine)
                    for word in ("covered", "dead", "reachable", "waived", "unknown")
                },
                "dead_within_cycles": sum(
                    item.status == "dead" and item.cycles is not None for item in mine
                ),
            }
        return table


def to_json(result: Result) -> dict[str, object]:
    """Return the result in the form of ``hagane rtl cover --json``."""
    return {
        "top": result.top,
        "points": result.counts(),
        "tests": len(result.tests),
        "replayed": {"simulator": result.simulator, "line_covered": result.line_covered},
        "seconds": round(result.seconds, 3),
        "cycles": sum(len(test) for test in result.tests),
        "rounds": result.found.rounds,
        "random_vectors": result.found.random_vectors,
        "assertions": [
            {
                "assert": item.name,
                "status": item.status,
                "test": item.test,
                "cycle": item.cycle,
                "inputs": item.inputs,
                "why": item.why,
            }
            for item in result.assertions
        ],
        "defects": result.defects,
        "notices": result.notices,
        "dead": [
            {"kind": item.kind, "where": item.where, "why": item.why, "cycles": item.cycles}
            for item in result.statuses
            if item.status == "dead"
        ],
        "reachable": [
            {"kind": item.kind, "where": item.where, "why": item.why, "cycles": item.cycles}
            for item in result.statuses
            if item.status == "reachable"
        ],
        "waived": [
            {"kind": item.kind, "where": item.where, "why": item.why}
            for item in result.statuses
            if item.status == "waived"
        ],
        "unknown": [
            {"kind": item.kind, "where": item.where, "why": item.why}
            for item in result.statuses
            if item.status == "unknown"
        ],
    }
