"""What a mistake put into a model is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """The kinds of mistakes."""

    FEATURES = "wrong in-features"
    SWAPPED = "swapped axes"
    FLATTEN = "forgotten flatten"
    LUCK = "broadcast by luck"
    STRIDE = "off-by-one stride or padding"
    LENGTH = "off-by-one length"
    CONCAT = "wrong concat axis"
    LIST = "growing-list misuse"
    DEVICE = "device clash"
    DTYPE = "dtype clash"
    BRANCH = "fails only in some branch"
    ODD = "fails only at odd sizes"
    HEADS = "wrong heads divisibility"
    UNPACK = "wrong number of unpacked values"
    KEEPDIM = "missing keepdim or unsqueeze"
    PERMUTE = "wrong permute arity"
    AXIS = "wrong axis"


@dataclass(frozen=True)
class Mistake:
    """One exact replacement in the file of a case's model, and where it must be reported.

    `old` occurs once in the file; `line` is a part of one line only, once `new` is in its place.

    `fails` are sizes at which the framework raises at that line. Without them, either the mistake
    needs a GPU, and `meta` are sizes at which it fails with the device "meta" in the place of
    "cuda"; or nothing ever raises, and `becomes` has the name of a local variable, the shape that
    was meant and the shape that it has. `passes` are sizes at which nothing raises.
    """

    case: str
    old: str
    new: str
    line: str
    kind: Kind
    fails: Mapping[str, int] | None = None
    passes: Mapping[str, int] | None = None
    meta: Mapping[str, int] | None = None
    becomes: tuple[str, str, str] | None = None

    def apply(self, source: str) -> str:
        """The model's source with the mistake in it."""
        assert source.count(self.old) == 1, f"{self.case}: {source.count(self.old)}x {self.old!r}"
        return source.replace(self.old, self.new)

    def line_number(self, source: str) -> int:
        """The line of the mistaken source at which it must be reported."""
        numbers = [n for n, text in enumerate(source.splitlines(), 1) if self.line in text]
        assert len(numbers) == 1, f"{self.case}: {self.line!r} is in the lines {numbers}"
        return numbers[0]
