"""Terms as C: one straight function that computes a cycle from inputs and state.

A value of up to 64 bits is one word; a wider one is several, the lowest first. ``drive.c`` has the
operations on several words, and the driver of the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hagane.symbolic.term import Term, postorder

_CHUNK = 400


def words_of(width: int) -> int:
    """Return how many words hold a value of so many bits; a truth value takes one."""
    return max(1, (width + 63) // 64)


def emit(
    places: Mapping[str, tuple[str, int]],
    following: Sequence[Term],
    flags: Sequence[Term],
    values: Sequence[Term],
    name: str = "evaluate",
) -> str:
    """Return C that defines ``name(x, s, n, o)``.

    Args:
        places: For each unknown the array (``x`` inputs, ``s`` state) and the word where it lies.
        following: The next value of each state, which goes to ``n`` in this order.
        flags: Truth values, which go to ``o`` first, 64 to a word.
        values: Bit vectors, which follow there.
        name: The function's name.
    """
    return _Emitter(places, name).text(following, flags, values)


class _Emitter:
    def __init__(self, places: Mapping[str, tuple[str, int]], name: str):
        self._places = places
        self._name = name
        self._at: dict[Term, int] = {}
        self._words = 0
        self._constants: dict[tuple[int, int], str] = {}

    def text(self, following: Sequence[Term], flags: Sequence[Term], values: Sequence[Term]) -> str:
        lines = []
        for term in postorder([*following, *flags, *values]):
            if not term.is_const:
                self._at[term] = self._words
                self._words += words_of(term.width)
                lines.append(self._statement(term))
        at = 0
        for term in following:
            lines += self._copied("n", at, term)
            at += words_of(term.width)
        for start in range(0, len(flags), 64):
            group = enumerate(flags[start : start + 64])
            parts = (f"{self._word(term)} << {bit}" for bit, term in group if not _never(term))
            lines.append(f"o[{start // 64}] = {' | '.join(parts) or '0'};")
        at = (len(flags) + 63) // 64
        for term in values:
            lines += self._copied("o", at, term)
            at += words_of(term.width)
        chunks, calls = [], []
        for number, start in enumerate(range(0, len(lines), _CHUNK)):
            body = "\n  ".join(lines[start : start + _CHUNK])
            chunks.append(
                f"static void {self._name}{number}(const u64 *x, const u64 *s, u64 *n, u64 *o) {{\n"
                f"  (void)x; (void)s; (void)n; (void)o;\n  {body}\n}}"
            )
            calls.append(f"{self._name}{number}(x, s, n, o);")
        return "\n".join(
            [
                f"#define v {self._name}_values",
                f"static u64 v[{max(1, self._words)}];",
                *(
                    f"static const u64 {name}[] = {{{_literals(number, count)}}};"
                    for (number, count), name in self._constants.items()
                ),
                *chunks,
                f"static void {self._name}(const u64 *x, const u64 *s, u64 *n, u64 *o) {{",
                *(f"  {call}" for call in calls),
                "}",
                "#undef v",
                "",
            ]
        )

    def _word(self, term: Term) -> str:
        """Return the one word of a narrow value, or the lowest of a wide one."""
        if term.is_const:
            return f"{int(term.data) & 0xFFFFFFFFFFFFFFFF}ULL"
        return f"v[{self._at[term]}]"

    def _pointer(self, term: Term) -> str:
        if not term.is_const:
            return f"(v + {self._at[term]})"
        key = (int(term.data), words_of(term.width))
        return self._constants.setdefault(key, f"{self._name}_c{len(self._constants)}")

    def _copied(self, array: str, at: int, term: Term) -> list[str]:
        count = words_of(term.width)
        if count == 1:
            return [f"{array}[{at}] = {self._word(term)};"]
        return [f"{array}[{at + k}] = {self._pointer(term)}[{k}];" for k in range(count)]

    def _statement(self, t: Term) -> str:
        """Return the statements that compute a term that is no constant."""
        if any(arg.width > 64 for arg in t.args) or t.width > 64:
            return self._wide(t)
        target = f"v[{self._at[t]}]"
        if t.op == "var":
            place = self._places.get(t.data)
            return f"{target} = {f'{place[0]}[{place[1]}]' if place else '0'};"
        return f"{target} = {self._narrow(t)};"

    def _narrow(self, t: Term) -> str:
        a = [self._word(arg) for arg in t.args]
        mask = f"{(1 << t.width) - 1}ULL" if t.width else "1ULL"
        inner = t.args[0].width
        signed = [f"extended({text}, {inner})" for text in a]
        match t.op:
            case "not":
                return f"!{a[0]}"
            case "and" | "or":
                return f" {'&' if t.op == 'and' else '|'} ".join(a)
            case "ite":
                return f"{a[0]} ? {a[1]} : {a[2]}"
            case "eq":
                return f"{a[0]} == {a[1]}"
            case "lt":
                return f"{a[0]} < {a[1]}"
            case "slt":
                return f"(long long){signed[0]} < (long long){signed[1]}"
            case "concat":
                shift, pieces = t.width, []
                for text, arg in zip(a, t.args, strict=True):
                    shift -= arg.width
                    pieces.append(f"{text} << {shift}")
                return " | ".join(pieces)
            case "extract":
                return f"{a[0]} >> {t.data[1]} & {mask}"
            case "sext":
                return f"{signed[0]} & {mask}"
            case "bvnot":
                return f"~{a[0]} & {mask}"
            case "bvand" | "bvor" | "bvxor":
                return f"{a[0]} {_BITWISE[t.op]} {a[1]}"
            case "add" | "sub" | "mul":
                return f"({a[0]} {_ARITHMETIC[t.op]} {a[1]}) & {mask}"
            case "shl":
                return f"{a[1]} < {t.width} ? {a[0]} << ({a[1]} & 63) & {mask} : 0"
            case "lshr":
                return f"{a[1]} < {t.width} ? {a[0]} >> ({a[1]} & 63) : 0"
            case "ashr":
                amount = f"({a[1]} < 63 ? {a[1]} : 63)"
                return f"(u64)((long long){signed[0]} >> {amount}) & {mask}"
            case "udiv":
                return f"{a[1]} ? {a[0]} / ({a[1]} | !{a[1]}) : 0"
            case "urem":
                return f"{a[1]} ? {a[0]} % ({a[1]} | !{a[1]}) : 0"
            case "sdiv" | "srem":
                return f"{t.op}({signed[0]}, {signed[1]}) & {mask}"
        raise AssertionError(f"an operation '{t.op}' in a circuit")

    def _wide(self, t: Term) -> str:
        at, count = self._at[t], words_of(t.width)
        target = f"v + {at}"
        p = [self._pointer(arg) for arg in t.args]
        inner = t.args[0].width if t.args else 0
        n = words_of(inner)
        top = f"{(1 << (t.width % 64 or 64)) - 1}ULL"
        match t.op:
            case "var":
                place = self._places.get(t.data)
                if place is None:
                    return ""
                array, where = place
                return " ".join(f"v[{at + k}] = {array}[{where + k}];" for k in range(count))
            case "eq":
                return f"v[{at}] = {' & '.join(f'({p[0]}[{k}] == {p[1]}[{k}])' for k in range(n))};"
            case "lt":
                return f"v[{at}] = w_less({p[0]}, {p[1]}, {n});"
            case "slt":
                return f"v[{at}] = w_signed_less({p[0]}, {p[1]}, {inner});"
            case "ite":
                condition = self._word(t.args[0])
                return " ".join(
                    f"v[{at + k}] = {condition} ? {p[1]}[{k}] : {p[2]}[{k}];" for k in range(count)
                )
            case "concat":
                shift, pieces = t.width, [f"w_zero({target}, {count});"]
                for text, arg in zip(p, t.args, strict=True):
                    shift -= arg.width
                    pieces.append(f"w_put({target}, {shift}, {text}, {arg.width});")
                return " ".join(pieces)
            case "extract":
                return f"w_get({target}, {p[0]}, {t.data[1]}, {t.width});"
            case "sext":
                return f"w_extend({target}, {t.width}, {p[0]}, {inner});"
            case "bvnot":
                lines = [f"v[{at + k}] = ~{p[0]}[{k}];" for k in range(count)]
                return " ".join([*lines, f"v[{at + count - 1}] &= {top};"])
            case "bvand" | "bvor" | "bvxor":
                sign = _BITWISE[t.op]
                return " ".join(
                    f"v[{at + k}] = {p[0]}[{k}] {sign} {p[1]}[{k}];" for k in range(count)
                )
            case "add" | "sub" | "mul" | "udiv" | "urem" | "sdiv" | "srem":
                return f"w_{t.op}({target}, {p[0]}, {p[1]}, {t.width});"
            case "shl" | "lshr" | "ashr":
                amount = f"w_small({p[1]}, {words_of(t.args[1].width)})"
                return f"w_{t.op}({target}, {p[0]}, {t.width}, {amount});"
        raise AssertionError(f"an operation '{t.op}' in a circuit")


_BITWISE = {"bvand": "&", "bvor": "|", "bvxor": "^"}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}


def _never(term: Term) -> bool:
    return term.is_const and not term.data


def _literals(number: int, count: int) -> str:
    return ", ".join(f"{number >> 64 * k & 0xFFFFFFFFFFFFFFFF}ULL" for k in range(count))
