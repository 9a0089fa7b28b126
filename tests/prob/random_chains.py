"""Random recursive programs, and what they give by the linear equations of their states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

State = tuple[int, bool]

# Probabilities in terms of the parameter p, and their values.
_OF_P: tuple[tuple[str, Callable[[Fraction], Fraction]], ...] = (
    ("p", lambda p: p),
    ("1 - p", lambda p: 1 - p),
    ("p / 2", lambda p: p / 2),
    ("p * p", lambda p: p * p),
    ("(1 + p) / 3", lambda p: (1 + p) / 3),
)


@dataclass(frozen=True)
class Chance:
    """A probability: its text, and its value for a value of p."""

    text: str
    at: Callable[[Fraction], Fraction]


@dataclass(frozen=True)
class Call:
    """A call of the function in another state; ``adds`` stands in an argument or before it."""

    state: int
    flag: str
    adds: int
    last: bool = True


@dataclass(frozen=True)
class End:
    """A value."""

    value: int
    by_flag: bool


@dataclass(frozen=True)
class Branch:
    """Two ways: by a flip, by a number below a limit, by the flag."""

    condition: str
    chance: Callable[[Fraction, bool], Fraction]
    yes: Tree
    no: Tree


@dataclass(frozen=True)
class Observed:
    """A way that is only taken if a flip comes out true."""

    chance: Chance
    then: Tree


Tree = Call | End | Branch | Observed


@dataclass(frozen=True)
class Solved:
    """What a program gives: the mean of its sum, or the probabilities of its values."""

    mean: Fraction | None
    distribution: dict[int, Fraction]


class Chain:
    """A program drawn by a seed: a function that calls itself in one of a few states.

    Attributes:
        sums: Whether it adds numbers up on its way; else its value is one of those at its ends.
        parameter: Whether probabilities may depend on a parameter p.
        text: The program.
    """

    def __init__(self, seed: int):
        self._random = random = Random(seed)
        self._states = random.randint(1, 5)
        self._flag = random.random() < 0.4
        self.sums = random.random() < 0.35
        self.parameter = random.random() < 0.35
        self._observes = random.random() < 0.3
        self._outside = self.sums and random.random() < 0.25
        self._bodies = [self._tree(random.randint(1, 3)) for _ in range(self._states)]
        self.text = self._program()

    def _chance(self) -> Chance:
        random = self._random
        if self.parameter and random.random() < 0.5:
            return Chance(*random.choice(_OF_P))
        divisor = random.choice([2, 2, 3, 4, 5, 10])
        surely = random.random() < 0.15
        number = random.randint(0, divisor) if surely else random.randint(1, divisor - 1)
        value = Fraction(number, divisor)
        return Chance(f"{number}/{divisor}", lambda p: value)

    def _leaf(self) -> Tree:
        random, kind = self._random, self._random.random()
        flag = random.choice(["b", "not b", "true", "false"])
        if kind < 0.55:
            return Call(random.randrange(self._states), flag, random.choice([0, 1, 1, 2]))
        if self._outside and kind < 0.7:
            return Call(random.randrange(self._states), flag, random.choice([0, 1, 2, -1]), False)
        return End(random.randrange(4), random.random() < 0.3)

    def _tree(self, depth: int) -> Tree:
        random = self._random
        kind = random.randrange(10) if depth else 9
        if kind < 5:
            chance = self._chance()
            condition, at = f"flip({chance.text})", chance.at
            return Branch(
                condition, lambda p, _: at(p), self._tree(depth - 1), self._tree(depth - 1)
            )
        if kind < 7:
            top, limit = random.randint(1, 4), random.randint(0, 4)
            below = Fraction(min(limit, top + 1), top + 1)
            condition = f"rand(0, {top}) < {limit}"
            return Branch(condition, lambda *_: below, self._tree(depth - 1), self._tree(depth - 1))
        if kind == 7 and self._flag:
            yes, no = self._tree(depth - 1), self._tree(depth - 1)
            return Branch("b", lambda _, b: Fraction(b), yes, no)
        if kind == 8 and self._observes:
            return Observed(self._chance(), self._tree(depth - 1))
        return self._leaf()

    def _written(self, tree: Tree) -> str:
        if isinstance(tree, Call):
            flag = f", {tree.flag}" if self._flag else ""
            if not tree.last:
                return f"{tree.adds} + f({tree.state}{flag}, n)"
            return f"f({tree.state}{flag}" + (f", n + {tree.adds})" if self.sums else ")")
        if isinstance(tree, End):
            if self.sums:
                return f"n + {tree.value}"
            if self._flag and tree.by_flag:
                return f"(if b then {tree.value} else {tree.value + 10})"
            return str(tree.value)
        if isinstance(tree, Observed):
            return f"(observe flip({tree.chance.text}) in {self._written(tree.then)})"
        ways = f"then {self._written(tree.yes)} else {self._written(tree.no)}"
        return f"(if {tree.condition} {ways})"

    def _program(self) -> str:
        body = self._written(self._bodies[-1])
        for state in reversed(range(self._states - 1)):
            body = f"if s = {state} then {self._written(self._bodies[state])}\n  else {body}"
        named = "s: int" + ", b: bool" * self._flag + ", n: int" * self.sums
        head = "param p;\n" * self.parameter + f"letfun f({named}) : int =\n  {body} in\n"
        return head + "f(0" + ", true" * self._flag + ", 0" * self.sums + ")"

    def _ways(
        self, tree: Tree, flag: bool, p: Fraction, weight: Fraction
    ) -> list[tuple[Fraction, State | None, int]]:
        """Return the ways through a body: probability, the next state if any, what is added."""
        if not weight:
            return []
        if isinstance(tree, Call):
            given = {"b": flag, "not b": not flag, "true": True, "false": False}[tree.flag]
            return [(weight, (tree.state, given if self._flag else True), tree.adds)]
        if isinstance(tree, End):
            other = not self.sums and self._flag and tree.by_flag and not flag
            return [(weight, None, tree.value + 10 * other)]
        if isinstance(tree, Observed):
            return self._ways(tree.then, flag, p, weight * tree.chance.at(p))
        chance = tree.chance(p, flag)
        no = self._ways(tree.no, flag, p, weight * (1 - chance))
        return [*self._ways(tree.yes, flag, p, weight * chance), *no]

    def solved(self, p: Fraction) -> Solved | None:
        """Return what the program gives for a value of p, given that it ends; None if it cannot."""
        start = (0, True)
        ways: dict[State, list[tuple[Fraction, State | None, int]]] = {}
        waiting = [start]
        while waiting:
            state = waiting.pop()
            if state not in ways:
                ways[state] = self._ways(self._bodies[state[0]], state[1], p, Fraction(1))
                waiting += [after for _, after, _ in ways[state] if after]
        ending: set[State | None] = {None}
        for _ in ways:
            ending |= {s for s, out in ways.items() if any(after in ending for _, after, _ in out)}
        states = [state for state in ways if state in ending]
        if start not in states:
            return None
        place = {state: i for i, state in enumerate(states)}
        matrix = [[Fraction(i == j) for j in range(len(states))] for i in range(len(states))]
        for state in states:
            for weight, after, _ in ways[state]:
                if after in place:
                    matrix[place[state]][place[after]] -= weight

        def solution(of: Callable[[Fraction, State | None, int], Fraction]) -> list[Fraction]:
            sums = [sum((of(*way) for way in ways[s]), Fraction(0)) for s in states]
            return linear(matrix, sums)

        ends = solution(lambda weight, after, _: weight * (after is None))
        if self.sums:

            def added(weight: Fraction, after: State | None, value: int) -> Fraction:
                if after is None:
                    return weight * value
                return weight * value * ends[place[after]] if after in place else Fraction(0)

            return Solved(solution(added)[place[start]] / ends[place[start]], {})
        distribution = {}
        for value in {v for s in states for _, after, v in ways[s] if after is None}:
            chances = solution(
                lambda weight, after, v, value=value: weight * (after is None and v == value)
            )
            if chances[place[start]]:
                distribution[value] = chances[place[start]] / ends[place[start]]
        return Solved(None, distribution)


def linear(matrix: Sequence[Sequence[Fraction]], right: Sequence[Fraction]) -> list[Fraction]:
    """Return the solution of linear equations, by elimination."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for column in range(len(rows)):
        pivot = next(i for i in range(column, len(rows)) if rows[i][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for i, row in enumerate(rows):
            if i != column and row[column]:
                rows[i] = [a - row[column] * b for a, b in zip(row, rows[column], strict=True)]
    return [row[-1] for row in rows]
