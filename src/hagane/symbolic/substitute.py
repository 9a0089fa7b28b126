"""Names in expressions: which there are, and expressions with numbers in their place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import lcm

from hagane.symbolic.bounds import maximum, minimum
from hagane.symbolic.expression import (
    Atom,
    Dim,
    Expr,
    Number,
    floordiv,
    mod,
    multiply,
    symbol,
)


def symbols_of(value: Dim) -> frozenset[str]:
    """Return the names that ``value`` depends on."""
    return value.names if isinstance(value, Expr) else frozenset()


def line_in(value: Dim, name: str) -> tuple[int, int] | None:
    """Return ``(a, b)`` of a size that is ``a * name + b`` with an ``a`` above 0, else None."""
    try:
        first = evaluate(value, {name: 0})
        step = evaluate(value, {name: 1}) - first
    except ZeroDivisionError:  # of a quotient by the name
        return None
    if not isinstance(first, int) or not isinstance(step, int) or step <= 0:
        return None
    return (step, first) if value == step * symbol(name) + first else None


def evaluate(value: Dim, sizes: Mapping[str, Dim]) -> Dim:
    """Return ``value`` with the names in ``sizes`` replaced; other names stay."""
    if not isinstance(value, Expr):
        return value
    total: Dim = 0
    for monomial, coefficient in value.terms.items():
        term: Dim = 1
        for atom, power in monomial:
            replaced = _evaluate_atom(atom, sizes)
            for _ in range(power):
                term = term * replaced
        total = total + multiply(term, coefficient)
    return total


def _evaluate_atom(atom: Atom, sizes: Mapping[str, Dim]) -> Dim:
    if atom.is_symbol:
        return sizes.get(atom.head, Expr({((atom, 1),): 1}))
    arguments = [evaluate(argument, sizes) for argument in atom.arguments]
    match atom.head:
        case "floor":
            return floordiv(arguments[0], arguments[1])
        case "mod":
            return mod(arguments[0], arguments[1])
        case "min":
            return minimum(*arguments)
        case _:
            return maximum(*arguments)


def number_of(value: Dim, sizes: Mapping[str, int]) -> int:
    """Return the number that ``value`` is where all its names have sizes.

    The result of ``evaluate``, without making an expression on the way.

    Raises:
        KeyError: A name has no size.
    """
    return int(_number(value, sizes))


def _number(value: Dim, sizes: Mapping[str, int]) -> Number:
    if not isinstance(value, Expr):
        return value
    total: Number = 0
    for monomial, coefficient in value.terms.items():
        term = coefficient
        for atom, power in monomial:
            if atom.is_symbol:
                factor: Number = sizes[atom.head]
            else:
                arguments = [_number(argument, sizes) for argument in atom.arguments]
                factor = _CALLS[atom.head](arguments)
            term = term * (factor if power == 1 else factor**power)
        total = total + term
    return total


_CALLS: Mapping[str, Callable[[list[Number]], Number]] = {
    "floor": lambda arguments: arguments[0] // arguments[1],
    "mod": lambda arguments: arguments[0] % arguments[1],
    "min": min,
    "max": max,
}


def python_text(value: Dim, names: Mapping[str, str]) -> str:
    """Return a Python expression for ``value``, given an identifier for each name in it.

    With integers for the names it gives the integer that ``number_of`` does.
    """
    if not isinstance(value, Expr):
        return f"({value})"
    # Coefficients may be fractions whose sum is whole.
    whole = lcm(*(Fraction(coefficient).denominator for coefficient in value.terms.values()))
    terms = [
        "*".join(
            [str(int(coefficient * whole)), *(_atom_text(*power, names) for power in monomial)]
        )
        for monomial, coefficient in value.terms.items()
    ]
    total = f"({'+'.join(terms) or '0'})"
    return total if whole == 1 else f"({total}//{whole})"


def _atom_text(atom: Atom, power: int, names: Mapping[str, str]) -> str:
    if atom.is_symbol:
        text = names[atom.head]
    elif atom.is_quotient:
        left, right = (python_text(argument, names) for argument in atom.arguments)
        text = f"({left}{'//' if atom.head == 'floor' else '%'}{right})"
    else:
        text = f"{atom.head}({', '.join(python_text(a, names) for a in atom.arguments)})"
    return text if power == 1 else f"{text}**{power}"


C_FLOOR = """static inline int64_t NAME(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}"""


def c_text(
    value: Dim, name: Callable[[str], str], floor: str, share: Callable[[str], str] = str
) -> str:
    """Return a C expression of ``int64_t`` for ``value``.

    Args:
        value: A size.
        name: From a name in it to C text.
        floor: The name of a function as ``C_FLOOR`` defines it.
        share: From the text of a rounded quotient, remainder, minimum or maximum to the name of a
            variable that holds it. Without one, the text of nested ones grows exponentially.
    """
    if not isinstance(value, Expr):
        return f"{value}L" if value >= 0 else f"({value}L)"
    # Coefficients may be fractions whose sum is whole.
    whole = lcm(*(Fraction(coefficient).denominator for coefficient in value.terms.values()))
    terms = [
        "*".join(
            [f"{int(coefficient * whole)}L"]
            + [_c_atom(atom, name, floor, share) for atom, power in monomial for _ in range(power)]
        )
        for monomial, coefficient in value.terms.items()
    ]
    total = f"({' + '.join(terms) or '0'})"
    return total if whole == 1 else f"{floor}({total}, {whole})"


def c_bound(value: Dim, name: Callable[[str], str], share: Callable[[str], str] = str) -> str:
    """Return a C expression of ``double`` that no number in ``c_text`` of a value exceeds.

    Args:
        value: A size.
        name: From a name in it to C text.
        share: From the text of a bound to the name of a variable that holds it.
    """
    if not isinstance(value, Expr):
        return f"{abs(value)}.0"
    whole = lcm(*(Fraction(coefficient).denominator for coefficient in value.terms.values()))
    terms = [
        "*".join(
            [f"{abs(int(coefficient * whole))}.0"]
            + [_atom_bound(atom, name, share) for atom, power in monomial for _ in range(power)]
        )
        for monomial, coefficient in value.terms.items()
    ]
    return f"({' + '.join(terms) or '0.0'})"


def _atom_bound(atom: Atom, name: Callable[[str], str], share: Callable[[str], str]) -> str:
    if atom.is_symbol:
        text = f"(double)({name(atom.head)})"
        return share(f"({text} < 0 ? -{text} : {text})")
    arguments = [c_bound(argument, name, share) for argument in atom.arguments]
    return share(f"({' + '.join(arguments)})")


def _c_atom(atom: Atom, name: Callable[[str], str], floor: str, share: Callable[[str], str]) -> str:
    if atom.is_symbol:
        return name(atom.head)
    first, *others = (c_text(argument, name, floor, share) for argument in atom.arguments)
    if atom.head == "floor":
        return share(f"{floor}({first}, {others[0]})")
    if atom.head == "mod":
        quotient = share(f"{floor}({first}, {others[0]})")
        return share(f"({first} - {others[0]} * {quotient})")
    for other in others:
        sign = "<" if atom.head == "min" else ">"
        first = share(f"({first} {sign} {other} ? {first} : {other})")
    return first
