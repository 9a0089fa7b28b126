"""The test set as cocotb tests.

cocotb reaches ports that are vectors by their names. For a circuit with other ports (interfaces,
unpacked arrays, escaped names) the tests drive a module around it, with one vector in and one out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hagane.tools.rtl.circuit.cycle import CycleModel
from hagane.tools.rtl.circuit.ports import Port
from hagane.tools.rtl.circuit.simulate import Cycle, Simulator, Test
from hagane.tools.rtl.circuit.values import Packed
from hagane.tools.rtl.replay.testbench import instantiate

_PLAY = '''

async def play(dut, rows):
    """Apply rows of inputs; compare the outputs of each settled cycle."""
    for clock, rest in CLOCKS.items():
        getattr(dut, clock).value = rest
    for number, (inputs, outputs) in enumerate(rows):
        rises, values = inputs[:TICKS], inputs[TICKS:]
        put(dut, values)
        await Timer(5, "step")
        if number >= WARM:
            for name, value, got in zip(OUTPUTS, outputs, get(dut)):
                assert got == value, f"row {number}: {name} is {got:#x}, expected {value:#x}"
        for at, (clock, rest) in enumerate(CLOCKS.items()):
            getattr(dut, clock).value = rest ^ (rises[at] if TICKS else 1)
        await Timer(5, "step")
        for clock, rest in CLOCKS.items():
            getattr(dut, clock).value = rest
'''
_BY_NAME = '''

def put(dut, values):
    """Set the inputs."""
    for name, value in zip(INPUTS, values):
        getattr(dut, name).value = value


def get(dut):
    """Return the outputs."""
    return [int(getattr(dut, name).value) for name in OUTPUTS]
'''
_BY_PLACE = '''

def put(dut, values):
    """Set the inputs, the first one highest in their vector."""
    whole = 0
    for width, value in zip(INPUTS.values(), values):
        whole = whole << width | value
    dut.stimulus.value = whole


def get(dut):
    """Return the outputs, the first one highest in their vector."""
    whole = int(dut.response.value)
    found = []
    for width in reversed(OUTPUTS.values()):
        found.insert(0, whole & (1 << width) - 1)
        whole >>= width
    return found
'''


def write_ports(
    model: CycleModel, ports: Sequence[Port], top: str, parameters: Mapping[str, str]
) -> str:
    """Return a module ``TOP_ports`` around the circuit if cocotb needs one, else nothing."""
    if all(_is_plain(port) for port in ports):
        return ""
    in_width = max(1, sum(item.width for item in model.inputs))
    out_width = max(1, sum(term.width for term in model.outputs.values()))
    together = ", ".join(_clock_ports(model))
    clocks = [f"  wire [{len(model.ticks) - 1}:0] hagane_clocks = {{{together}}};"]
    lines = [
        f"// Written by hagane rtl: the ports of {top} as vectors, for its cocotb tests.",
        f"module {top}_ports (",
        *(f"  input wire {name}," for name in _clock_ports(model)),
        f"  input wire [{in_width - 1}:0] stimulus,",
        f"  output wire [{out_width - 1}:0] response",
        ");",
        *(clocks if model.ticks else []),
        *instantiate(model, ports, top, parameters),
        *([] if model.outputs else ["  assign response = 0;"]),
        "endmodule",
    ]
    return "\n".join([*lines, ""])


def _clock_ports(model: CycleModel) -> list[str]:
    """Return the clocks of the module around a circuit."""
    if model.ticks:
        return [f"hagane_clock_{at}" for at in range(len(model.ticks))]
    return ["hagane_clock"] if model.clocks else []


def _is_plain(port: Port) -> bool:
    return (
        not port.interface and isinstance(port.variable.layout, Packed) and port.name.isidentifier()
    )


def write_cocotb(
    model: CycleModel,
    simulator: Simulator,
    tests: Sequence[Test],
    runs: Sequence[Sequence[Cycle]],
    top: str,
    *,
    wrapped: bool,
) -> str:
    """Return a Python module with one cocotb test that plays all tests in order.

    ``wrapped`` says that they drive the module of :func:`write_ports`.
    """
    inputs = {item.name: item.width for item in model.inputs}
    driven = {name: width for name, width in inputs.items() if name not in model.ticks}
    outputs = {name: term.width for name, term in model.outputs.items()}
    where = {name: index for index, name in enumerate(simulator.signal_names)}
    # The module around the circuit inverts clocks whose falling edge counts itself.
    clocks = (
        dict.fromkeys(_clock_ports(model), 0)
        if wrapped
        else {name: int(name in model.falling) for name in model.clocks}
    )
    toplevel = f"{top}_ports, of {top}_ports.sv" if wrapped else top
    lines = [
        f'"""Written by hagane rtl: the test set as cocotb tests; the top level is {toplevel}."""',
        "",
        "import cocotb",
        "from cocotb.triggers import Timer",
        "",
        f"CLOCKS = {clocks!r}  # with the levels on which they rest",
        f"TICKS = {len(model.ticks)}  # how many first values of a row say which clocks rise",
        f"INPUTS = {driven!r}  # with their widths",
        f"OUTPUTS = {outputs!r}",
        f"WARM = {1 if model.clocks else 0}  # rows before the first that counts",
        _PLAY,
        (_BY_PLACE if wrapped else _BY_NAME).strip("\n"),
        "",
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
