"""Gradients that are summed over several calls of a step before parameters change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.errors import InvalidArgument
from hagane.ops.definition import Array


@dataclass(frozen=True, slots=True)
class Share:
    """The part of one call in a sum of gradients.

    Attributes:
        count: Calls of one sum; each counts as one part of so many.
        last: Whether this call ends the sum, and changes the parameters.
    """

    count: int
    last: bool


class GradientSums:
    """The sums of gradients of one step, and the place of the next call in them.

    Args:
        count: After how many calls parameters change.

    Raises:
        InvalidArgument: It is no positive integer.
    """

    def __init__(self, count: Any):
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InvalidArgument(
                f"compile: expected accumulate to be a number of calls from 1 on, got {count!r}"
            )
        self._count, self._done = count, 0
        self._sums: dict[int, tuple[Any, Array]] = {}
        self._reached: set[int] = set()  # identities of parameters, since the last update

    @property
    def share(self) -> Share | None:
        """The part that the next call has; None where each call changes the parameters."""
        if self._count == 1:
            return None
        return Share(self._count, last=self._done == self._count - 1)

    @property
    def begun(self) -> bool:
        """Whether there are gradients that no update has followed yet."""
        return self._done > 0

    @property
    def nbytes(self) -> int:
        """The bytes of all sums."""
        return sum(array.nbytes for _, array in self._sums.values())

    def feed(self, parameters: Mapping[str, tuple[Any, Array]]) -> dict[str, Array]:
        """Return the sums so far by the names of their inputs.

        Args:
            parameters: Each parameter and its array by name; new ones begin with zeros.
        """
        found = {}
        for name, (parameter, array) in parameters.items():
            if id(parameter) not in self._sums:
                # (The parameter is kept, so that no other one gets its identity.)
                self._sums[id(parameter)] = parameter, np.zeros_like(array)
            found[sum_name(name)] = self._sums[id(parameter)][1]
        return found

    @property
    def held(self) -> list[Any]:
        """The parameters that have a sum which the next call follows; none if it only adds."""
        if self._count == 1 or self._done < self._count - 1:
            return []
        return [x for key, (x, _) in self._sums.items() if key in self._reached]

    def unreached(
        self, parameters: Mapping[str, Any], summed: Iterable[str], come: Mapping[str, bool]
    ) -> set[str]:
        """Return the names of parameters that no gradient has reached since the last update.

        Args:
            parameters: By name.
            summed: Those whose gradients the call adds to their sums.
            come: Whether the call's gradient reaches each of those that need not have one.
        """
        reached = {name for name in summed if come.get(name, True)}
        reached |= {name for name, one in come.items() if one}
        self._reached |= {id(parameters[name]) for name in reached}
        return {name for name in come if id(parameters[name]) not in self._reached}

    def advance(self, parameters: Mapping[str, Any], results: Mapping[str, Array]) -> None:
        """Take the sums of a call, or begin anew if it was the last one.

        Args:
            parameters: Each parameter by name.
            results: The outputs of the call by name.
        """
        self._done = (self._done + 1) % self._count
        if self._done:
            for name, parameter in parameters.items():
                np.copyto(self._sums[id(parameter)][1], results[f"{sum_name(name)}.new"])
            return
        self._reached.clear()
        for _, array in self._sums.values():
            array.fill(0)


def sum_name(parameter: str) -> str:
    """Return the name of the input that has the sum of a parameter's gradients."""
    return f"{parameter}.gradient_sum"
