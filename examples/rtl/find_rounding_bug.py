"""Finds a planted rounding bug in an int8 requantiser.

Run: ``python examples/rtl/find_rounding_bug.py``. The circuit should divide by a power of two as
QuantizeLinear does, ties to even. The search looks for inputs that break that rule and for inputs
that reach every point; the golden values then judge each row of the test set.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hagane.tools.rtl import Budget, Result, cover, read_sources

# Where nothing was clipped, what a tie gives is even.
TIES_GO_TO_EVEN = "!(rest == half && shift != 0 && out == rounded) || !rounded[0]"


def golden(acc: int, shift: int, *, relu: bool) -> int:
    """Return what QuantizeLinear (scale 2**shift, zero point 0, int8) gives, then ReLU."""
    quantized = int(np.clip(np.rint(acc / 2.0**shift), -128, 127))
    return max(quantized, 0) if relu else quantized


def wrong_rows(result: Result) -> list[str]:
    """Return the rows whose replayed output is not the golden value."""
    wrong = []
    for number, (test, outputs) in enumerate(zip(result.tests, result.outputs, strict=True)):
        for row, output in zip(test, outputs, strict=True):
            acc = row["acc"] - (1 << 24) * (row["acc"] >> 23)
            got = output["out"] - (1 << 8) * (output["out"] >> 7)
            expected = golden(acc, row["shift"], relu=bool(row["relu"]))
            if got != expected:
                wrong.append(
                    f"test {number}: {acc} >> {row['shift']} gives {got}, expected {expected}"
                )
    return wrong


def main() -> None:
    folder = Path(__file__).parent
    for defines in ([], ["PLANTED_BUG"]):
        sources = read_sources([folder / "requant.sv"], "requant", defines=defines)
        result = cover(sources, Budget(30.0), assertions=[TIES_GO_TO_EVEN])
        print(f"{' '.join(defines) or 'as written'}: {len(result.tests)} tests, "
              f"ties go to even: {result.assertions[0].status}")  # fmt: skip
        for line in wrong_rows(result):
            print(f"  {line}")


if __name__ == "__main__":
    main()
