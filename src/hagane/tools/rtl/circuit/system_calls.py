"""The system functions that circuits use: sizes, casts, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hagane.symbolic import bitvector as bv
from hagane.symbolic.logic import choose, equal, less, negate
from hagane.symbolic.term import Term
from hagane.tools.rtl.circuit.machine import Machine
from hagane.tools.rtl.circuit.memory_files import READING, read_memory

if TYPE_CHECKING:
    from hagane.tools.rtl.circuit.expressions import Expressions
    from hagane.tools.rtl.circuit.scope import Scope

SILENT = frozenset(
    {
        "$display", "$displayb", "$displayh", "$write", "$strobe", "$monitor", "$info",
        "$warning", "$error", "$fatal", "$finish", "$stop", "$dumpfile", "$dumpvars",
        "$assertoff", "$asserton", "$assertkill", "$timeformat", "$fflush",
    }
)  # fmt: skip


# Methods of enumerations; their names have no dollar.
OF_ENUMERATIONS = frozenset({"first", "last", "next", "prev", "num"})


def system_call(x: Expressions, scope: Scope, e: Any, m: Machine) -> Any:
    """Return the result of a system function; tasks that only print give one bit of zero."""
    name = str(e.subroutineName)
    arguments = list(e.arguments)
    if name in SILENT:
        return bv.value(0, 1)
    if m.past is not None and name in ("$past", "$rose", "$fell", "$stable", "$changed"):
        return _sampled(x, scope, e, m)
    if name == "$sampled":
        return x.bits(arguments[0], m)
    if name in READING:
        read_memory(x, scope, e, m)
        return bv.value(0, 1)
    width = max(1, int(e.type.bitWidth))
    if name in OF_ENUMERATIONS:
        return _member(x, scope, e, m)
    if name in ("$signed", "$unsigned"):
        return x.bits(arguments[0], m)
    if name == "$countones":
        a = x.bits(arguments[0], m)
        return bv.ones(a, width)
    if name in ("$onehot", "$onehot0"):
        return _onehot(x.bits(arguments[0], m), zero_too=name == "$onehot0")
    constant = scope.constant(e)
    if constant is not None and getattr(constant, "value", None) is not None:
        return x.from_constant(constant, e.type, e, m)
    if name == "$isunknown":
        x.bits(arguments[0], m)
        return bv.value(0, 1)
    if name == "$clog2":
        return _clog2(x.bits(arguments[0], m), width)
    if name == "$bits":
        return bv.value(int(arguments[0].type.bitstreamWidth), width)
    return x.refuse(e, f"system function {name}")


def _member(x: Expressions, scope: Scope, e: Any, m: Machine) -> Any:
    """Return a member of an enumeration, or how many there are (IEEE 1800-2017, 6.19.5)."""
    name, (given, *count) = str(e.subroutineName), list(e.arguments)
    kind = given.type.canonicalType
    if not kind.isEnum:
        return x.refuse(e, f"system function {name}")
    values = [int(member.value.value) for member in kind]
    width = int(e.type.bitWidth)
    if name in ("first", "last", "num"):
        found = {"first": values[0], "last": values[-1], "num": len(values)}
        return bv.value(found[name], width)
    steps = scope.constant(count[0]) if count else None
    if count and steps is None:
        return x.refuse(e, f"{name} of a number of members that is no constant")
    far = (int(steps.value) if steps is not None else 1) * (1 if name == "next" else -1)
    now = x.bits(given, m)
    result = bv.value(0, width)  # of what is no member
    for place, value in enumerate(values):
        other = bv.value(values[(place + far) % len(values)], width)
        result = choose(equal(now, bv.value(value, now.width)), other, result)
    return result


def _sampled(x: Expressions, scope: Scope, e: Any, m: Machine) -> Any:
    """Return a function of values on earlier cycles."""
    assert m.past is not None
    name, arguments = str(e.subroutineName), list(e.arguments)
    now = x.bits(arguments[0], m)
    if name == "$past":
        given = [a for a in arguments[1:] if a.kind.name != "EmptyArgument"]
        if len(given) > 1 or (given and len(arguments) > 2):
            return x.refuse(e, "$past with a gate or a clock")
        cycles = 1
        if given:
            found = scope.constant(given[0])
            cycles = int(found.value) if found is not None else 0
        if not 1 <= cycles <= 64:
            return x.refuse(e, "$past of other than 1 to 64 cycles")
        for _ in range(cycles):
            now = m.past(now)
        return now
    if name in ("$stable", "$changed"):
        same = equal(now, m.past(now))
        return bv.from_bool(same if name == "$stable" else negate(same))
    bit = bv.extract(now, 0, 0)
    old = m.past(bit)
    if name == "$rose":
        return bv.bit_and(bit, bv.invert(old))
    return bv.bit_and(bv.invert(bit), old)


def _onehot(a: Term, *, zero_too: bool) -> Term:
    below = bv.bit_and(a, bv.subtract(a, bv.value(1, a.width)))
    single = equal(below, bv.value(0, a.width))
    if zero_too:
        return bv.from_bool(single)
    return bv.bit_and(bv.from_bool(single), bv.from_bool(bv.to_bool(a)))


def _clog2(a: Term, width: int) -> Term:
    result = bv.value(0, width)
    for power in range(min(a.width, 64)):
        above = less(bv.value(1 << power, a.width), a)
        result = choose(above, bv.value(power + 1, width), result)
    return choose(negate(bv.to_bool(a)), bv.value(0, width), result)
