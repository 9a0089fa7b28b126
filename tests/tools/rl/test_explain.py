from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter1d
from scipy.stats import spearmanr
from torch import nn

from hagane.tools.rl.agents.cleanrl import module_agent
from hagane.tools.rl.agents.onnx import OnnxAgent
from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import World
from hagane.tools.rl.errors import NotExplainable
from hagane.tools.rl.explain import sanity
from hagane.tools.rl.explain.gradients import integrated_gradients, smooth_gradient
from hagane.tools.rl.explain.job import Request, explain_steps
from hagane.tools.rl.explain.objects import Box, atari_boxes, object_saliency
from hagane.tools.rl.explain.perturbing import Grid, blur_matrix, greydanus, occlusion, one_by_one
from hagane.tools.rl.explain.subject import Subject, Target, replayed, targets_of
from hagane.tools.rl.games import Bricks
from hagane.tools.rl.jobs.rollout import roll_out

from . import networks

Q = {"q": Target("action_values")}


class Looks:
    """Values that are sums over the left and the right half of a picture's first channel."""

    def act(self, observation):
        return 0

    def forward(self, batch, state=None):
        half = batch.shape[-1] // 2
        seen = batch.reshape(len(batch), -1, *batch.shape[-2:])[:, 0]
        left, right = seen[..., :half].sum((1, 2)), 2 * seen[..., half:].sum((1, 2))
        return {"action_values": np.stack([left, right], 1), "state_value": left[:, None]}, None


def seen_by(agent: object, observation: np.ndarray, **more: object) -> Subject:
    return Subject(Watched(agent), observation, **more)


@given(st.integers(3, 40), st.sampled_from([0.6, 1.5, 3.0, 5.0]))
def test_the_blur_is_that_of_scipy(size: int, deviation: float) -> None:
    values = np.random.default_rng(size).normal(size=size)
    expected = gaussian_filter1d(values, deviation, mode="reflect", truncate=4.0)
    np.testing.assert_allclose(blur_matrix(size, deviation) @ values, expected, atol=1e-12)


@pytest.mark.parametrize("form", ["gaussian", "disc"])
@pytest.mark.parametrize("shape", [(4, 21, 30), (23, 20, 3), (20, 20)])
def test_maps_in_batches_are_those_of_a_pass_a_point(shape: tuple[int, ...], form: str) -> None:
    observation = np.random.default_rng(1).random(shape).astype(np.float32)
    subject = seen_by(OnnxAgent(networks.values(shape)), observation)
    grid = Grid(form=form)
    batched, single = greydanus(subject, Q, grid), one_by_one(subject, Q, grid)
    assert batched["q"].shape == subject.plane
    np.testing.assert_allclose(batched["q"], single["q"], rtol=1e-4, atol=1e-6)


def test_saliency_lies_where_the_agent_looks() -> None:
    observation = np.zeros((1, 40, 40), np.float32)
    observation[0, 10, 30] = 50
    maps = greydanus(
        seen_by(Looks(), observation), {"right": Target("action_values", 1)}, Grid(4, 2, 3)
    )
    row, column = np.unravel_index(maps["right"].argmax(), (40, 40))
    assert abs(row - 10) <= 4
    assert abs(column - 30) <= 4


def test_pictures_of_bytes_are_explained_in_their_own_scale() -> None:
    bytes_seen = np.random.default_rng(0).integers(0, 256, (2, 12, 12), np.uint8)
    agent = OnnxAgent(networks.values((2, 12, 12)))
    coarse = greydanus(seen_by(agent, bytes_seen), Q, Grid(4, 2, 2))["q"]
    fine = greydanus(seen_by(agent, bytes_seen.astype(np.float32) / 255), Q, Grid(4, 2, 2))["q"]
    np.testing.assert_allclose(coarse, fine, rtol=1e-3, atol=1e-6)


def test_lists_of_numbers_are_no_pictures() -> None:
    with pytest.raises(NotExplainable, match=r"expected pictures as observations, got shape \[4\]"):
        greydanus(seen_by(OnnxAgent(networks.values()), np.ones(4, np.float32)), Q, Grid())


