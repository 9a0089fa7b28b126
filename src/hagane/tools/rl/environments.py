"""Environments by name, and any object with ``reset``, ``step`` and ``render`` as one of them."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from hagane.errors import MissingExtra
from hagane.tools.rl.agents.load import described
from hagane.tools.rl.errors import EnvironmentFault

Picture = npt.NDArray[np.uint8]


class World:
    """One environment with the calls of Gymnasium, whichever generation of gym it follows.

    Args:
        env: has ``reset``, ``step`` and, to be seen, ``render``.
        name: for messages and the page.
    """

    def __init__(self, env: Any, name: str = ""):
        for call in ("reset", "step"):
            if not callable(getattr(env, call, None)):
                raise EnvironmentFault(
                    f"environment {name or type(env).__name__}: expected an object with reset and "
                    f"step, got {type(env).__name__} without {call!r}"
                )
        self.env = env
        self.name = name or _name(env)
        self.blind = "" if callable(getattr(env, "render", None)) else "it has no render()"
        self._render = getattr(env, "render", None)
        self._seeded = _takes(env.reset, "seed")
        self._moded = bool(callable(self._render) and _takes(self._render, "mode"))

    def reset(self, seed: int | None = None) -> Any:
        """Begin an episode and return the first observation."""
        if seed is None:
            result = self.env.reset()
        elif self._seeded:
            try:
                result = self.env.reset(seed=seed)
            except TypeError as error:
                if "'seed'" not in str(error):
                    raise
                self._seeded = False  # a wrapper takes any argument and the environment does not
                return self.reset(seed)
        else:
            if callable(getattr(self.env, "seed", None)):
                self.env.seed(seed)
            result = self.env.reset()
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict):
            return result[0]
        return result

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action: observation, reward, terminated, truncated, info."""
        result = self.env.step(action)
        if not isinstance(result, tuple) or len(result) not in (4, 5):
            raise EnvironmentFault(
                f"environment {self.name}: step: expected 4 or 5 results "
                "(observation, reward, terminated, truncated, info), "
                f"got {len(result) if isinstance(result, tuple) else type(result).__name__}"
            )
        if len(result) == 4:
            observation, reward, done, info = result
            truncated = bool(done) and bool(info.get("TimeLimit.truncated", False))
            return observation, float(reward), bool(done) and not truncated, truncated, info
        observation, reward, terminated, truncated, info = result
        return observation, float(reward), bool(terminated), bool(truncated), info

    def render(self) -> Picture | None:
        """Return the picture of the state, ``(height, width, 3)``; None if it cannot be had."""
        if self.blind:
            return None
        try:
            picture = self._drawn()
        except Exception as error:
            self.blind = f"render() failed: {described(error)}"
            return None
        if isinstance(picture, list) and picture:
            picture = picture[-1]
        pixels = _pixels(picture)
        if pixels is None:
            got = "nothing" if picture is None else f"{type(picture).__name__}"
            self.blind = (
                f"render() gave {got}; expected an array (height, width, 3): "
                "make the environment with render_mode='rgb_array'"
            )
        return pixels

    def _drawn(self) -> Any:
        """Call ``render``; environments of before Gymnasium open a window unless told not to."""
        assert self._render is not None
        if not self._moded:
            return self._render()
        try:
            return self._render(mode="rgb_array")
        except TypeError as error:
            if "'mode'" not in str(error):
                raise
            self._moded = False  # a wrapper takes any argument and the environment does not
            return self._render()

    def actions(self) -> int | None:
        """Return how many discrete actions there are, None for others."""
        count = getattr(getattr(self.env, "action_space", None), "n", None)
        return int(count) if isinstance(count, (int, np.integer)) else None

    def meanings(self) -> dict[str, str]:
        """Return names of its actions where it gives them, as Atari's environments do."""
        unwrapped = getattr(self.env, "unwrapped", self.env)
        call = getattr(unwrapped, "get_action_meanings", None)
        if not callable(call):
            known = _MEANINGS.get(self.name.split("-v")[0], ())
            return {str(index): text for index, text in enumerate(known)}
        try:
            return {str(index): str(text) for index, text in enumerate(call())}
        except Exception:
            return {}

    def ram(self) -> npt.NDArray[np.uint8] | None:
        """Return the memory of an Atari machine, ``(128,)``, None for others."""
        console = getattr(getattr(self.env, "unwrapped", self.env), "ale", None)
        if console is None or not callable(getattr(console, "getRAM", None)):
            return None
        return np.asarray(console.getRAM(), np.uint8)

    def objects(self) -> dict[str, list[float]]:
        """Return the box of each thing as shares of height and width, where it names them."""
        inner = getattr(self.env, "unwrapped", self.env)
        call = getattr(inner, "objects", None)
        shape = getattr(getattr(inner, "observation_space", None), "shape", None)
        if not callable(call) or not shape or len(shape) < 2:
            return {}
        height, width = shape[-2:]
        return {
            str(name): [top / height, left / width, bottom / height, right / width]
            for name, (top, left, bottom, right) in call().items()
        }

    def close(self) -> None:
        """Close it, errors aside."""
        close = getattr(self.env, "close", None)
        if callable(close):
            try:
                close()
            except Exception:
                return


