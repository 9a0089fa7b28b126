"""Compare every public function and link with Chainer's, values and gradients, at drawn sizes.

    python tests/outside/chainer_every.py --chainer PYTHON [--sizes 3] [--seed 0] [NAME ...]

``PYTHON`` is that of an environment with Chainer 7.8.1 (see ``chainer_oracle.py``).
Each call of ``CALLS`` is made with as many draws of sizes, in float64 and float32: its results, the
gradients of all variables and parameters by results weighted at random, those of the sum of squares
of these gradients, and persistent values of links afterwards. A line comes for each call that
differs or that hagane alone refuses; status 1 if there is one. What Chainer alone refuses, and
gradients that are no numbers in Chainer alone, are counted; ``--verbose`` lists them too.
``tests/nn/test_every.py`` holds that the calls name every function and link.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.nn.every import CALLS, Drawn  # noqa: E402

# Greatest differences: results, gradients, second gradients.
TOLERANCE = {"d": (1e-9, 1e-8, 1e-7), "f": (2e-5, 2e-4, 5e-3)}


def write(chainer: Any, path: str, sizes: int, seed: int, names: list[str]) -> None:
    """Write results and gradients of all calls to a file."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    found: dict[str, Any] = {}
    for number, call in enumerate(CALLS):
        if names and not any(name in call for name in names):
            continue
        for turn in range(sizes):
            for kind in "df":
                place = f"{number}/{turn}/{kind}"
                drawn = Drawn(chainer, seed + 1000 * number + turn, kind)
                try:
                    found.update((f"{place}/{key}", value) for key, value in drawn.run(call))
                except Exception as error:
                    found[f"{place}/error"] = np.array(f"{type(error).__name__}: {error}"[:300])
    np.savez(path, **found)


LACKING = ("Chainer alone refuses", "no number in Chainer")


def differences(ours: Any, theirs: Any, place: str) -> Iterator[str]:
    """Yield what differs between the answers of one call."""
    mine, other = (
        {key.removeprefix(f"{place}/"): held[key] for key in held if key.startswith(f"{place}/")}
        for held in (ours, theirs)
    )
    kind = place[-1]
    if ("error" in mine) != ("error" in other):
        text = " ".join(str(mine.get("error", other.get("error"))).split())
        yield f"{'hagane' if 'error' in mine else 'Chainer'} alone refuses: {text}"
        return
    if "error" in mine:
        return
    for key in sorted({*mine, *other}):
        if key not in mine or key not in other:
            if key in other or not key.startswith("second"):
                yield f"{key} only in {'Chainer' if key in other else 'hagane'}"
            continue
        a, b = mine[key], other[key]
        if a.shape != b.shape or a.dtype != b.dtype:
            yield f"{key} {a.dtype}{list(a.shape)}, Chainer's {b.dtype}{list(b.shape)}"
            continue
        if a.dtype.kind in "US":
            if str(a) != str(b):
                yield f"{key} {a}, Chainer's {b}"
            continue
        level = 2 if key.startswith("second") else int(not key.startswith("result"))
        a, b = a.astype("d"), b.astype("d")
        if (np.isnan(b) > np.isnan(a)).any():
            yield f"{key} no number in Chainer"
            a = np.where(np.isnan(b), np.nan, a)
        scale = max(1.0, float(np.nanmax(np.abs(b), initial=0)))
        if not np.allclose(a, b, rtol=0, atol=TOLERANCE[kind][level] * scale, equal_nan=True):
            far = float(np.nanmax(np.abs(a - b), initial=0)) / scale
            yield f"{key} differs by {far:.1e}"


def main() -> int:
    """Write for one engine, or compare both."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chainer")
    parser.add_argument("--write")
    parser.add_argument("--sizes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    if given.write:
        for name, kind in (("bool", bool), ("int", int), ("float", float), ("object", object)):
            if name not in vars(np):  # of the NumPy that Chainer was written for
                setattr(np, name, kind)
        import chainer

        write(chainer, given.write, given.sizes, given.seed, given.names)
        return 0
    import hagane

    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = (f"{folder}/{name}.npz" for name in ("theirs", "ours"))
        options = ["--write", theirs, "--sizes", str(given.sizes), "--seed", str(given.seed)]
        subprocess.run([given.chainer, __file__, *options, *given.names], check=True)
        write(hagane, ours, given.sizes, given.seed, given.names)
        mine, other = dict(np.load(ours)), dict(np.load(theirs))
    wrong = refused = lacking = 0
    places = sorted({key.rsplit("/", key.count("/") - 2)[0] for key in [*mine, *other]})
    for place in places:
        told = list(differences(mine, other, place))
        ours_alone = [text for text in told if not any(each in text for each in LACKING)]
        refused += f"{place}/error" in mine and f"{place}/error" in other
        wrong += bool(ours_alone)
        lacking += bool(told) and not ours_alone
        for text in told if given.verbose else ours_alone:
            print(f"{CALLS[int(place.split('/')[0])]}  ({place}): {text}")
    print(
        f"{len(places)} calls, {wrong} differ, {lacking} that Chainer alone refuses or has no"
        f" numbers for, {refused} refused by both"
    )
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
