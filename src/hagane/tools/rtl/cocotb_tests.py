"""The test set as cocotb tests."""

from __future__ import annotations

from collections.abc import Sequence

from hagane.tools.rtl.model import CycleModel
from hagane.tools.rtl.simulate import Cycle, Simulator, Test

_BODY = '''

async def play(dut, rows):
    """Apply rows of inputs; compare the outputs of each settled cycle."""
    for clock in CLOCKS:
        find(dut, clock).value = 0
    for number, (inputs, outputs) in enumerate(rows):
        for name, value in zip(INPUTS, inputs):
            find(dut, name).value = value
        await Timer(5, "step")
        if number >= WARM:
            for name, value in zip(OUTPUTS, outputs):
                got = int(find(dut, name).value)
                assert got == value, f"row {number}: {name} is {got:#x}, expected {value:#x}"
        for clock in CLOCKS:
            find(dut, clock).value = 1
        await Timer(5, "step")
        for clock in CLOCKS:
            find(dut, clock).value = 0


def find(dut, name):
    """Return the port, or the element or member of a port, of that name."""
    head, *indices = name.replace("]", "").split("[")
    handle = dut
    for part in head.split("."):
        handle = getattr(handle, part)
    for index in indices:
        handle = handle[int(index)]
    return handle
'''


def write_cocotb(
    model: CycleModel, simulator: Simulator, tests: Sequence[Test], runs: Sequence[Sequence[Cycle]]
) -> str:
    """Return a Python module with one cocotb test that plays all tests in order."""
    inputs = [item.name for item in model.inputs]
    outputs = list(model.outputs)
    where = {name: index for index, name in enumerate(simulator.signal_names)}
    lines = [
        '"""Written by hagane rtl: the test set as cocotb tests."""',
        "",
        "import cocotb",
        "from cocotb.triggers import Timer",
        "",
        f"CLOCKS = {list(model.clocks)!r}",
        f"INPUTS = {inputs!r}",
        f"OUTPUTS = {outputs!r}",
        f"WARM = {1 if model.clocks else 0}  # rows before the first that counts",
        _BODY,
        "",
        "ROWS = [",
    ]
    first = True
    for number, (test, cycles) in enumerate(zip(tests, runs, strict=True)):
        lines.append(f"    # test {number}")
        for row, cycle in zip(test, cycles, strict=True):
            values = tuple(row.get(name, 0) for name in inputs)
            expected = tuple(cycle.signals[where[name]] for name in outputs)
            if first and model.clocks:
                lines.append(f"    ({values!r}, {expected!r}),")
            first = False
            lines.append(f"    ({values!r}, {expected!r}),")
    lines += [
        "]",
        "",
        "",
        "@cocotb.test()",
        "async def plays_the_test_set(dut):",
        '    """Every row gives the outputs that hagane computed and a simulator confirmed."""',
        "    await play(dut, ROWS)",
        "",
    ]
    return "\n".join(lines)
