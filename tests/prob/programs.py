"""Random programs, as text, each with at least one draw and a bounded number of runs."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Scope = Mapping[str, str]

QUIET = settings(
    max_examples=220,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@st.composite
def programs(draw: st.DrawFn, typed: bool = False) -> str:
    """Return a program that claims something about its value.

    Args:
        draw: Draws the parts.
        typed: Whether its function, if it has one, has a type that speaks of probabilities.
    """
    kind = draw(st.sampled_from(["int", "bool"]))
    scope: dict[str, str] = {}
    lines = []
    if draw(st.booleans()):
        lines.append(_function(draw, typed))
        scope["f"] = "function"
    for index in range(draw(st.integers(1, 3))):
        bound_kind = draw(st.sampled_from(["int", "bool", "tuple"]))
        name = f"v{index}"
        if bound_kind == "tuple":
            left, right = _int(draw, scope, 1), _bool(draw, scope, 1)
            lines.append(f"let ({name}, w{index}) = ({left}, {right}) in")
            scope = {**scope, name: "int", f"w{index}": "bool"}
        else:
            lines.append(f"let {name} = {_expression(draw, bound_kind, scope, 2)} in")
            scope = {**scope, name: bound_kind}
        if draw(st.integers(0, 4)) == 0:
            lines.append(f"observe ({_bool(draw, scope, 1)}) in")
    body = _expression(draw, kind, scope, 2)
    claim = "Prob(x) <= 1/2" if kind == "bool" else "Prob(x % 2 = 0) >= 1/3 /\\ E[x] >= 0"
    return "(" + "\n".join(lines) + f"\n{body})\n : {{x:{kind} | {claim}}}\n"


def _function(draw: st.DrawFn, typed: bool) -> str:
    scope = {"n": "int", "s": "int"}
    step = _int(draw, scope, 1)
    last = _int(draw, scope, 1)
    body = f"f(n - 1, {step})" if draw(st.booleans()) else f"{step} + f(n - 1, s)"
    definition = f"measure n = if n <= 0 then {last} else {body} in"
    if not typed:
        return f"letfun f(n: int, s: int) : int {definition}"
    bounded = draw(st.booleans())
    parameters = "n: {a:int | 0 <= a <= 2}, s: " + ("{b:int | 0 <= b <= 1}" if bounded else "int")
    result = "{r:int | E[r] >= 0 - 100 /\\ Prob(r % 2 = 0 | r >= 0 - 100) <= 1}"
    return f"letfun f({parameters}) : {result} {definition}"


def _expression(draw: st.DrawFn, kind: str, scope: Scope, depth: int) -> str:
    return _int(draw, scope, depth) if kind == "int" else _bool(draw, scope, depth)


def _int(draw: st.DrawFn, scope: Scope, depth: int) -> str:
    leaves = [name for name, kind in scope.items() if kind == "int"]
    forms = ["number", "rand"] + ["name"] * 2 * bool(leaves)
    if depth > 0:
        forms += ["arithmetic", "arithmetic", "if", "choose", "divide"]
        forms += ["call"] * ("f" in scope)
    match draw(st.sampled_from(forms)):
        case "number":
            return str(draw(st.integers(0, 4)))
        case "rand":
            low = draw(st.integers(-2, 2))
            return f"rand({low}, {low + draw(st.integers(0, 2))})"
        case "name":
            return draw(st.sampled_from(leaves))
        case "arithmetic":
            operator = draw(st.sampled_from("+-*"))
            return f"({_int(draw, scope, depth - 1)} {operator} {_int(draw, scope, depth - 1)})"
        case "divide":
            operator = draw(st.sampled_from("/%"))
            divisor = draw(st.sampled_from(["2", "3", "-2", _int(draw, scope, 0)]))
            return f"({_int(draw, scope, depth - 1)} {operator} {divisor})"
        case "if":
            then, otherwise = _int(draw, scope, depth - 1), _int(draw, scope, depth - 1)
            return f"(if {_bool(draw, scope, depth - 1)} then {then} else {otherwise})"
        case "choose":
            left, right = _int(draw, scope, depth - 1), _int(draw, scope, depth - 1)
            return f"choose {{1/3: {left}, 2/3: {right}}}"
        case _:
            return f"f({draw(st.integers(0, 2))}, {_int(draw, scope, 0)})"


def _bool(draw: st.DrawFn, scope: Scope, depth: int) -> str:
    leaves = [name for name, kind in scope.items() if kind == "bool"]
    forms = ["flip", "constant"] + ["name"] * 2 * bool(leaves)
    if depth > 0:
        forms += ["compare", "compare", "logic", "not", "if"]
    match draw(st.sampled_from(forms)):
        case "flip":
            return f"flip({draw(st.sampled_from(['1/2', '1/3', '0.9', '0', '1']))})"
        case "constant":
            return draw(st.sampled_from(["true", "false"]))
        case "name":
            return draw(st.sampled_from(leaves))
        case "compare":
            operator = draw(st.sampled_from(["<", "<=", "=", "==", "!=", ">", ">="]))
            return f"({_int(draw, scope, depth - 1)} {operator} {_int(draw, scope, depth - 1)})"
        case "logic":
            operator = draw(st.sampled_from(["/\\", "\\/", "=>"]))
            return f"({_bool(draw, scope, depth - 1)} {operator} {_bool(draw, scope, depth - 1)})"
        case "not":
            return f"not {_bool(draw, scope, depth - 1)}"
        case _:
            then, otherwise = _bool(draw, scope, depth - 1), _bool(draw, scope, depth - 1)
            return f"(if {_bool(draw, scope, depth - 1)} then {then} else {otherwise})"
