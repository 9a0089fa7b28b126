"""Random modules: the model against Verilator, its compiled form and its gates against numbers."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hagane.tools.rtl.circuit.simulate import Simulator
from hagane.tools.rtl.compiled.engine import Engine
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.proofs.circuit import Circuit
from hagane.tools.rtl.proofs.gates import AND, INPUT, XOR, Gates
from hagane.tools.rtl.search.search import toggle_goals

from .random_modules import compared, together, written
from .wider_modules import compared as compared_wider
from .wider_modules import rows_of, wider


def evaluated(gates: Gates, given: Mapping[int, int]) -> list[int]:
    """Return the values of all nodes; ``given`` are those of the literals of inputs."""
    values = [0] * len(gates.kind)
    for literal, value in given.items():
        values[literal >> 1] = value
    for node, (kind, arguments) in enumerate(zip(gates.kind, gates.arguments, strict=True)):
        if kind == INPUT:
            continue
        a = [values[literal >> 1] ^ (literal & 1) for literal in arguments]
        if kind == AND:
            values[node] = a[0] & a[1]
        elif kind == XOR:
            values[node] = a[0] ^ a[1]
        else:
            values[node] = a[1] if a[0] else a[2]
    return values


@pytest.mark.parametrize(
    "seeds", [range(60, 62), pytest.param(range(62, 72), marks=pytest.mark.long)]
)
def test_compiled_runs_and_gates_are_as_plain_numbers(seeds: Sequence[int], tmp_path: Path) -> None:
    _, model = load(written(together(seeds), "top", tmp_path))
    simulator, draw = Simulator(model, {}), random.Random(seeds[0])
    rows = [{item.name: draw.getrandbits(item.width) for item in model.inputs} for _ in range(100)]
    plain = simulator.run_all([tuple(rows)])[0]
    engine = Engine(model, toggle_goals(model))
    words = engine.rows(rows)
    compiled, _ = engine.trace(words, engine.warm(words[0]))
    assert [cycle.signals for cycle in compiled] == [cycle.signals for cycle in plain]

    circuit = Circuit(model)
    bits = [circuit.bits(model.signals[name]) for name in simulator.signal_names]
    for row, before, cycle in zip(rows[1:6], plain, plain[1:6], strict=False):
        given = {}
        state = dict(before.after)
        for struck in (True, False):
            for place, numbers in ((circuit.inputs, row), (circuit.state, state)):
                for name, part in place.items():
                    given |= {bit: numbers[name] >> at & 1 for at, bit in enumerate(part)}
            values = evaluated(circuit.gates, given)
            found = iter(circuit.struck)
            if struck:  # asynchronous resets act first
                state = {
                    name: sum(
                        (values[bit >> 1] ^ (bit & 1)) << at
                        for at, bit in enumerate(next(found) for _ in part)
                    )
                    for name, part in circuit.state.items()
                }
        numbers = tuple(
            sum((values[bit >> 1] ^ (bit & 1)) << at for at, bit in enumerate(part))
            for part in bits
        )
        assert numbers == cycle.signals


@pytest.mark.long
@pytest.mark.usefixtures("verilator")
def test_random_modules_are_as_in_verilator() -> None:
    differences, _ = compared((1, 2, 5, 6, 7, 8, 9, 10), 120)
    assert differences == []


@pytest.mark.parametrize("seeds", [range(2, 4), pytest.param(range(4, 16), marks=pytest.mark.long)])
def test_compiled_runs_of_the_wider_language_are_as_plain_numbers(
    seeds: Sequence[int], tmp_path: Path
) -> None:
    for seed in seeds:
        _, model = load(written(wider(seed), f"m{seed}", tmp_path / str(seed)))
        simulator = Simulator(model, {})
        rows = rows_of(simulator, 60, seed)
        plain = simulator.run_all([rows])[0]
        engine = Engine(model, toggle_goals(model))
        words = engine.rows(rows)
        compiled, _ = engine.trace(words, engine.warm(words[0]))
        assert [cycle.signals for cycle in compiled] == [cycle.signals for cycle in plain]


@pytest.mark.long
@pytest.mark.usefixtures("verilator")
@pytest.mark.parametrize("seed", [2, 3, 16, 20])
def test_random_modules_of_the_wider_language_are_as_in_verilator(
    seed: int, tmp_path: Path
) -> None:
    assert compared_wider(written(wider(seed), f"m{seed}", tmp_path), 120, tmp_path, seed) == []
