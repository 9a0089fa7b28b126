"""Terms with numbers for their unknowns: substitution, evaluation, compilation to Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from hagane.symbolic import bitvector as bv
from hagane.symbolic import logic
from hagane.symbolic.term import FALSE, TRUE, Assignment, Term, const, postorder, rewrite

Compiled = Callable[[Assignment], tuple[int, ...]]
_CHUNK = 1500


def rebuild(term: Term, args: tuple[Term, ...]) -> Term:
    """Return the operation of ``term`` over other arguments, simplified again."""
    if args == term.args:
        return term
    return _BUILD[term.op](args, term)


_BUILD: dict[str, Callable[[tuple[Term, ...], Term], Term]] = {
    "not": lambda a, _: logic.negate(a[0]),
    "and": lambda a, _: logic.both(*a),
    "or": lambda a, _: logic.either(*a),
    "ite": lambda a, _: logic.choose(*a),
    "eq": lambda a, _: logic.equal(*a),
    "lt": lambda a, _: logic.less(*a),
    "slt": lambda a, _: logic.less(*a, signed=True),
    "int_add": lambda a, _: logic.int_sum(*a),
    "int_mul": lambda a, _: logic.int_product(*a),
    "int_div": lambda a, _: logic.int_floordiv(*a),
    "int_mod": lambda a, _: logic.int_mod(*a),
    "concat": lambda a, _: bv.concat(a),
    "extract": lambda a, t: bv.extract(a[0], *t.data),
    "sext": lambda a, t: bv.sign_extend(a[0], t.width),
    "bvnot": lambda a, _: bv.invert(a[0]),
    "bvand": lambda a, _: bv.bit_and(*a),
    "bvor": lambda a, _: bv.bit_or(*a),
    "bvxor": lambda a, _: bv.bit_xor(*a),
    "add": lambda a, _: bv.add(*a),
    "sub": lambda a, _: bv.subtract(*a),
    "mul": lambda a, _: bv.multiply(*a),
    "udiv": lambda a, _: bv.divide(*a, signed=False),
    "sdiv": lambda a, _: bv.divide(*a, signed=True),
    "urem": lambda a, _: bv.remainder(*a, signed=False),
    "srem": lambda a, _: bv.remainder(*a, signed=True),
    "shl": lambda a, _: bv.shift_left(*a),
    "lshr": lambda a, _: bv.shift_right(*a, signed=False),
    "ashr": lambda a, _: bv.shift_right(*a, signed=True),
}


class Substitution:
    """Terms for unknowns; rewritten ones are remembered."""

    def __init__(self, terms: Mapping[Term, Term]):
        self._memo = dict(terms)

    def __call__(self, term: Term) -> Term:
        """Return ``term`` with the unknowns replaced."""
        found = self._memo.get(term)
        if found is None:
            rewrite((term,), rebuild, self._memo)
            found = self._memo[term]
        return found


def evaluate(term: Term, assignment: Assignment) -> int:
    """Return the number (or 0 and 1 for false and true) of ``term``; unset unknowns are 0."""
    memo: dict[Term, Term] = {}

    def step(node: Term, args: tuple[Term, ...]) -> Term:
        if node.op == "var":
            return const(assignment.get(node.data, 0), node.sort)
        return rebuild(node, args)

    rewrite((term,), step, memo)
    return int(memo[term].data)


def compile_terms(roots: Sequence[Term]) -> Compiled:
    """Return a Python function from an assignment to the numbers of ``roots``.

    Unset unknowns are 0. Every shared term is computed once per call.
    """
    order = postorder(roots)
    names = {node: f"v[{index}]" for index, node in enumerate(order)}
    lines = [f"{names[node]} = {_code(node, names)}" for node in order if not node.is_const]
    chunks = []
    for start in range(0, len(lines), _CHUNK):
        body = "\n ".join(lines[start : start + _CHUNK])
        namespace: dict[str, Callable[..., None]] = {}
        exec(f"def run(v, x):\n {body}", dict(_RUNTIME), namespace)
        chunks.append(namespace["run"])
    fixed = [int(node.data) if node.is_const else 0 for node in order]
    positions = {node: index for index, node in enumerate(order)}
    # With two more places there is always something to pick, and a tuple comes out.
    fixed.append(0)
    pick: Callable[[list[int]], tuple[int, ...]] = itemgetter(
        *(positions[root] for root in roots), -1, -1
    )

    def run(assignment: Assignment) -> tuple[int, ...]:
        values = fixed.copy()
        for chunk in chunks:
            chunk(values, assignment)
        return pick(values)[:-2]

    return run


_FEW = 6  # runs after which compiling pays


def truth_of(term: Term) -> Callable[[Assignment], bool]:
    """Return a Python function from an assignment to the truth of ``term``.

    Unset unknowns are 0. The first few runs walk over the term: most questions need no more, and
    compiling takes a hundred times as long as a walk.
    """
    order = postorder((term,))
    places = {node: index for index, node in enumerate(order)}
    program = [(node.op, [places[a] for a in node.args], node.data) for node in order]
    if any(op not in _WALKED for op, _, _ in program):
        compiled = compile_terms((term,))
        return lambda assignment: bool(compiled(assignment)[0])
    runs = 0
    fast: list[Compiled] = []

    def run(assignment: Assignment) -> bool:
        nonlocal runs
        runs += 1
        if runs <= _FEW:
            return bool(_walk(program, assignment))
        if not fast:
            fast.append(compile_terms((term,)))
        return bool(fast[0](assignment)[0])

    return run


_WALKED = frozenset(
    ("var", "const", "not", "and", "or", "ite", "eq", "lt", "int_add", "int_mul", "int_div",
     "int_mod")
)  # fmt: skip


def _walk(program: Sequence[tuple[str, Sequence[int], Any]], assignment: Assignment) -> int:
    """Return the number of the last operation of a program over truth values and integers."""
    v: list[int] = []
    for op, a, data in program:
        match op:
            case "var":
                found = assignment.get(data, 0)
            case "const":
                found = int(data)
            case "not":
                found = 1 - v[a[0]]
            case "and":
                found = int(all(v[i] for i in a))
            case "or":
                found = int(any(v[i] for i in a))
            case "ite":
                found = v[a[1]] if v[a[0]] else v[a[2]]
            case "eq":
                found = int(v[a[0]] == v[a[1]])
            case "lt":
                found = int(v[a[0]] < v[a[1]])
            case "int_add":
                found = v[a[0]] + v[a[1]]
            case "int_mul":
                found = v[a[0]] * v[a[1]]
            case "int_div":
                found = v[a[0]] // v[a[1]] if v[a[1]] else 0
            case _:
                found = v[a[0]] % v[a[1]] if v[a[1]] else 0
        v.append(found)
    return v[-1]


def _signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) else value


_RUNTIME = {"_s": _signed, "_div": bv.divide_ints, "_rem": bv.remainder_ints}


def _code(term: Term, names: Mapping[Term, str]) -> str:
    a = [names[arg] if not arg.is_const else repr(int(arg.data)) for arg in term.args]
    mask = (1 << term.width) - 1
    inner = term.args[0].width if term.args else 0
    match term.op:
        case "var":
            cut = f" & {mask}" if term.width else ""
            return f"x.get({term.data!r}, 0){cut}"
        case "not":
            return f"1 - {a[0]}"
        case "and":
            return f"1 if {' and '.join(a)} else 0"
        case "or":
            return f"1 if {' or '.join(a)} else 0"
        case "ite":
            return f"{a[1]} if {a[0]} else {a[2]}"
        case "eq":
            return f"1 if {a[0]} == {a[1]} else 0"
        case "lt":
            return f"1 if {a[0]} < {a[1]} else 0"
        case "slt":
            return f"1 if _s({a[0]}, {inner}) < _s({a[1]}, {inner}) else 0"
        case "concat":
            pieces = []
            shift = term.width
            for name, arg in zip(a, term.args, strict=True):
                shift -= arg.width
                pieces.append(f"{name} << {shift}" if shift else name)
            return " | ".join(f"({piece})" for piece in pieces)
        case "extract":
            return f"{a[0]} >> {term.data[1]} & {mask}"
        case "sext":
            return f"_s({a[0]}, {inner}) & {mask}"
        case "bvnot":
            return f"{a[0]} ^ {mask}"
        case "shl":
            return f"{a[0]} << {a[1]} & {mask} if {a[1]} < {term.width} else 0"
        case "lshr":
            return f"{a[0]} >> {a[1]}"
        case "ashr":
            return f"_s({a[0]}, {inner}) >> {a[1]} & {mask}"
        case "sdiv" | "srem":
            name = "_div" if term.op == "sdiv" else "_rem"
            return f"{name}(_s({a[0]}, {inner}), _s({a[1]}, {inner})) & {mask}"
    infix = {
        "bvand": "&", "bvor": "|", "bvxor": "^", "add": "+", "sub": "-", "mul": "*",
        "int_add": "+", "int_mul": "*",
    }  # fmt: skip
    if term.op in infix:
        text = f"({a[0]} {infix[term.op]} {a[1]})"
        return f"{text} & {mask}" if term.op in ("add", "sub", "mul") else text
    divisions = {"udiv": "//", "urem": "%", "int_div": "//", "int_mod": "%"}
    return f"{a[0]} {divisions[term.op]} {a[1]} if {a[1]} else 0"


__all__ = ["FALSE", "TRUE", "Compiled", "Substitution", "compile_terms", "evaluate", "rebuild",
           "truth_of"]  # fmt: skip
