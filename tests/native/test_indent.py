"""Generated C as people read it: the same tokens, one statement a line; names of functions."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import onnx
import pytest

from hagane.native.kernels.indent import indented
from hagane.native.kernels.names import function_name, named
from hagane.symbolic import symbol
from tests.native.models import compiled, session
from tests.native.test_safety_names import growing, network

Made = Callable[[str], tuple[onnx.ModelProto, dict[str, np.ndarray]]]


def test_blocks_are_indented_and_values_are_not() -> None:
    code = (
        "void f(int n) { for (int i = 0; i < n; i++) { vf a = {0}; if (a[0] > 1) { g(a); } else\n"
        "{ h((vf){1}); } } int t[2][2] = {{1, 2}, {3, 4}}; }"
    )
    assert indented(code).splitlines() == [
        "void f(int n) {",
        "  for (int i = 0; i < n; i++) {",
        "    vf a = {0};",
        "    if (a[0] > 1) {",
        "      g(a);",
        "    } else {",
        "      h((vf){1});",
        "    }",
        "  }",
        "  int t[2][2] = {{1, 2}, {3, 4}};",
        "}",
    ]


def test_assembly_keeps_its_lines() -> None:
    code = (
        'void f(void) {\n  __asm__ volatile(\n    "mov %0, %1\\n\\t"\n    "ret; {x}"\n'
        '    : : "r"(s));\n}'
    )
    assert indented(code).splitlines() == [
        "void f(void) {",
        "  __asm__ volatile(",
        '      "mov %0, %1\\n\\t"',
        '      "ret; {x}"',
        '      : : "r"(s));',
        "}",
    ]


def test_strings_comments_and_directives_stay_whole() -> None:
    code = "#define A(x) { x; }\nint a; // one; two {\nchar *s = \"} ; {\"; /* { ; */ char c = '{';"
    assert indented(code).splitlines() == [
        "#define A(x) { x; }",
        "int a;",
        "// one; two {",
        'char *s = "} ; {";',
        "/* { ; */ char c = '{';",
    ]


@pytest.mark.parametrize("make", [network, growing])
def test_kernels_keep_their_tokens(make: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    proto, feed = make("")
    kernels = compiled(monkeypatch, lambda: session(proto).run(None, feed))
    codes = [kernel.code for kernel in kernels if kernel.code]
    assert len(codes) > 3
    for code in codes:
        text = indented(code)
        assert "".join(text.split()) == "".join(code.split())
        assert re.findall(r'"[^"]*"', text) == re.findall(r'"[^"]*"', code)
        assert text.endswith("\n}\n")
        plain = [line for line in text.splitlines() if '"' not in line]
        assert max(map(len, plain)) <= 160
        assert not [line for line in plain if line.startswith("  ") and line.strip() == ""]


def test_names_are_made_of_operators_and_sizes() -> None:
    assert function_name("Conv+Relu 'a name'", [(1, 64, 56, 56)]) == "conv_relu_64x56x56"
    assert function_name("to blocks 'x'", [(2, 8), (3,)]) == "to_blocks_2x8"
    assert function_name("Add 'n'", [(symbol("batch"), 8)]) == "add_nx8"
    assert function_name("A+B+C+D+E+F 'n'", [()]) == "a_b_c_d_2_more_1"
    assert function_name("'\u0416; x'", []) == "x"
    assert function_name("\u0416", [(2,) * 9]) == "kernel_9d"
    assert named("conv_3x3", []) == "conv_3x3"
