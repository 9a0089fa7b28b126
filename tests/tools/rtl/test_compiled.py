"""The compiled model and its gates against plain evaluation."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from hagane.symbolic import bitvector as bv
from hagane.symbolic.interpret import evaluate
from hagane.symbolic.logic import both, choose, either, equal, less, negate
from hagane.symbolic.term import Term, bits, const, variable
from hagane.tools.rtl.circuit.cycle import CycleModel, Input
from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.circuit.machine import PointKey
from hagane.tools.rtl.circuit.simulate import Simulator, goals_of
from hagane.tools.rtl.compiled.engine import Engine
from hagane.tools.rtl.compiled.plain import PlainEngine
from hagane.tools.rtl.cover import load
from hagane.tools.rtl.proofs.blast import Blaster
from hagane.tools.rtl.proofs.gates import Copy, Gates
from hagane.tools.rtl.search.search import toggle_goals

DESIGNS = Path(__file__).parent / "designs"
WIDTHS = (1, 3, 8, 63, 64, 65, 100, 130)


def operations(width: int) -> dict[str, Term]:
    """Every operation on two values of a width, and on a narrow amount."""
    a, b = variable("a", bits(width)), variable("b", bits(width))
    amount, c = variable("n", bits(width)), variable("c", bits(1))
    small = bv.bit_and(amount, bv.value(min(127, (1 << width) - 1), width))
    found = {
        "add": bv.add(a, b), "sub": bv.subtract(a, b), "mul": bv.multiply(a, b),
        "and": bv.bit_and(a, b), "or": bv.bit_or(a, b), "xor": bv.bit_xor(a, b),
        "not": bv.invert(bv.add(a, b)),
        "shl": bv.shift_left(a, small), "lshr": bv.shift_right(a, small, signed=False),
        "ashr": bv.shift_right(a, small, signed=True), "far": bv.shift_left(a, amount),
        "concat": bv.concat([a, c, b]), "sext": bv.sign_extend(bv.add(a, b), width + 37),
        "cut": bv.extract(bv.concat([b, bv.add(a, b), c]), 2 * width - 1, width // 2),
        "choice": choose(bv.to_bool(c), a, b),
        "eq": bv.from_bool(equal(a, b)), "lt": bv.from_bool(less(a, b)),
        "slt": bv.from_bool(less(a, b, signed=True)),
        "logic": bv.from_bool(both(negate(equal(a, b)), either(less(a, b), bv.to_bool(c)))),
    }  # fmt: skip
    for signed in (False, True):
        found[f"div{signed}"] = bv.divide(a, b, signed=signed)
        found[f"rem{signed}"] = bv.remainder(a, b, signed=signed)
    return found


def numbers(source: random.Random, width: int) -> dict[str, int]:
    def one() -> int:
        whole = (1 << width) - 1
        kinds = (0, 1, whole, 1 << width - 1, source.getrandbits(width), source.getrandbits(4))
        return source.choice(kinds) & whole

    a = one()
    b = a if source.random() < 0.2 else one()
    return {"a": a, "b": b, "n": source.randrange(1 << min(width, 8)), "c": source.getrandbits(1)}


def model_of(terms: dict[str, Term], width: int) -> CycleModel:
    inputs = (*(Input(name, width, name) for name in "abn"), Input("c", 1, "c"))
    return CycleModel(
        inputs=inputs, clocks=(), resets=(), state={}, initial={}, points={}, asserts={},
        signals=terms, outputs={}, notices=(),
    )  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
def test_operations_in_c_are_those_of_plain_evaluation(width: int) -> None:
    terms = operations(width)
    model = model_of(terms, width)
    engine = Engine(model, toggle_goals(model))
    source = random.Random(width)
    rows = [numbers(source, width) for _ in range(60)]
    words = engine.rows(rows)
    assert engine.test(words) == tuple(rows)
    cycles, _ = engine.trace(words, engine.state({}))
    for row, cycle in zip(rows, cycles, strict=True):
        expected = {name: evaluate(term, row) for name, term in terms.items()}
        assert dict(zip(terms, cycle.signals, strict=True)) == expected


@pytest.mark.parametrize("width", [1, 3, 8, 17])
def test_operations_as_gates_are_those_of_plain_evaluation(width: int) -> None:
    gates = Gates()
    inputs = {name: [gates.input() for _ in range(width)] for name in "abn"}
    inputs["c"] = [gates.input()]
    blast = Blaster(gates, inputs)
    source = random.Random(width)
    for name, term in operations(width).items():
        literals = blast(term)
        for _ in range(12):
            row = numbers(source, width)
            values = {
                bit: row[key] >> at & 1
                for key, part in inputs.items()
                for at, bit in enumerate(part)
            }
            found = Copy(gates, Gates(), values)(literals)
            assert set(found) <= {0, 1}
            assert sum(bit << at for at, bit in enumerate(found)) == evaluate(term, row), name


@pytest.mark.parametrize("name", ["fifo", "divider", "uart_tx", "lane"])
def test_compiled_runs_meet_the_goals_of_plain_ones(name: str) -> None:
    _, model = load(read_sources([DESIGNS / f"{name}.sv"], name))
    goals = {**model.points, **toggle_goals(model)}
    simulator = Simulator(model, {})
    engine, plain = Engine(model, goals), PlainEngine(model, goals, simulator)
    source = random.Random(4)
    test = tuple(
        {item.name: source.getrandbits(item.width) for item in model.inputs} for _ in range(80)
    )
    rows = engine.rows(test)
    cycles = simulator.run(test)
    start = engine.warm(rows[0])
    met, after = engine.run(rows, start)
    assert engine.goals(met) == {g for g in goals_of(simulator, cycles) if g in engine.bit_of}
    assert engine.values(after) == cycles[-1].after
    assert plain.run(rows, plain.warm(rows[0]))[0] == met
    assert engine.trace(rows, start)[0] == cycles
    first = engine.until(rows, start, met)
    assert engine.run(rows[:first], start)[0] == met
    assert engine.run(rows[: first - 1], start)[0] != met
    assert plain.until(rows, start, met) == first


def test_a_random_run_is_made_again_from_its_seed() -> None:
    _, model = load(read_sources([DESIGNS / "fifo.sv"], "fifo"))
    engine = Engine(model, {**model.points, **toggle_goals(model)})
    start = engine.warm(engine.rows([{}])[0])
    cycles, records, met = engine.burst(start[None, :], 5, 3_000, 40, 0)
    assert cycles >= 3_000
    assert records
    for record in records:
        rows = engine.random_rows(record.seed, record.cycles)
        assert np.array_equal(engine.run(rows, start)[1], record.state)
        assert not engine.run(rows, start)[0] & ~met


def test_points_of_constant_conditions_have_no_bit() -> None:
    model = model_of({"y": variable("a", bits(2))}, 2)
    key = next(iter(load(read_sources([DESIGNS / "fifo.sv"], "fifo"))[1].points))
    assert isinstance(key, PointKey)
    engine = Engine(model, {key: const(True, equal(variable("a", bits(2)), bv.value(0, 2)).sort)})
    assert engine.bit_of == {}
