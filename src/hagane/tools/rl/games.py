"""Small games in pictures of 10 × 10, in the manner of MinAtar (Young and Tian 2019).

One channel an object, so that a network of a few thousand weights learns them in minutes. Their
state can be set, for interventions. The rules are hagane's own.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

SIDE = 10
_COLOURS = np.array([[88, 166, 255], [255, 184, 77], [120, 200, 120], [90, 98, 110]], np.float32)


class Bricks(gymnasium.Env[npt.NDArray[np.float32], int]):
    """A paddle, a ball and three rows of bricks; a brick is worth 1, a lost ball ends the episode.

    Channels: paddle, ball, bricks, where the ball was before. Actions: left, stay, right. With a
    tenth of probability the action before is repeated. An episode is cut after 1,000 steps.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012
    action_meanings = ("left", "stay", "right")

    def __init__(self, render_mode: str | None = None):
        self.render_mode = render_mode
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (4, SIDE, SIDE), np.float32)
        self.action_space = gymnasium.spaces.Discrete(3)  # type: ignore[assignment]
        self.paddle, self.last, self.time = 4, 1, 0
        self._clear()

    def get_action_meanings(self) -> tuple[str, ...]:
        """Return the actions' names."""
        return self.action_meanings

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], dict[str, Any]]:
        """Begin a game: the ball comes from one of the upper corners."""
        super().reset(seed=seed)
        self._clear()
        right = bool(self.np_random.integers(2))
        self.ball = [4, SIDE - 1 if right else 0]
        self.before = [3, self.ball[1]]
        self.way = [1, -1 if right else 1]
        return self.picture(), {}

    def step(
        self, action: int
    ) -> tuple[npt.NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Move the paddle, then the ball."""
        if self.np_random.random() < 0.1:
            action = self.last
        self.last = int(action)
        self.paddle = int(np.clip(self.paddle + self.last - 1, 0, SIDE - 1))
        self.time += 1
        reward, lost = self._move_ball()
        return self.picture(), reward, lost, self.time >= 1000, {}

    def picture(self) -> npt.NDArray[np.float32]:
        """Return the observation, ``(4, 10, 10)``, ones where something is."""
        seen = np.zeros((4, SIDE, SIDE), np.float32)
        seen[0, SIDE - 1, self.paddle] = 1
        seen[1, self.ball[0], self.ball[1]] = 1
        seen[2] = self.bricks
        seen[3, self.before[0], self.before[1]] = 1
        return seen

    def render(self) -> npt.NDArray[np.uint8]:
        """Return the state in colours, ``(160, 160, 3)``."""
        return draw(self.picture())

    def objects(self) -> dict[str, tuple[int, int, int, int]]:
        """Return the box of each thing: top, left, bottom, right in cells, the ends excluded."""
        boxes = {
            "paddle": (SIDE - 1, self.paddle, SIDE, self.paddle + 1),
            "ball": (self.ball[0], self.ball[1], self.ball[0] + 1, self.ball[1] + 1),
        }
        if self.bricks.any():
            rows = np.flatnonzero(self.bricks.any(axis=1))
            boxes["bricks"] = (int(rows[0]), 0, int(rows[-1]) + 1, SIDE)
        return boxes

    def _clear(self) -> None:
        self.bricks = np.zeros((SIDE, SIDE), np.float32)
        self.bricks[1:4] = 1
        self.paddle, self.last, self.time = 4, 1, 0
        self.ball, self.before, self.way = [4, 0], [3, 0], [1, 1]

    def _move_ball(self) -> tuple[float, bool]:
        self.before = list(self.ball)
        row, column = self.ball[0] + self.way[0], self.ball[1] + self.way[1]
        if not 0 <= column < SIDE:
            self.way[1] = -self.way[1]
            column = min(max(column, 0), SIDE - 1)
        reward = 0.0
        if row < 0:
            self.way[0], row = 1, 0
        elif self.bricks[row, column]:
            self.bricks[row, column] = 0
            self.way[0] = -self.way[0]
            row, reward = self.ball[0], 1.0
        elif row == SIDE - 1:
            if not self.bricks.any():
                self.bricks[1:4] = 1
            if column == self.paddle or self.ball[1] == self.paddle:
                self.way[0] = -1
                if column != self.paddle:
                    self.way[1] = -self.way[1]
                row, column = self.ball[0], self.ball[1]
            else:
                self.ball = [row, column]
                return 0.0, True
        self.ball = [row, column]
        return reward, False


def draw(picture: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """Return an observation of channels in colours, 16 pixels a cell."""
    canvas = np.full((SIDE, SIDE, 3), 16, np.float32)
    for channel in (3, 2, 1, 0):
        canvas[picture[channel] > 0] = _COLOURS[channel]
    return np.repeat(np.repeat(canvas, 16, 0), 16, 1).astype(np.uint8)


class HiddenSpeed(gymnasium.ObservationWrapper[Any, Any, Any]):
    """CartPole without its velocities: only an agent that remembers can balance it."""

    def __init__(self, env: Any):
        super().__init__(env)
        space = env.observation_space
        self.observation_space = gymnasium.spaces.Box(space.low[::2], space.high[::2])

    def observation(self, observation: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return position and angle."""
        return observation[::2]


def hidden_cart_pole(render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Return a CartPole without velocities."""
    return HiddenSpeed(gymnasium.make("CartPole-v1", render_mode=render_mode))


def register() -> None:
    """Make ``hagane/Bricks-v0`` and ``hagane/CartPoleHidden-v0`` known to Gymnasium, once."""
    if "hagane/Bricks-v0" not in gymnasium.registry:
        gymnasium.register("hagane/Bricks-v0", f"{__name__}:Bricks")
        gymnasium.register("hagane/CartPoleHidden-v0", f"{__name__}:hidden_cart_pole")
