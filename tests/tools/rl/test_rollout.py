"""What a rollout leaves behind, for actions and observations of every kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import World, make_world
from hagane.tools.rl.errors import InvalidLog
from hagane.tools.rl.jobs.rollout import roll_out
from hagane.tools.rl.jobs.video import FORMATS, make_video
from hagane.tools.rl.logs.folder import LOG_NAME, LogFolder
from hagane.tools.rl.logs.observations import read_observation


def quiet(done: int, total: int) -> None:
    """Tell nobody."""


class Arm:
    """Takes dicts of actions and gives dicts of observations."""

    def __init__(self):
        self.taken = []

    def reset(self, seed=None):
        return {"angle": np.float32([0.5, 1]), "touch": 1}, {}

    def step(self, action):
        self.taken.append(action)
        return {"angle": np.float32([0.25, 2]), "touch": 0}, 0.5, False, True, {}

    def render(self):
        return np.full((4, 6, 3), 10 * len(self.taken) % 255, np.uint8)


class Mover:
    def act(self, observation):
        return {"force": np.float32([0.1, -1]), "grip": np.int64(1), "mode": (True, "slow")}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return LogFolder(tmp_path).new()


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / LOG_NAME).read_text().splitlines()]


def test_dicts_of_actions_and_observations_are_logged(folder: Path) -> None:
    result = roll_out(Watched(Mover()), World(Arm()), folder, 3, 0, quiet)
    assert result == {"steps": 3, "episodes": 4, "warnings": []}
    found = lines(folder)
    force = [pytest.approx(0.1), -1.0]
    assert found[0]["action"] == {"force": force, "grip": 1, "mode": [True, "slow"]}
    assert [row["episode"] for row in found] == [0, 1, 2]
    assert {row["done"] for row in found} == {"truncated"}
    assert read_observation(folder, 2)["angle"].tolist() == [0.5, 1]


@pytest.mark.parametrize("name", ["Pendulum-v1", "MountainCarContinuous-v0"])
def test_continuous_actions_are_logged(name: str, folder: Path) -> None:
    class Pushes:
        def act(self, observation):
            return np.float32([0.5])

        def explain(self, observation):
            return {"action_means": [0.5], "action_vars": [0.1]}

    roll_out(Watched(Pushes()), make_world(name), folder, 5, 0, quiet)
    assert lines(folder)[4]["action"] == [0.5]


def test_an_agent_that_returns_nonsense_is_reported_by_the_environment(folder: Path) -> None:
    class Wrong:
        def act(self, observation):
            return 17

    with pytest.raises(AssertionError, match="17"):
        roll_out(Watched(Wrong()), make_world("CartPole-v1"), folder, 5, 0, quiet)


def test_observations_that_cannot_be_kept_are_named_and_the_rollout_goes_on(folder: Path) -> None:
    class Talks(Arm):
        def reset(self, seed=None):
            return [object()], {}

    result = roll_out(Watched(Mover()), World(Talks()), folder, 2, 0, quiet)
    assert len(lines(folder)) == 2
    assert "steps of this rollout cannot be explained" in result["warnings"][0]


def test_every_format_of_video_moves(folder: Path) -> None:
    roll_out(Watched(Mover()), World(Arm()), folder, 4, 0, quiet)
    for ending in FORMATS:
        make_video(folder, f"a.{ending}", 0, 3, 10, "", quiet)
        with Image.open(folder / "exports" / f"a.{ending}") as picture:
            assert picture.n_frames == 4, ending
            assert picture.size == (6, 4)


def test_a_video_without_pictures_is_refused(folder: Path) -> None:
    class Blind(Arm):
        render = None

    result = roll_out(Watched(Mover()), World(Blind()), folder, 2, 0, quiet)
    assert "it has no render()" in result["warnings"][0]
    assert lines(folder)[0]["image_path"] is None
    with pytest.raises(InvalidLog, match="steps 0 to 1 have no pictures"):
        make_video(folder, "a.gif", 0, 1, 10, "", quiet)