def test_occlusion_replaces_by_the_mean() -> None:
    seen = np.float32([1, 2, 3, 4])
    mean = np.float32([1, 0, 3, 3])
    agent = module_agent(nn.Linear(4, 1, bias=False))
    maps = occlusion(seen_by(agent, seen, mean=mean), Q)
    weight = agent.module.weight.detach().numpy()[0]
    np.testing.assert_allclose(maps["q"], (weight * (seen - mean)) ** 2, rtol=1e-4, atol=1e-7)


def test_integrated_gradients_add_up_to_the_difference_with_exact_and_estimated_slopes() -> None:
    seen, mean = np.float32([1, -1, 0.5, 2]), np.float32([0, 0.2, 0.1, 1])
    exact = module_agent(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
    for agent, tolerance in ((exact, 1e-3), (OnnxAgent(networks.values()), 5e-3)):
        subject = seen_by(agent, seen, mean=mean)
        outputs = subject.outputs(np.stack([seen, mean]))["action_values"]
        best = int(outputs[0].argmax())
        found = integrated_gradients(subject, Q, 64)["q"]
        assert found.sum() == pytest.approx(outputs[0, best] - outputs[1, best], abs=tolerance)


def test_smooth_gradients_of_a_linear_agent_are_its_weights() -> None:
    agent = module_agent(nn.Linear(4, 1))
    found = smooth_gradient(seen_by(agent, np.ones(4, np.float32)), Q)["q"]
    np.testing.assert_allclose(found, np.abs(agent.module.weight.detach().numpy()[0]), rtol=1e-5)


def test_targets_are_named_by_role_or_key() -> None:
    outputs = {"action_values": np.zeros((1, 3)), "state_value": np.zeros((1, 1))}
    assert targets_of(outputs, "all") == {
        "critic": Target("state_value"),
        "qfunc": Target("action_values"),
    }
    assert targets_of(outputs, "action_values.2") == {"action_values.2": Target("action_values", 2)}
    with pytest.raises(NotExplainable, match="3 parts, counted from 0"):
        targets_of(outputs, "action_values.3")
    with pytest.raises(NotExplainable, match="the agent does not give it; it gives action_values"):
        targets_of(outputs, "actor")


def test_a_carried_state_and_a_perturbed_past_differ() -> None:
    past = [np.float32([1, 2]), np.float32([3, 4])]
    agent = Watched(OnnxAgent(networks.counter()))
    state = replayed(agent, past)
    np.testing.assert_allclose(state[0], [[10]])
    here = np.float32([5, 6])
    one = Subject(agent, here, state, np.zeros(2, np.float32))
    every = Subject(agent, here, None, np.zeros(2, np.float32), past)
    for subject, factor in ((one, 1), (every, 3)):
        values = subject.outputs(np.stack([here, here - np.float32([1, 0])]))["action_values"]
        np.testing.assert_allclose(values[:, 0], [21, 21 - factor])


def test_objects_are_taken_away_one_by_one() -> None:
    observation = np.zeros((1, 10, 10), np.float32)
    observation[0, 2, 2], observation[0, 5, 7] = 1, 1
    boxes = {"left": Box(0.2, 0.2, 0.3, 0.3), "right": Box(0.5, 0.7, 0.6, 0.8)}
    maps, numbers = object_saliency(seen_by(Looks(), observation), Q, boxes, observation * 0)
    assert numbers == {"q": {"left": 1.0, "right": 4.0}}
    assert maps["q"][5, 7] == 4
    with pytest.raises(NotExplainable, match="ALE/Pong"):
        object_saliency(seen_by(Looks(), observation), Q, {}, observation)


def test_the_memory_of_pong_tells_where_things_are() -> None:
    ram = bytearray(128)
    ram[51], ram[50], ram[49], ram[54] = 109, 115, 127, 129
    boxes = atari_boxes("ALE/Pong-v5", bytes(ram))
    assert boxes["player"].top * 210 == pytest.approx(96)
    assert boxes["ball"].left * 160 == pytest.approx(78)
    assert atari_boxes("ALE/Tennis-v5", bytes(ram)) == {}


@given(st.lists(st.integers(0, 5), min_size=3, max_size=20), st.integers(0, 99))
def test_rank_correlations_are_those_of_scipy(a: list[int], seed: int) -> None:
    b = np.random.default_rng(seed).permutation(a)
    if len(set(a)) == 1:
        assert sanity.rank_correlation(a, b) == 0
    else:
        assert sanity.rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-9)


