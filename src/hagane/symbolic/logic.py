"""Truth values: conjunction, disjunction, choice, equality and order, simplified when built.

``equal``, ``less`` and ``choose`` take terms of any sort; integers get sums and products here.
"""

from __future__ import annotations

from collections.abc import Iterable

from hagane.symbolic.term import BOOL, FALSE, INT, TRUE, Term, const, make


def negate(a: Term) -> Term:
    """Return ``not a``."""
    if a is TRUE:
        return FALSE
    if a is FALSE:
        return TRUE
    if a.op == "not":
        return a.args[0]
    return make("not", (a,), None, BOOL)


def both(*terms: Term) -> Term:
    """Return the conjunction of ``terms``."""
    if len(terms) == 2:
        a, b = terms
        if a is TRUE or a is b:
            return b
        if b is TRUE:
            return a
        if a is FALSE or b is FALSE:
            return FALSE
    return _junction("and", terms, TRUE, FALSE)


def either(*terms: Term) -> Term:
    """Return the disjunction of ``terms``."""
    if len(terms) == 2:
        a, b = terms
        if a is FALSE or a is b:
            return b
        if b is FALSE:
            return a
        if a is TRUE or b is TRUE:
            return TRUE
    return _junction("or", terms, FALSE, TRUE)


def implies(a: Term, b: Term) -> Term:
    """Return ``a`` implies ``b``."""
    return either(negate(a), b)


def _junction(op: str, terms: Iterable[Term], neutral: Term, absorbing: Term) -> Term:
    kept: dict[Term, None] = {}
    for term in terms:
        for part in term.args if term.op == op else (term,):
            if part is absorbing:
                return absorbing
            if part is not neutral:
                kept[part] = None
    for part in kept:
        if part.op == "not" and part.args[0] in kept:
            return absorbing
    if op == "and":
        known = _pinned(kept)
        if known is None:
            return FALSE
        kept = known
    if op == "and" and any(part.op == "or" and set(part.args) & kept.keys() for part in kept):
        # a and (a or b) is a.
        kept = {part: None for part in kept if part.op != "or" or not set(part.args) & kept.keys()}
    elif op == "or":
        kept = _absorb(kept)
        for part in kept:
            if part.op == "not" and part.args[0] in kept:
                return absorbing
        if absorbing in kept:
            return absorbing
    if not kept:
        return neutral
    if len(kept) == 1:
        return next(iter(kept))
    return make(op, tuple(kept), None, BOOL)


def _pinned(kept: dict[Term, None]) -> dict[Term, None] | None:
    """Drop ``x != 3`` beside ``x == 5``; None where ``x == 3`` stands beside ``x == 5``."""
    pinned: dict[Term, Term] = {}
    for part in kept:
        constant = part.op == "eq" and part.args[1].is_const
        if constant and pinned.setdefault(part.args[0], part) is not part:
            return None
    if not pinned:
        return kept
    return {
        part: None
        for part in kept
        if not (
            part.op == "not"
            and part.args[0].op == "eq"
            and part.args[0].args[1].is_const
            and part.args[0].args[0] in pinned
        )
    }


def _absorb(kept: dict[Term, None]) -> dict[Term, None]:
    """Apply ``(x and c) or (x and not c) = x`` while it shortens the disjunction."""
    parts = {frozenset(part.args if part.op == "and" else (part,)): part for part in kept}
    if len(parts) > 16:
        return kept
    changed = False
    again = True
    while again and len(parts) > 1:
        again = False
        for factors in list(parts):
            for factor in factors:
                partner = (factors - {factor}) | {negate(factor)}
                if partner in parts:
                    rest = factors - {factor}
                    del parts[factors], parts[partner]
                    parts[rest] = both(*sorted(rest, key=id)) if rest else TRUE
                    changed = again = True
                    break
            if again:
                break
    return dict.fromkeys(parts.values()) if changed else kept


