"""Exported models read back: a chain, its labels and rewards, and what a property asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from hagane.tools.prob.claims.export import PrismModel

# Answers one property of a model exactly.
Ask = Callable[[str], Fraction]


@dataclass
class ReadModel:
    """A model as its text says it."""

    steps: dict[int, list[tuple[Fraction, int]]] = field(default_factory=dict)
    labels: dict[str, set[int]] = field(default_factory=dict)
    rewards: dict[str, dict[int, Fraction]] = field(default_factory=dict)

    def ask(self, query: str) -> Fraction:
        """Answer a property by following the chain, which has no cycle, from its start."""
        inside = re.fullmatch(r'filter\(min, (.*), "(\w+)"\);', query)
        (start,) = self.labels[inside[2]] if inside else self.labels["unit0"]
        query = inside[1] if inside else query.rstrip(";")
        if found := re.fullmatch(r'P=\? \[ F "(\w+)" \]', query):
            gains = dict.fromkeys(self.labels[found[1]], Fraction(1))
            return self._gain(start, gains, stops=True)
        found = re.fullmatch(r'R\{"(\w+)"\}=\? \[ F "end" \| "rejected" \]', query)
        assert found, query
        return self._gain(start, self.rewards[found[1]], stops=False)

    def _gain(self, start: int, gains: dict[int, Fraction], *, stops: bool) -> Fraction:
        total = Fraction(0)
        weights = {start: Fraction(1)}
        while weights:
            following: dict[int, Fraction] = {}
            for state, weight in weights.items():
                total += weight * gains.get(state, 0)
                ends = self.steps[state] == [(Fraction(1), state)]
                if ends or (stops and state in gains):
                    continue
                assert sum(share for share, _ in self.steps[state]) == 1
                for share, target in self.steps[state]:
                    following[target] = following.get(target, Fraction(0)) + share * weight
            weights = following
        return total


def read_model(text: str) -> ReadModel:
    """Return the chain that a model's text describes."""
    model = ReadModel()
    reward = ""
    for line in text.splitlines():
        if line.startswith("  [] s="):
            left, right = line.removeprefix("  [] s=").rstrip(";").split(" -> ")
            model.steps[int(left)] = [
                (Fraction(part.split(":")[0]), int(part.split("=")[1].rstrip(")")))
                for part in right.split(" + ")
            ]
        elif found := re.fullmatch(r'label "(\w+)" = (.*);', line):
            states = model.labels[found[1]] = set()
            for test in found[2].split(" | "):
                numbers = [int(number) for number in re.findall(r"\d+", test)]
                states |= set(range(numbers[0], numbers[-1] + 1)) if numbers else set()
        elif found := re.fullmatch(r'rewards "(\w+)"', line):
            reward = found[1]
            model.rewards[reward] = {}
        elif found := re.fullmatch(r"  s=(\d+) : (\S+);", line):
            model.rewards[reward][int(found[1])] = Fraction(found[2])
    return model


def measured(model: PrismModel, ask: Ask) -> Iterator[Fraction]:
    """Yield the value of each Prob and E in the order of the properties."""
    yield from (value for is_sure, value in _answers(model, ask) if not is_sure)


def broken(model: PrismModel, ask: Ask) -> Iterator[Fraction]:
    """Yield the probability of breaking each condition on single values."""
    yield from (value for is_sure, value in _answers(model, ask) if is_sure)


def _answers(model: PrismModel, ask: Ask) -> Iterator[tuple[bool, Fraction]]:
    lines = iter(model.properties.splitlines())
    for line in lines:
        if line.endswith("is the first over the second"):
            above = ask(next(lines))
            yield False, above / ask(next(lines))
        elif line.endswith("is the first less the second, over the third"):
            gain = ask(next(lines))
            loss = ask(next(lines))
            yield False, (gain - loss) / ask(next(lines))
        elif line.endswith("is sure where this is 0"):
            yield True, ask(next(lines))
        else:
            assert line.startswith("//"), line
