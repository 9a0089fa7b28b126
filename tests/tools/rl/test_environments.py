from __future__ import annotations

import warnings

import gymnasium
import numpy as np
import pytest

from hagane.tools.rl.environments import World, make_world
from hagane.tools.rl.errors import EnvironmentFault
from hagane.tools.rl.games import Bricks


class Old:
    """An environment of gym before 0.26."""

    def __init__(self, picture: object = None):
        self.picture, self.seeded = picture, None

    def seed(self, seed):
        self.seeded = seed

    def reset(self):
        return np.zeros(2)

    def step(self, action):
        return np.ones(2), 1, True, {"TimeLimit.truncated": bool(action)}

    def render(self, mode):
        assert mode == "rgb_array"
        return self.picture


def test_environments_of_either_generation_give_five_results() -> None:
    inner = Old(np.zeros((4, 4, 3), np.uint8))
    world = World(inner)
    assert world.reset(7).tolist() == [0, 0]
    assert inner.seeded == 7
    assert world.step(0)[1:4] == (1.0, True, False)
    assert world.step(1)[1:4] == (1.0, False, True)
    assert world.render().shape == (4, 4, 3)
    new = make_world("CartPole-v1")
    assert new.reset(0).shape == (4,)
    assert new.step(0)[2:4] == (False, False)
    assert new.render().shape == (400, 600, 3)
    assert new.meanings() == {"0": "left", "1": "right"}
    assert (new.actions(), new.ram(), new.objects()) == (2, None, {})
    new.close()


@pytest.mark.parametrize(
    ("picture", "shape"),
    [
        (np.zeros((5, 6)), (5, 6, 3)),
        (np.ones((5, 6, 1), np.float32), (5, 6, 3)),
        (np.zeros((5, 6, 4), np.uint8), (5, 6, 3)),
        ([np.zeros((2, 2, 3), np.uint8)], (2, 2, 3)),
    ],
)
def test_pictures_of_any_form_become_colours(picture: object, shape: tuple[int, ...]) -> None:
    found = World(Old(picture)).render()
    assert found.shape == shape
    assert found.dtype == np.uint8


@pytest.mark.parametrize("picture", [None, "text", np.zeros(3), np.zeros((0, 3, 3)), {}, 5])
def test_what_is_no_picture_is_named_once_and_not_asked_for_again(picture: object) -> None:
    inner = Old(picture)
    world = World(inner)
    assert world.render() is None
    assert "expected an array (height, width, 3)" in world.blind
    inner.render = None
    assert world.render() is None


def test_an_environment_whose_rendering_fails_is_played_without() -> None:
    inner = Old()
    inner.render = lambda: 1 / 0
    world = World(inner)
    assert world.render() is None
    assert world.blind == "render() failed: ZeroDivisionError: division by zero"


def test_what_is_no_environment_is_named() -> None:
    with pytest.raises(EnvironmentFault, match="got object without 'reset'"):
        World(object())
    world = World(Old())
    world.env.step = lambda action: (1, 2)
    with pytest.raises(EnvironmentFault, match="expected 4 or 5 results"):
        world.step(0)
    with pytest.raises(EnvironmentFault, match="environment 'Nothing-v9'"):
        make_world("Nothing-v9")


def test_atari_is_prepared_as_published() -> None:
    world = make_world("ALE/Breakout-v5")
    first = world.reset(0)
    assert (first.shape, first.dtype) == ((4, 84, 84), np.uint8)
    following, *_ = world.step(0)
    np.testing.assert_array_equal(following[:-1], first[1:])
    assert world.meanings()["1"] == "FIRE"
    assert world.ram().shape == (128,)
    raw = make_world("ALE/Breakout-v5", frames=0)
    assert raw.reset(0).shape == (210, 160, 3)
    assert make_world("CartPole-v1", frames=3).reset(0).shape == (3, 4)


def test_bricks_is_an_environment_of_gymnasium() -> None:
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice about rendering without gymnasium.make
        check_env(Bricks("rgb_array"), skip_render_check=False)
    world = make_world("hagane/Bricks-v0")
    seen = world.reset(3)
    assert seen[0].sum() == seen[1].sum() == 1
    assert seen[2].sum() == 30
    assert world.objects()["paddle"] == [0.9, 0.4, 1.0, 0.5]


def test_a_game_of_bricks_is_won_by_following_the_ball() -> None:
    world = make_world("hagane/Bricks-v0")
    total, over = 0.0, False
    world.reset(1)
    game = world.env.unwrapped
    for _ in range(300):
        ahead = game.ball[1] + (game.way[1] if game.way[0] > 0 else 0)
        _, reward, over, _, _ = world.step(int(np.sign(ahead - game.paddle)) + 1)
        total += reward
        if over:
            break
    assert total >= 3


def test_speeds_are_hidden() -> None:
    assert make_world("hagane/CartPoleHidden-v0").reset(0).shape == (2,)
    assert "hagane/Bricks-v0" in gymnasium.registry


def test_an_environment_behind_a_wrapper_that_takes_any_argument_is_seeded_as_it_can_be() -> None:
    class Inner:
        def __init__(self) -> None:
            self.seeds: list[int] = []

        def seed(self, number: int) -> None:
            self.seeds.append(number)

        def reset(self) -> float:
            return 0.5

        def step(self, action: int) -> tuple[float, float, bool, dict[str, object]]:
            return 0.5, 0.0, False, {}

    class Wrapper:
        def __init__(self, inner: Inner) -> None:
            self.inner = inner
            self.seed, self.step = inner.seed, inner.step

        def reset(self, **given: object) -> float:
            return self.inner.reset(**given)

    inner = Inner()
    assert World(Wrapper(inner)).reset(7) == 0.5
    assert inner.seeds == [7]


def test_an_environment_of_before_gymnasium_opens_no_window() -> None:
    class Window(Old):
        def render(self, mode="human"):
            return self.picture if mode == "rgb_array" else None

    class New(Old):
        def render(self):
            return self.picture

    class Wrapper(Old):
        def __init__(self, inner):
            self.inner = inner

        def render(self, **given):
            return self.inner.render(**given)

    picture = np.zeros((2, 3, 3), np.uint8)
    for env in (Window(picture), New(picture), Wrapper(Window(picture)), Wrapper(New(picture))):
        world = World(env)
        assert world.render().shape == (2, 3, 3)
        assert world.render().shape == (2, 3, 3)
        assert world.blind == ""


def test_errors_of_a_seeded_reset_are_the_environments_own() -> None:
    class Broken:
        def reset(self, seed: int | None = None) -> float:
            raise TypeError("no picture")

        def step(self, action: int) -> None: ...

    with pytest.raises(TypeError, match="no picture"):
        World(Broken()).reset(7)