def choose(condition: Term, yes: Term, no: Term) -> Term:
    """Return ``yes`` where ``condition`` holds, else ``no``; both of one sort."""
    if condition is TRUE or yes is no:
        return yes
    if condition is FALSE:
        return no
    if condition.op == "not":
        return choose(condition.args[0], no, yes)
    if yes.op == "ite" and yes.args[0] is condition:
        yes = yes.args[1]
    if no.op == "ite" and no.args[0] is condition:
        no = no.args[2]
    if yes is no:
        return yes
    if yes.sort is BOOL:
        if yes is TRUE:
            return either(condition, no)
        if yes is FALSE:
            return both(negate(condition), no)
        if no is TRUE:
            return either(negate(condition), yes)
        if no is FALSE:
            return both(condition, yes)
    return make("ite", (condition, yes, no), None, yes.sort)


def equal(a: Term, b: Term) -> Term:
    """Return ``a == b``; both of one sort."""
    if a is b:
        return TRUE
    if a.is_const and b.is_const:
        return FALSE
    if a.is_const:
        a, b = b, a
    if b.is_const:
        if a.sort is BOOL:
            return a if b is TRUE else negate(a)
        if a.op == "ite" and (a.args[1].is_const or a.args[2].is_const):
            return _equal_choice(a, b)
        if a.op == "concat":
            return _equal_parts(a, int(b.data))
        if a.op == "bvnot":
            return equal(a.args[0], const(~int(b.data), b.sort))
    return make("eq", (a, b), None, BOOL)


def _equal_choice(a: Term, b: Term) -> Term:
    """Compare nested choices between constants with a constant, arm by arm."""
    arms = []
    while a.op == "ite" and (a.args[1].is_const or a.args[2].is_const):
        condition, yes, no = a.args
        if not yes.is_const:
            condition, yes, no = negate(condition), no, yes
        arms.append((condition, yes))
        a = no
    result = equal(a, b)
    for condition, arm in reversed(arms):
        result = choose(condition, equal(arm, b), result)
    return result


def _equal_parts(a: Term, value: int) -> Term:
    """Compare a concatenation part by part if a part is a constant, to decide early."""
    if not any(part.is_const for part in a.args):
        return make("eq", (a, const(value, a.sort)), None, BOOL)
    conditions = []
    for part in reversed(a.args):
        conditions.append(equal(part, const(value, part.sort)))
        value >>= part.width
    return both(*conditions)


def less(a: Term, b: Term, *, signed: bool = False, strict: bool = True) -> Term:
    """Return ``a < b`` (or ``a <= b``) of integers or bit vectors."""
    if a is b:
        return FALSE if strict else TRUE
    if a.is_const and b.is_const:
        x, y = number(a, signed), number(b, signed)
        return TRUE if (x < y if strict else x <= y) else FALSE
    if not strict:
        return negate(less(b, a, signed=signed))
    if b.is_const and not signed and a.sort is not INT and b.data == 0:
        return FALSE
    return make("slt" if signed and a.sort is not INT else "lt", (a, b), None, BOOL)


def number(term: Term, signed: bool) -> int:
    """Return the number that a constant stands for."""
    value = int(term.data)
    if signed and term.sort.kind == "bits" and value >> (term.width - 1):
        value -= 1 << term.width
    return value


def int_sum(a: Term, b: Term) -> Term:
    """Return the sum of two integers."""
    if a.is_const and b.is_const:
        return const(a.data + b.data, INT)
    if a.is_const and a.data == 0:
        return b
    if b.is_const and b.data == 0:
        return a
    return make("int_add", (a, b), None, INT)


def int_product(a: Term, b: Term) -> Term:
    """Return the product of two integers."""
    if a.is_const and b.is_const:
        return const(a.data * b.data, INT)
    if a.is_const:
        a, b = b, a
    if b.is_const and b.data in (0, 1):
        return b if b.data == 0 else a
    return make("int_mul", (a, b), None, INT)


def int_floordiv(a: Term, b: Term) -> Term:
    """Return the quotient of two integers, rounded down; the divisor is positive."""
    if a.is_const and b.is_const and b.data != 0:
        return const(a.data // b.data, INT)
    return make("int_div", (a, b), None, INT)


def int_mod(a: Term, b: Term) -> Term:
    """Return the remainder of two integers, not negative; the divisor is positive."""
    if a.is_const and b.is_const and b.data != 0:
        return const(a.data % b.data, INT)
    return make("int_mod", (a, b), None, INT)
