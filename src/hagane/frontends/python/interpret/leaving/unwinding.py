"""Code that runs where a path leaves a block: ``finally`` clauses, exits of context managers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hagane.frontends.python.interpret.core import Core, Exit
from hagane.frontends.python.values.objects import Frame
from hagane.frontends.python.values.values import Value


@dataclass(frozen=True, slots=True, eq=False)
class Cleanup:
    """Code to be run where a path leaves a block.

    Attributes:
        frame: The frame of the block.
        loops: The loops around, as the interpreter has them.
        turns: The number of loops around the block.
        run: Runs the code.
    """

    frame: Frame
    loops: list[list[Exit]]
    turns: int
    run: Callable[[], object]


class Unwinding(Core):
    """Leaves blocks."""

    cleanups: list[Cleanup]

    def at_leaving(self, run: Callable[[], object]) -> Cleanup:
        """Have code run where a path leaves the block that begins here."""
        assert self.frame is not None
        made = Cleanup(self.frame, self.loops, len(self.loops), run)
        self.cleanups.append(made)
        return made

    def leave(self, kind: str, value: Value, exits: list[Exit]) -> None:
        """End the current path here, after the code that belongs to the blocks which it leaves."""
        turns = len(self.loops)
        self.unwind(
            [
                each
                for each in self.cleanups
                if each.frame is self.frame and (kind == "return" or each.turns == turns)
            ]
        )
        if not self.dead:  # the code may end the path by itself
            self.domain.leave(kind, value, exits)

    def unwind(self, pending: Sequence[Cleanup]) -> None:
        """Run the code of blocks on this path, that of the innermost first."""
        around = self.frame, self.loops, self.cleanups
        try:
            for each in reversed(pending):
                if self.dead:
                    return
                self.cleanups = around[2][: around[2].index(each)]
                self.frame, self.loops = each.frame, each.loops[: each.turns]
                each.run()
        finally:
            self.frame, self.loops, self.cleanups = around


__all__ = ["Cleanup", "Unwinding"]
