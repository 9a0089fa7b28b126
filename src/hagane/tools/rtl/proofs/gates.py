"""Gates: conjunction, exclusive or, choice; equal gates are one.

A literal is twice the number of a node, plus one where it is negated; 0 is false, 1 is true. The
arguments of a node have lower numbers than the node itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

FALSE, TRUE = 0, 1
INPUT, AND, XOR, CHOICE = range(4)


class Gates:
    """A graph of gates, simplified as it is built."""

    def __init__(self) -> None:
        self.kind = [INPUT]
        self.arguments: list[tuple[int, ...]] = [()]
        self._known: dict[tuple[int, ...], int] = {}

    def input(self) -> int:
        """Return a new input."""
        self.kind.append(INPUT)
        self.arguments.append(())
        return 2 * len(self.kind) - 2

    def _node(self, kind: int, *arguments: int) -> int:
        key = (kind, *arguments)
        found = self._known.get(key)
        if found is None:
            self.kind.append(kind)
            self.arguments.append(arguments)
            found = self._known[key] = 2 * len(self.kind) - 2
        return found

    def both(self, a: int, b: int) -> int:
        """Return the conjunction."""
        if a > b:
            a, b = b, a
        if a < 2:
            return b if a else FALSE
        if a >> 1 == b >> 1:
            return a if a == b else FALSE
        return self._node(AND, a, b)

    def either(self, a: int, b: int) -> int:
        """Return the disjunction."""
        return self.both(a ^ 1, b ^ 1) ^ 1

    def differ(self, a: int, b: int) -> int:
        """Return the exclusive or."""
        sign = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        if a > b:
            a, b = b, a
        if a == b:
            return sign
        if a == 0:
            return b ^ sign
        return self._node(XOR, a, b) ^ sign

    def choose(self, condition: int, yes: int, no: int) -> int:
        """Return ``yes`` where the condition holds, else ``no``."""
        if condition < 2:
            return yes if condition else no
        if condition & 1:
            condition, yes, no = condition ^ 1, no, yes
        if yes == no:
            return yes
        if yes ^ 1 == no:
            return self.differ(condition, no)
        if yes < 2 or yes >> 1 == condition >> 1:
            # Where the condition holds it is true itself.
            return (
                self.either(condition, no)
                if yes in (TRUE, condition)
                else self.both(condition ^ 1, no)
            )
        if no < 2 or no >> 1 == condition >> 1:
            return (
                self.both(condition, yes)
                if no in (FALSE, condition)
                else self.either(condition ^ 1, yes)
            )
        sign = no & 1
        return self._node(CHOICE, condition, yes ^ sign, no ^ sign) ^ sign

    def every(self, literals: Iterable[int]) -> int:
        """Return the conjunction of all."""
        pending = list(dict.fromkeys(literals))
        while len(pending) > 1:
            pairs = [self.both(*pending[k : k + 2]) for k in range(0, len(pending) - 1, 2)]
            pending = pairs + ([pending[-1]] if len(pending) % 2 else [])
        return pending[0] if pending else TRUE

    def some(self, literals: Iterable[int]) -> int:
        """Return the disjunction of all."""
        return self.every(literal ^ 1 for literal in literals) ^ 1

    def make(self, kind: int, arguments: Sequence[int]) -> int:
        """Return the gate of that kind over other arguments."""
        if kind == AND:
            return self.both(arguments[0], arguments[1])
        if kind == XOR:
            return self.differ(arguments[0], arguments[1])
        return self.choose(arguments[0], arguments[1], arguments[2])

    def cone(self, literals: Iterable[int], known: Mapping[int, int]) -> list[int]:
        """Return the nodes below some literals that are not ``known``, arguments first."""
        found: set[int] = set()
        stack = [literal >> 1 for literal in literals]
        while stack:
            node = stack.pop()
            if node in found or node in known:
                continue
            found.add(node)
            stack.extend(argument >> 1 for argument in self.arguments[node])
        return sorted(found)


class Copy:
    """Gates of one graph rebuilt in another, with given literals for inputs."""

    def __init__(self, source: Gates, target: Gates, inputs: Mapping[int, int]):
        self._source, self._target = source, target
        self.nodes = {0: 0, **{literal >> 1: value for literal, value in inputs.items()}}

    def __call__(self, literals: Sequence[int]) -> list[int]:
        """Return the copies of literals."""
        nodes, source = self.nodes, self._source
        for node in source.cone(literals, nodes):
            arguments = source.arguments[node]
            if source.kind[node] == INPUT:
                nodes[node] = self._target.input()
            else:
                nodes[node] = self._target.make(
                    source.kind[node], [nodes[a >> 1] ^ (a & 1) for a in arguments]
                )
        return [nodes[literal >> 1] ^ (literal & 1) for literal in literals]
