"""Expressions as the computation wrote them: ``ceil((n - 2) / 2) + 1`` rather than ``n//2``.

The normal form of a size decides equality; a reader wants the formula that came from the layers.
Sums are collected; nothing else is rewritten.
"""

from __future__ import annotations

from fractions import Fraction

from hagane.symbolic.expression import Dim, Expr

# (text, whether it has to be bracketed as an operand)
_Part = tuple[str, bool]


def written_form(value: Dim) -> str:
    """Return ``value`` as the formula it was computed by if that is short, else its normal form."""
    if not isinstance(value, Expr):
        return str(value)
    if value.written is None:
        return str(value).replace("//", " // ")
    return _sum(value)


def _sum(value: Dim | Fraction) -> str:
    terms: dict[str, int] = {}
    constant = _collect(value, 1, terms)
    out = ""
    for text, sign in sorted(terms.items(), key=lambda item: item[1] < 0):
        times = abs(sign)
        body = text if times == 1 else f"{times}*{_bracket(text)}"
        if not out:
            out = body if sign > 0 else f"-{_bracket(body)}"
        else:
            out += f" + {body}" if sign > 0 else f" - {_bracket(body, sums_only=True)}"
    if not out:
        return str(constant)
    if constant:
        out += f" + {constant}" if constant > 0 else f" - {-constant}"
    return out


def _collect(value: Dim | Fraction, sign: int, terms: dict[str, int]) -> int:
    """Add the parts of a sum to ``terms`` and return its constant."""
    if not isinstance(value, Expr):
        return sign * int(value)
    if value.written is not None and value.written[0] == "negate":
        return _collect(value.written[1][0], -sign, terms)
    if value.written is not None and value.written[0] in "+-":
        operator, (left, right), _ = value.written
        return _collect(left, sign, terms) + _collect(
            right, sign if operator == "+" else -sign, terms
        )
    constant = 0
    if value.written is None:
        constant = int(value.terms.get((), 0))
        if constant:
            value = Expr({monomial: c for monomial, c in value.terms.items() if monomial})
    text = _term(value)
    count = terms.get(text, 0) + sign
    if count:
        terms[text] = count
    else:
        terms.pop(text, None)
    return sign * constant


def _term(value: Dim | Fraction) -> str:
    if not isinstance(value, Expr) or value.written is None:
        return str(value).replace("//", " // ")
    operator, operands, _ = value.written
    if operator == "floor":
        return _quotient(operands[0], operands[1])
    if operator == "ceil":
        if operands[1] == 1:
            return _bracket(_sum(operands[0]))
        return f"ceil({_bracket(_sum(operands[0]))} / {_bracket(_sum(operands[1]))})"
    return "*".join(_bracket(_sum(operand)) for operand in operands)


def _quotient(top: Dim | Fraction, bottom: Dim | Fraction) -> str:
    if bottom == 1:
        return _sum(top)
    return f"{_bracket(_sum(top))} // {_bracket(_sum(bottom))}"


def _bracket(text: str, *, sums_only: bool = False) -> str:
    depth = 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and char == " " and (not sums_only or text[index + 1] in "+-"):
            return f"({text})"
    if not sums_only and text.startswith("-"):
        return f"({text})"
    return text
