"""Circuits whose model is not built in time: random rows in the simulator, and its own counts."""

from __future__ import annotations

import random
import re

from hagane.symbolic.term import bits, variable
from hagane.tools.rtl.circuit.clocks import synchronous_resets
from hagane.tools.rtl.circuit.cycle import CycleModel, Input, Reset
from hagane.tools.rtl.circuit.design import Design
from hagane.tools.rtl.circuit.simulate import Row, Test
from hagane.tools.rtl.circuit.values import leaves

_CLOCK = re.compile(r"(?:^|[._])(?:i_)?(?:clk|clock)(?:_i|_in)?$", re.I)
_ROWS = 2_000
_LENGTH = 100  # rows between resets


def ports_alone(design: Design) -> CycleModel:
    """Return a model that knows the ports; clocks and resets are told by their names."""
    inputs, outputs, clocks = [], {}, []
    for port in design.ports:
        for name, width in leaves(port.name, port.variable.layout):
            if port.direction != "In":
                outputs[name] = variable(name, bits(width))
            elif width == 1 and _CLOCK.search(name):
                clocks.append(name)
            else:
                inputs.append(Input(name, width, port.name))
    resets: list[Reset] = synchronous_resets(inputs, tuple(clocks), ())
    return CycleModel(
        inputs=tuple(inputs), clocks=tuple(clocks), resets=tuple(resets), state={}, initial={},
        points={}, asserts={}, signals={}, outputs=outputs, notices=tuple(design.notices),
    )  # fmt: skip


def random_tests(model: CycleModel, seed: int) -> list[Test]:
    """Return random rows, with the resets active in the first two of each test."""
    source = random.Random(seed)
    tests: list[Test] = []
    for _ in range(_ROWS // _LENGTH):
        test: list[Row] = []
        for number in range(_LENGTH):
            row = {item.name: source.getrandbits(item.width) for item in model.inputs}
            row.update((r.name, r.active if number < 2 else 1 - r.active) for r in model.resets)
            test.append(row)
        tests.append(tuple(test))
    return tests
