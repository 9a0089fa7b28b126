"""``hagane inspect FILE.py:make --training`` shows the plan of a training step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hagane
import hagane.functions as F  # noqa: N812
import hagane.links as L  # noqa: N812
from hagane import optimizers
from hagane.cli import main
from hagane.cli.inspect_training import lines_of

SCRIPT = """
import numpy as np

import hagane
import hagane.functions as F
import hagane.links as L
from hagane import training


class Net(hagane.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.layers = hagane.ChainList(*(L.Linear(None, 64) for _ in range(5)))

    def forward(self, x):
        for layer in self.layers.children():
            x = F.tanh(layer(x))
        return x


def trainer(compiled=False):
    drawn = np.random.RandomState(0)
    x = drawn.randn(512, 64).astype(np.float32)
    t = drawn.randint(0, 64, 512).astype(np.int32)
    data = hagane.datasets.TupleDataset(x, t)
    classifier = L.Classifier(Net())
    optimizer = hagane.optimizers.Adam().setup(classifier)
    loss = hagane.compile(classifier, optimizer) if compiled else None
    iterator = hagane.iterators.SerialIterator(data, 256)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=loss)
    return training.Trainer(updater, (1, "epoch"))


def compiled():
    return trainer(compiled=True)


def number():
    return 3
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    """Return a file with functions that make trainers."""
    path = tmp_path / "training_script.py"
    path.write_text(SCRIPT)
    return str(path)


def shown(capsys: Any, *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["inspect", *arguments])
    assert not ended.value.code
    return str(capsys.readouterr().out)


@pytest.mark.long
def test_a_budget_shows_as_less_memory_and_work_done_again(script: str, capsys: Any) -> None:
    free = json.loads(shown(capsys, f"{script}:trainer", "--training", "--json"))
    assert free["budget"] is None
    assert not free["again"]
    assert free["predicted"] == free["run"] + free["results"] + free["states"]
    # Five layers of 256 x 64 numbers wait for the way back.
    assert sum(free["kept"].values()) >= 5 * 256 * 64 * 4
    assert sum(stage["kept"] for stage in free["stages"]) <= sum(free["kept"].values())
    assert free["seconds"]["back"] > free["seconds"]["forward"] > 0
    budget = free["predicted"] - 256 * 64 * 4
    text = ("--memory-budget", str(budget))
    kept = json.loads(shown(capsys, f"{script}:trainer", "--training", "--json", *text))
    assert kept["predicted"] <= budget
    assert kept["everything"] == free["predicted"]
    assert kept["again"]
    assert kept["seconds"]["again"] > 0
    assert sum(stage["again"] for stage in kept["stages"]) == len(kept["again"])
    assert sum(kept["kept"].values()) < sum(free["kept"].values())


def test_a_plan_is_told_in_lines_that_name_nodes(script: str, capsys: Any) -> None:
    text = shown(capsys, f"{script}:compiled", "--training")
    assert "batch = 256" in text
    for title in ("predicted peak", "computed again  0 nodes", "way forward", "kept for the way"):
        assert title in text
    assert "65.5 kB  node_Tanh" in text


def test_other_results_of_a_file_and_lost_options_are_refused(script: str, capsys: Any) -> None:
    for arguments, words in (
        ([f"{script}:number", "--training"], "expected a hagane.training.Trainer from"),
        ([f"{script}:none", "--training"], "has no function 'none'; it has: "),
        ([script, "--training"], "hagane inspect --training: expected FILE.py:make"),
        ([f"{script}:trainer", "--memory-budget", "1MB"], "--memory-budget: expected --training"),
        ([f"{script}:trainer", "--training", "--values"], "--memory-budget and --json alone"),
        (
            [f"{script}:compiled", "--training", "--memory-budget", "1MB"],
            "compiles its step itself",
        ),
    ):
        with pytest.raises(SystemExit):
            main(["inspect", *arguments])
        assert words in " ".join(capsys.readouterr().err.split())


def squares(model: Any, x: Any) -> Any:
    return F.sum(model(x) ** 2)


def test_planning_a_step_neither_does_nor_compiles_it() -> None:
    model = L.Linear(None, 3)
    step = hagane.compile(squares, optimizers.SGD(0.1).setup(model))
    plan = step.plan(model, np.ones((4, 2), np.float32))
    before = model.W.array.copy()
    ((program,),) = step._programs.values()
    assert "_session" not in vars(program)
    step(model, np.ones((4, 2), np.float32))
    # (The engine adds some kilobytes for each thread.)
    assert abs(step.memory()["predicted"] - plan.memory.predicted) <= 1 << 14
    assert abs(model.W.array - before).max() > 0
    assert all(len(line) < 100 for line in lines_of(plan))
