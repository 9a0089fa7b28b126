"""A run that ends itself by SIGKILL at a moment: ``killed_run.py OUT MOMENT [compiled] [WRITER]``.

A moment is a number of events of Python's profiler (calls and returns, those of C functions too)
since training began; -1 for none. Steps are compiled if asked for; a writer of snapshots is named
by its class. A run that comes to its end
writes ``end.npz`` with all parameters, states of the optimizer and the log, and ``events`` with the
number of its events.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import training
from hagane.training import extensions


class Net(hagane.Chain):
    """Two layers with dropout and normalisation between them."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(6, 12)
            self.norm = L.BatchNormalization(12)
            self.last = L.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        """Return scores."""
        return self.last(F.dropout(F.relu(self.norm(self.first(x))), 0.3))


def trainer(out: str, *, compiled: bool, writer: str = "") -> training.Trainer:
    """Return a run of 21 iterations with a snapshot after every second one."""
    hagane.config.deterministic = True
    np.random.seed(5)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((44, 6)).astype(np.float32)
    data = hagane.datasets.TupleDataset(x, (x[:, 0] > 0).astype(np.int32))
    model = L.Classifier(Net())
    optimizer = hagane.optimizers.Adam(0.02).setup(model)
    batches = hagane.iterators.SerialIterator(data, 8)
    step = hagane.compile(model, optimizer) if compiled else None
    updater = training.StandardUpdater(batches, optimizer, loss_func=step)
    made = training.Trainer(updater, (21, "iteration"), out=out)
    chosen = getattr(extensions.snapshot_writers, writer)() if writer else None
    made.extend(extensions.snapshot(n_retains=2, writer=chosen), trigger=(2, "iteration"))
    made.extend(extensions.LogReport(trigger=(3, "iteration")))
    made.extend(extensions.ExponentialShift("alpha", 0.9), trigger=(1, "epoch"))
    return made


def main() -> None:
    """Train."""
    out, moment = sys.argv[1], int(sys.argv[2])
    options = set(sys.argv[3:])
    writers = [*options - {"compiled"}]
    made = trainer(out, compiled="compiled" in options, writer=writers[0] if writers else "")
    count = 0

    def event(*_: Any) -> None:
        nonlocal count
        if count == moment:
            os.kill(os.getpid(), signal.SIGKILL)
        count += 1

    sys.setprofile(event)
    made.run(resume="auto")
    sys.setprofile(None)
    optimizer = made.updater.get_optimizer("main")
    found = {name: p.array for name, p in optimizer.target.namedparams()}
    for name, p in optimizer.target.namedparams():
        found |= {f"{name}/{key}": value for key, value in p.update_rule.state.items()}
    log = [
        {key: value for key, value in entry.items() if key != "elapsed_time"}
        for entry in made.get_extension("LogReport").log
    ]
    np.savez(Path(out) / "end.npz", alpha=optimizer.alpha, log=json.dumps(log), **found)
    (Path(out) / "events").write_text(str(count))


if __name__ == "__main__":
    main()
