"""hagane's evaluator against a simulator, on circuits and rows that hypothesis makes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hagane.tools.rtl.circuit.elaborate import read_sources
from hagane.tools.rtl.replay.icarus import find_icarus

from .test_language import replayed

INPUTS = {"a": (7, True), "b": (5, False), "c": (12, True), "d": (1, False), "e": (9, False)}
_UNARY = ("~", "-", "+", "!", "&", "|", "^", "~&", "~|", "~^")
_BINARY = (
    "+", "-", "*", "&", "|", "^", "~^", "&&", "||", "==", "!=", "<", "<=", ">", ">=",
)  # fmt: skip


def literals() -> st.SearchStrategy[str]:
    def written(width: int, number: int, signed: bool) -> str:
        return f"{width}'{'s' if signed else ''}d{number % (1 << width)}"

    return st.builds(written, st.integers(1, 10), st.integers(0, 1023), st.booleans())


@st.composite
def part_selects(draw: st.DrawFn) -> str:
    name = draw(st.sampled_from([name for name, (width, _) in INPUTS.items() if width > 1]))
    high = draw(st.integers(0, INPUTS[name][0] - 1))
    low = draw(st.integers(0, high))
    return draw(
        st.sampled_from(
            [f"{name}[{high}:{low}]", f"{name}[{low}]", f"{name}[{low} +: {high - low + 1}]"]
        )
    )


ONES = st.sampled_from(("1'b1", "2'sd1"))


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({}{})".format, st.sampled_from(_UNARY), inner.map(lambda x: f"({x})")),
        st.builds("({} {} {})".format, inner, st.sampled_from(_BINARY), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(("<<", ">>", "<<<", ">>>")), inner),
        # A division by zero is x in the language.
        st.builds("({} {} (({}) | {}))".format, inner, st.sampled_from("/%"), inner, ONES),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("{{{}, {}}}".format, inner, inner),
        st.builds("{{{}{{{}}}}}".format, st.integers(1, 3), inner),
        st.builds("{}({})".format, st.sampled_from(("$signed", "$unsigned")), inner),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(list(INPUTS)), literals(), part_selects()), larger, max_leaves=8
)


@st.composite
def circuits(draw: st.DrawFn) -> str:
    """Return a module of assignments and of one process with branches."""
    ports = [
        f"input {'signed ' if signed else ''}[{width - 1}:0] {name}"
        for name, (width, signed) in INPUTS.items()
    ]
    body = []
    for number in range(draw(st.integers(1, 5))):
        width, sign = draw(st.integers(1, 20)), draw(st.sampled_from(("", "signed ")))
        ports.append(f"output {sign}[{width - 1}:0] y{number}")
        body.append(f"  assign y{number} = {draw(EXPRESSIONS)};")
    e = [draw(EXPRESSIONS) for _ in range(6)]
    ports.append("output reg signed [10:0] z")
    body += [
        "  always @* begin",
        f"    z = {e[0]};",
        f"    if ({e[1]}) z[6:2] = {e[2]};",
        f"    else case ({e[3]})",
        f"      3'd1, b: z = z + ({e[4]});",
        f"      default: z = z ^ ({e[5]});",
        "    endcase",
        "  end",
    ]
    return "\n".join([f"module m({', '.join(ports)});", *body, "endmodule", ""])


@pytest.mark.skipif(find_icarus() is None, reason="Icarus is not installed (package 'iverilog')")
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(text=circuits(), seed=st.integers(0, 1 << 16))
def test_expressions_are_as_in_icarus(text: str, seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="hagane-test-") as name:
        folder = Path(name)
        (folder / "m.sv").write_text(text)
        replay, run = replayed(
            read_sources([folder / "m.sv"], "m"), 40, folder, "icarus", seed=seed
        )
    assert replay.differences == ()
    assert replay.compared >= 7
    assert "PASSED" in run.output
