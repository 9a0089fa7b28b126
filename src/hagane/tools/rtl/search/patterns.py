"""Values that a circuit compares with, as bits of the inputs that they come from.

An opcode, an address or a type field is met by chance once in so many rows; random rows that take
the circuit's own constants now and then meet it often.
"""

from __future__ import annotations

from hagane.symbolic.term import Term, postorder
from hagane.tools.rtl.circuit.cycle import CycleModel

_REGISTERS = 2  # between the input and the comparison
_MOST = 96  # for an input
_MOST_STEPS = 2_000

Pairs = dict[str, list[tuple[int, int]]]


def patterns(model: CycleModel) -> Pairs:
    """Return masks and values for each input, as its comparisons with constants say."""
    inputs = {item.name for item in model.inputs}
    found: dict[str, dict[tuple[int, int], None]] = {name: {} for name in inputs}
    roots = [*model.points.values(), *model.signals.values(), *model.state.values()]
    for term in postorder(roots):
        if term.op not in ("eq", "lt", "slt") or term.args[0].width < 2:
            continue
        for a, b in (term.args, term.args[::-1]):
            if not a.is_const or b.is_const:
                continue
            numbers = [int(a.data)]
            if term.op != "eq":
                numbers += [(numbers[0] + step) % (1 << a.width) for step in (1, -1)]
            for number in numbers:
                _Search(model, found).follow(b, number)
    return {name: list(pairs) for name, pairs in found.items() if pairs}


class _Search:
    def __init__(self, model: CycleModel, found: dict[str, dict[tuple[int, int], None]]):
        self._model = model
        self._found = found
        self._left = _MOST_STEPS

    def follow(self, term: Term, number: int) -> None:
        """Find inputs whose bits make ``term`` that number."""
        seen: set[tuple[Term, int, int]] = set()
        whole = (1 << term.width) - 1
        pending = [(term, whole, number, _REGISTERS)]
        while pending and self._left:
            self._left -= 1
            t, mask, value, registers = pending.pop()
            if (t, mask, value) in seen or not mask:
                continue
            seen.add((t, mask, value))
            match t.op:
                case "var" if t.data in self._found:
                    mine = self._found[t.data]
                    if len(mine) < _MOST:
                        mine[(mask, value)] = None
                case "var" if registers and t.data in self._model.state:
                    pending.append((self._model.state[t.data], mask, value, registers - 1))
                case "extract":
                    low = t.data[1]
                    pending.append((t.args[0], mask << low, value << low, registers))
                case "concat":
                    low = 0
                    for part in reversed(t.args):
                        ones = (1 << part.width) - 1
                        inner = (part, mask >> low & ones, value >> low & ones, registers)
                        pending.append(inner)
                        low += part.width
                case "ite":
                    pending += [(arm, mask, value, registers) for arm in t.args[1:]]
                case "bvnot":
                    pending.append((t.args[0], mask, value ^ mask, registers))
                case "sext":
                    ones = (1 << t.args[0].width) - 1
                    pending.append((t.args[0], mask & ones, value & ones, registers))
