"""Einsum of any equation: a loop for each letter."""

from __future__ import annotations

import onnx_ir as ir

from hagane.native.kernels.written import coordinates, emit_written, is_real, loaded, stored
from hagane.native.lowering.facts import NotNative
from hagane.native.lowering.state import Lowering, Rule
from hagane.ops.linear.einsum import named_terms
from hagane.symbolic import Dim, product


def lower_einsum(low: Lowering, node: ir.Node) -> None:
    """Lower Einsum: letters of the result number its elements, the others are summed over."""
    xs = [low.forms.contiguous(value) for value in node.inputs]
    equation = str(low.facts.attributes(node)["equation"])
    terms, result = named_terms(equation, [len(x.shape) for x in xs])
    sizes: dict[str, Dim] = {}
    broadcast: list[str] = []
    for x, term in zip(xs, terms, strict=True):
        for letter, dim in zip(term, x.shape, strict=True):
            known = sizes.get(letter, 1)
            sizes[letter] = dim if known == 1 else known
            if known != dim and 1 not in (known, dim):
                broadcast.append(letter)
    out = node.outputs[0]
    y = low.forms.result(out)
    dtype = y.dtype
    if dtype.kind not in "iu" and not is_real(dtype):
        raise NotNative(f"element type {dtype}")
    letters = [c for c in sizes if c not in result]
    named = {letter: f"n_{ord(letter)}" for letter in sizes}
    at = {letter: f"i_{ord(letter)}" for letter in sizes}
    numbers: dict[str, Dim] = {named[letter]: dim for letter, dim in sizes.items()}
    factors, checks = [], []
    for number, (x, term) in enumerate(zip(xs, terms, strict=True)):
        places = []
        for axis, letter in enumerate(term):
            numbers[f"s{number}_{axis}"], numbers[f"d{number}_{axis}"] = (
                x.strides[axis],
                x.shape[axis],
            )
            step = f"s{number}_{axis}"
            if x.shape[axis] != sizes[letter]:
                checks.append(f"(d{number}_{axis} != 1 && d{number}_{axis} != {named[letter]})")
                step = f"(d{number}_{axis} == 1 ? 0 : {step})"
            places.append(f"{at[letter]} * {step}")
        index = " + ".join(places) or "0"
        factors.append(f"(S){loaded(x.dtype, f'x{number}[{index}]')}")
    loops = "".join(
        f"for (int64_t {at[c]} = 0; {at[c]} < {named[c]}; {at[c]}++)\n" for c in letters
    )
    total = "double" if is_real(dtype) else "uint64_t"
    text = f"""
{f"if ({' || '.join(checks)}) {{ hg_fail(thread, 0); return; }}" if checks else ""}
for (int64_t item = first; item < last; item++) {{
int64_t left = item;
{coordinates([at[c] for c in result], [named[c] for c in result]) if result else "(void)left;"}
S sum = 0;
{loops}sum += {" * ".join(factors)};
y[item] = {stored(dtype, "sum")};
}}"""
    emit_written(
        low.recorder, node, text,
        reads={f"x{i}": x for i, x in enumerate(xs)}, writes={"y": y}, sizes=numbers,
        types={"S": total}, items=y.size, each=product([sizes[c] for c in letters]), cost=2.0,
    )  # fmt: skip
    low.forms[out] = y


RULES: dict[tuple[str, str], Rule] = {("", "Einsum"): lower_einsum}
