"""Gradients that are summed over several calls of a step before parameters change."""

from __future__ import annotations

from collections.abc import Mapping
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
        self._reached: set[int] = set()  # identities of parameters

    @property
    def share(self) -> Share | None:
        """The part that the next call has; None where each call changes the parameters."""
        if self._count == 1:
            return None
        return Share(self._count, last=self._done == self._count - 1)

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

    def unreached(self, parameters: Mapping[str, Any], come: Mapping[str, bool]) -> set[str]:
        """Return the names of parameters that no gradient has reached since the last update.

        Args:
            parameters: By name.
            come: Whether the coming call's gradient reaches each of those that need not have one.
        """
        self._reached |= {id(parameters[name]) for name, one in come.items() if one}
        return {name for name in come if id(parameters[name]) not in self._reached}

    def advance(self, parameters: Mapping[str, Any], results: Mapping[str, Array]) -> None:
        """Take the sums of a call, or begin anew if it was the last one.

        Args:
            parameters: Each parameter by name.
            results: The outputs of the call by name.
        """
        self._done = (self._done + 1) % self._count
        if not self._done:
            self._reached.clear()
        for name, parameter in parameters.items():
            array = self._sums[id(parameter)][1]
            if self._done:
                np.copyto(array, results[f"{sum_name(name)}.new"])
            else:
                array.fill(0)


def sum_name(parameter: str) -> str:
    """Return the name of the input that has the sum of a parameter's gradients."""
    return f"{parameter}.gradient_sum"