_MEANINGS = {
    "CartPole": ("left", "right"),
    "Acrobot": ("torque -1", "none", "torque +1"),
    "MountainCar": ("left", "coast", "right"),
    "LunarLander": ("nothing", "left engine", "main engine", "right engine"),
}


def make_world(name: str, frames: int | None = None) -> World:
    """Make an environment of Gymnasium by its id.

    Atari games (``ALE/...``) are prepared as Mnih et al. 2015 do: grey, 84 × 84, every fourth
    frame, the last ``frames`` of them stacked, ``(frames, 84, 84)`` of uint8.

    Args:
        name: such as ``CartPole-v1`` or ``ALE/Breakout-v5``.
        frames: how many to stack, 4 for Atari if None; 0 leaves observations as they are.

    Raises:
        EnvironmentFault: there is none of that name, or it cannot be made.
        MissingExtra: Gymnasium is not installed.
    """
    try:
        import gymnasium
    except ImportError:
        raise MissingExtra("an environment by name", "rl") from None
    if name.startswith("hagane/"):
        from hagane.tools.rl import games

        games.register()
    atari = name.startswith("ALE/")
    if atari:
        try:
            import ale_py
        except ImportError:
            raise MissingExtra(f"environment {name}", "rl") from None
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        gymnasium.register_envs(ale_py)
    stacked = 4 if atari and frames is None else frames or 0
    options: dict[str, Any] = {}
    if atari and stacked:
        options = {"obs_type": "grayscale", "frameskip": 1}
    blind = ""
    try:
        try:
            env: Any = gymnasium.make(name, render_mode="rgb_array", **options)
        except gymnasium.error.Error:
            raise
        except Exception as error:
            blind = f"it cannot be made with render_mode='rgb_array': {described(error)}"
            env = gymnasium.make(name, **options)
    except Exception as error:
        raise EnvironmentFault(f"environment {name!r}: {described(error)}") from error
    if stacked:
        env = AtariFrames(env, stacked) if atari else Stacked(env, stacked)
    world = World(env, name)
    world.blind = world.blind or blind
    return world


class Stacked:
    """The last observations of an environment as one, along a new first dimension.

    Args:
        env: of Gymnasium.
        frames: how many.
    """

    def __init__(self, env: Any, frames: int):
        self.env = env
        self.unwrapped = env.unwrapped
        self.action_space = env.action_space
        self.frames: deque[npt.NDArray[Any]] = deque(maxlen=frames)

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Begin an episode; all frames are the first one."""
        observation, _ = self.env.reset(seed=seed)
        first = self.seen(observation)
        self.frames.extend([first] * (self.frames.maxlen or 1))
        return np.stack(self.frames)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action; the oldest frame makes room."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.frames.append(self.seen(observation))
        return np.stack(self.frames), float(reward), terminated, truncated, info

    def seen(self, observation: Any) -> npt.NDArray[Any]:
        """Return one observation as it is stacked."""
        return np.asarray(observation)

    def render(self) -> Any:
        """Return the picture of the state."""
        return self.env.render()

    def close(self) -> None:
        """Close it."""
        self.env.close()


class AtariFrames(Stacked):
    """Atari as Mnih et al. 2015 prepare it: grey, 84 × 84, four frames a step, brightest of two."""

    skip = 4

    def reset(self, seed: int | None = None) -> npt.NDArray[Any]:
        """Begin an episode; games that wait for the fire button get it pressed once."""
        first = super().reset(seed)
        names = self.unwrapped.get_action_meanings()
        if len(names) > 1 and names[1] == "FIRE":
            observation, _, over, cut, _ = self.env.step(1)
            if over or cut:
                return super().reset()
            self.frames.append(self.seen(observation))
            return np.stack(self.frames)
        return first

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Repeat an action four times and take the brighter of the last two frames."""
        total, last = 0.0, None
        for turn in range(self.skip):
            observation, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
            if turn == self.skip - 2:
                last = observation
        pair = observation if last is None else np.maximum(observation, last)
        self.frames.append(self.seen(pair))
        return np.stack(self.frames), total, terminated, truncated, info

    def seen(self, observation: Any) -> npt.NDArray[Any]:
        """Return a grey screen as 84 × 84 pixels, each the mean of the pixels that it covers."""
        from PIL import Image

        screen = Image.fromarray(np.asarray(observation, np.uint8))
        return np.asarray(screen.resize((84, 84), Image.Resampling.BOX))


def _pixels(picture: Any) -> Picture | None:
    if picture is None or isinstance(picture, str | bytes | dict):
        return None
    try:
        array = np.asarray(picture)
    except (TypeError, ValueError):
        return None
    if array.ndim == 2:
        array = np.stack([array] * 3, axis=-1)
    if array.ndim != 3 or array.shape[-1] not in (1, 3, 4) or 0 in array.shape:
        return None
    if array.dtype.kind == "f":
        array = array * (255 if array.max(initial=0) <= 1 else 1)
    if array.dtype.kind not in "biuf":
        return None
    array = array.clip(0, 255).astype(np.uint8)
    return np.ascontiguousarray(np.repeat(array, 3, -1) if array.shape[-1] == 1 else array[..., :3])


def _name(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(getattr(spec, "id", None) or type(env).__name__)


def _takes(call: Callable[..., Any], name: str) -> bool:
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )
