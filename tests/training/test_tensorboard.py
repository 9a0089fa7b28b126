"""Event files of TensorBoard, read record by record."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

import hagane
import hagane.links as L  # noqa: N812
from hagane import training
from hagane.errors import MissingExtra
from hagane.training import extensions


def run(out: Path, iterations: int, resume: str | None = None, **options: object) -> list[float]:
    """Train, and return the losses of the iterations."""
    np.random.seed(0)
    x = np.random.standard_normal((12, 3)).astype("f")
    data = hagane.datasets.TupleDataset(x, (x[:, 0] > 0).astype("i"))
    model = L.Classifier(L.Linear(3, 2))
    optimizer = hagane.optimizers.SGD(0.1).setup(model)
    batches = hagane.iterators.SerialIterator(data, 4)
    trainer = training.Trainer(
        training.StandardUpdater(batches, optimizer), (iterations, "iteration"), out=str(out)
    )
    trainer.extend(extensions.snapshot(), trigger=(2, "iteration"))
    trainer.extend(extensions.TensorBoard(**options))  # type: ignore[arg-type]
    trainer.extend(extensions.LogReport(trigger=(1, "iteration")))
    trainer.run(resume=resume)
    return [entry["main/loss"] for entry in trainer.get_extension("LogReport").log]


def written(out: Path) -> list[tuple[int, str, float]]:
    """Return iteration, name and value of all numbers, and the iterations that a run hides."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted((out / "events").iterdir()):
        content, at = path.read_bytes(), 0
        while at < len(content):  # length, its checksum, the event, its checksum
            (length,) = struct.unpack_from("<Q", content, at)
            event = Event.FromString(content[at + 12 : at + 12 + length])
            at += 16 + length
            if event.HasField("session_log"):
                found.append((event.step, "hides", 0.0))
            found += [(event.step, value.tag, value.simple_value) for value in event.summary.value]
    return found


def test_observed_numbers_are_events(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    losses = run(tmp_path, 4, keys=["main/loss"])
    assert [(step, name) for step, name, _ in written(tmp_path)] == [
        (step, "main/loss") for step in range(1, 5)
    ]
    np.testing.assert_allclose([value for _, _, value in written(tmp_path)], losses, rtol=1e-6)
    run(tmp_path, 6, resume=str(tmp_path / "snapshot_iter_2"), trigger=(2, "iteration"))
    again = written(tmp_path)[4:]
    assert again[0] == (3, "hides", 0.0)
    assert {step for step, _, _ in again[1:]} == {4, 6}
    assert {name for _, name, _ in again[1:]} == {"main/loss", "main/accuracy"}


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(MissingExtra, match=r"TensorBoard needs .* pip install 'hagane\[tensorbo"):
        extensions.TensorBoard()
