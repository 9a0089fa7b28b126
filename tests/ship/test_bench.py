"""A build timed beside the session."""

from __future__ import annotations

from pathlib import Path

from hagane.runtime.bench import compare
from tests.ship.conftest import Maker
from tests.ship.models import CASES, save


def test_a_build_is_timed_beside_the_session(builds: Maker, tmp_path: Path) -> None:
    save(CASES["any_batch"](), tmp_path / "m.onnx")
    engines = ["hagane", f"build:{builds('any_batch')}"]
    report = compare(tmp_path / "m.onnx", engines, {"x": (4, 33)}, 1, 1, 0.01)
    assert [row["engine"] for row in report["results"]] == engines
    assert report["ratios"].keys() == {f"{engines[1]}/hagane"}
