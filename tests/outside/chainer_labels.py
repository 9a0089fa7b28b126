"""Write how Chainer's functions look to hooks and drawings into the table of ``tests/nn``.

    python tests/outside/chainer_labels.py [--check]

The Python is one that has Chainer 7.8.1 (see ``chainer_oracle.py``). The calls are those of the
table; with ``--check`` it is compared and not written: status 1 if a line differs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.nn.labelled import lines  # noqa: E402

TABLE = ROOT / "tests" / "nn" / "chainer_labels.txt"


def main() -> int:
    """Write or check the table."""
    for name, kind in (("bool", bool), ("int", int), ("float", float), ("object", object)):
        if name not in vars(np):  # of the NumPy that Chainer was written for
            setattr(np, name, kind)
    import chainer

    kept = TABLE.read_text().splitlines()
    found = list(lines([line.split("\t")[0] for line in kept], chainer))
    if "--check" not in sys.argv:
        TABLE.write_text("\n".join(found) + "\n")
        return 0
    wrong = [pair for pair in zip(kept, found, strict=True) if pair[0] != pair[1]]
    for ours, theirs in wrong:
        print(f"{ours}\n{theirs}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