def test_checks_pass_for_a_true_map_and_fail_for_an_edge_detector() -> None:
    draw = np.random.default_rng(0)
    observation = draw.random((1, 14, 14)).astype(np.float32)
    others = [draw.random((1, 14, 14)).astype(np.float32) for _ in range(6)]
    empty = np.zeros((1, 14, 14), np.float32)
    subject = seen_by(Looks(), observation, mean=empty)
    true = occlusion(subject, Q)["q"]
    random = draw.random((14, 14)).astype(np.float32)
    assert sanity.intervention(subject, Q["q"], true, others).holds
    honest = sanity.faithful(sanity.faithfulness(subject, Q["q"], true))
    assert honest.holds
    assert honest.value > (sanity.faithful(sanity.faithfulness(subject, Q["q"], random)).value or 0)
    subject = seen_by(OnnxAgent(networks.values((1, 14, 14))), observation, mean=empty)
    edges = np.abs(np.diff(observation[0], axis=1, prepend=0))
    last, every = sanity.randomised(subject, lambda changed: edges, edges)
    assert last.holds is None
    assert every.holds is False
    assert "rank correlation 1.00 with the map of random weights in all layers" in every.words


def test_agents_without_weights_are_not_checked_for_them() -> None:
    subject = seen_by(Looks(), np.ones((1, 9, 9), np.float32))
    (verdict,) = sanity.randomised(subject, lambda s: np.ones((9, 9)), np.ones((9, 9)))
    assert verdict.holds is None
    assert "no randomised(seed, layers)" in verdict.words


def test_steps_of_a_game_are_explained_with_their_checks(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    agent = Watched(OnnxAgent(networks.values((4, 10, 10))))
    world = World(Bricks("rgb_array"))
    roll_out(agent, world, tmp_path, 12, 0, lambda done, total: None)
    told = []
    for method in ("greydanus", "objects"):
        meta = explain_steps(
            agent, world, tmp_path, method, Request(3, 5, method), lambda *news: told.append(news)
        )
        assert meta["shape"] == [10, 10]
        assert len(meta["checks"]) == 2 * (4 if method == "greydanus" else 3)
        maps = np.fromfile(tmp_path / "explanations" / method / "maps.f32", np.float32)
        assert maps.size == 3 * 2 * 100
        assert (maps >= 0).all()
    assert told[-1] == (6, 6)
    with pytest.raises(NotExplainable, match="steps 50 to 60: the rollout has 12 observations"):
        explain_steps(agent, world, tmp_path, "x", Request(50, 60), lambda *news: None)


def test_many_steps_are_explained_by_one_graph_like_few_by_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images").mkdir()
    agent = Watched(OnnxAgent(networks.looking()))
    world = World(Bricks("rgb_array"))
    roll_out(agent, world, tmp_path, 34, 0, lambda done, total: None)
    asked = []
    blended = OnnxAgent.blended
    monkeypatch.setattr(OnnxAgent, "blended", lambda *a: asked.append(a) or blended(*a))
    for name, last in (("few", 3), ("many", 33)):
        request = Request(0, last, checks=False)
        explain_steps(agent, world, tmp_path, name, request, lambda *news: None)
    assert len(asked) == 1
    maps = [
        np.fromfile(tmp_path / "explanations" / name / "maps.f32", np.float32)
        for name in ("few", "many")
    ]
    assert maps[0].max() > 0
    np.testing.assert_allclose(
        maps[1][: maps[0].size], maps[0], rtol=1e-3, atol=1e-4 * maps[0].max()
    )
