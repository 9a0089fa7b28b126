"""Folders that chainer-trt's own test cases wrote, run here.

    python tests/outside/chainer_trt.py FIXTURES

``FIXTURES`` is the folder ``test/fixtures`` after its ``make_test_cases.py`` has run: it holds
``model_fixtures.json`` with inputs, expected outputs and the largest error of each network.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import hagane
from hagane.errors import HaganeError
from hagane.ship.retrieved import read_retrieved


def main() -> None:
    fixtures = Path(sys.argv[1])
    cases = json.loads((fixtures / "model_fixtures.json").read_text())
    plain = [case for case in cases if case["dtype"] == "kFLOAT"]
    wrong = 0
    for case in plain:
        try:
            error = difference(fixtures / "model" / case["fixture"], case)
        except HaganeError as problem:
            print(f"{case['fixture']}: {problem}")
            wrong += 1
            continue
        if error > case["acceptable_absolute_error"]:
            allowed = case["acceptable_absolute_error"]
            print(f"{case['fixture']}, batch {case['batch_size']}: {error:.3g} > {allowed}")
            wrong += 1
    names = {case["fixture"] for case in plain}
    print(f"{len(plain) - wrong} of {len(plain)} runs of {len(names)} networks agree")
    sys.exit(wrong > 0)


def difference(folder: Path, case: dict[str, object]) -> float:
    """Return the largest absolute difference from the expected output."""
    session = hagane.InferenceSession(read_retrieved(folder))
    batch = int(str(case["batch_size"]))
    feed = {}
    for item in session.get_inputs():
        numbers = np.loadtxt(folder / f"{item.name}.csv", delimiter=",", dtype=np.float32)
        one = numbers.reshape(1, *(int(size) for size in item.shape[1:]))
        feed[item.name] = np.repeat(one, batch, 0)
    (found,) = session.run(None, feed)
    expected = np.loadtxt(folder / str(case["expected_output"]), delimiter=",", dtype=np.float32)
    return float(np.abs(found.reshape(batch, -1) - expected.reshape(1, -1)).max())


if __name__ == "__main__":
    main()
