from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from hagane.tools.rl.agents.chainerrl import ChainerRLAgent
from hagane.tools.rl.agents.cleanrl import module_agent
from hagane.tools.rl.agents.load import adapted, load_agent
from hagane.tools.rl.agents.onnx import OnnxAgent
from hagane.tools.rl.agents.outputs import checked, kinds, plain
from hagane.tools.rl.agents.protocol import Watched, named_actions
from hagane.tools.rl.agents.stable_baselines import StableBaselinesAgent
from hagane.tools.rl.errors import AgentFault

from . import networks
from .conftest import AGENTS

SHIPPED = sorted((Path(__file__).parents[3] / "examples" / "rl" / "agents").glob("*.onnx"))


def test_numbers_of_every_kind_become_plain_ones() -> None:
    value = {"a": np.float32(1.5), 2: (np.arange(2), np.bool_(True)), "n": float("nan")}
    assert plain(value) == {"a": 1.5, "2": [[0, 1], True], "n": None}
    assert plain(torch.ones(2, requires_grad=True)) == [1.0, 1.0]
    assert plain(object()).startswith("<object")


def test_outputs_are_checked_by_their_rank() -> None:
    shown = {"action_probs": torch.tensor([[0.25, 0.75]]), "state_value": [[2.0]], "extra": "kept"}
    assert checked(shown, "it") == {
        "action_probs": [0.25, 0.75],
        "state_value": 2.0,
        "extra": "kept",
    }
    for bad, words in (
        ([1], "expected a dict with keys such as 'action_probs', got list"),
        ({"state_value": [1, 2]}, "'state_value': expected one number, got shape [2]"),
        ({"action_values": 3.0}, "'action_values': expected 1 dimension(s), got shape []"),
        ({"action_values": "high"}, "'action_values'"),
        ({"action_value_dist": [[1.0]], "z_values": [0, 1]}, "has 1 rows and 'z_values' 2 atoms"),
        ({"action_means": [1.0], "action_vars": [1, 1]}, "'action_means' has 1 numbers"),
    ):
        with pytest.raises(AgentFault) as caught:
            checked(bad, "it")
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("record", "distribution", "values"),
    [
        ({"action_probs": []}, "SoftmaxDistribution", None),
        ({"action_probs": [], "mellowmax_beta": 1}, "MellowmaxDistribution", None),
        ({"action_means": []}, "GaussianDistribution", None),
        ({"action_deterministic": []}, "ContinuousDeterministicDistribution", None),
        ({"action_values": []}, None, "DiscreteActionValue"),
        ({"action_values": [], "action_quantiles": []}, None, "DistributionalDiscreteActionValue"),
        ({"quadratic_value": {}}, None, "QuadraticActionValue"),
        ({"action_value": 1}, None, "SingleActionValue"),
    ],
)
def test_kinds_follow_from_what_is_shown(record, distribution, values) -> None:
    found = kinds(record)
    assert (found["distribution_type"], found["action_value_type"]) == (distribution, values)


def test_an_onnx_policy_acts_explains_and_is_randomised() -> None:
    agent = OnnxAgent(networks.values())
    seen = np.float32([1, -1, 0.5, 2])
    shown = agent.explain(seen)
    assert agent.act(seen) == int(np.argmax(shown["action_values"]))
    batch, _ = agent.forward(np.stack([seen, -seen, seen]))
    np.testing.assert_allclose(batch["action_values"][2], shown["action_values"], rtol=1e-5)
    assert agent.layers() == 3
    last = agent.randomised(1, 1).forward(seen[None])[0]
    every = agent.randomised(1).forward(seen[None])[0]
    assert not np.allclose(last["state_value"], shown["state_value"])
    np.testing.assert_allclose(last["action_values"][0], shown["action_values"], rtol=1e-5)
    assert not np.allclose(every["action_values"][0], shown["action_values"])


def test_pictures_of_bytes_become_fractions_and_channels_come_first() -> None:
    agent = OnnxAgent(networks.values((2, 5, 6)))
    picture = np.random.default_rng(0).integers(0, 256, (5, 6, 2), np.uint8)
    fractions = picture.astype(np.float32).transpose(2, 0, 1) / 255
    first, _ = OnnxAgent(networks.values((2, 5, 6))).forward(fractions[None])
    shown = agent.explain(picture.transpose(2, 0, 1))
    np.testing.assert_allclose(shown["action_values"], first["action_values"][0], rtol=1e-5)


def test_a_recurrent_policy_carries_its_state_and_explains_without_moving_it() -> None:
    agent = OnnxAgent(networks.counter())
    for total in (3.0, 6.0):
        assert agent.explain(np.float32([1, 2]))["action_values"][0] == total
        agent.act(np.float32([1, 2]))
    agent.reset()
    assert agent.explain(np.float32([1, 2]))["action_values"][0] == 3
    assert Watched(agent).recurrent


def test_models_that_are_no_policies_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"rubbish")
    with pytest.raises(AgentFault, match=r"bad.onnx"):
        load_agent(str(tmp_path / "bad.onnx"))
    with pytest.raises(AgentFault, match=r"none.onnx"):
        load_agent(str(tmp_path / "none.onnx"))
    raw = networks.model(
        [networks.helper.make_node("Add", ["a", "b"], ["c"])],
        {},
        {"a": ["n"], "b": ["n"]},
        {"c": ["n"]},
    )
    with pytest.raises(AgentFault, match="expected an output 'next_b', got c"):
        OnnxAgent(raw)


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("agent", "expected FILE.py:function"),
        ("none.py:make", "there is no file none.py"),
        ("no_such_module:make", "no_such_module cannot be imported"),
        (f"{AGENTS}:Nobody", "has no 'Nobody'"),
        (f"{AGENTS}:os", "without it"),
    ],
)
def test_references_that_lead_nowhere_are_named(reference: str, words: str) -> None:
    with pytest.raises(AgentFault, match=words):
        load_agent(reference)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_agent_that_ships_acts_in_its_environment(path: Path) -> None:
    from hagane.tools.rl.environments import make_world

    assert path.stat().st_size < 300_000
    agent, _ = load_agent(str(path))
    world = make_world(agent.agent.env)
    seen = world.reset(0)
    for _ in range(3):
        assert kinds(agent.explain(seen)) != kinds({})
        seen, *_ = world.step(agent.act(seen))
    world.close()


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor, self.critic = nn.Linear(4, 3), nn.Linear(4, 1)


class Continuous(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor_mean, self.critic = nn.Linear(4, 2), nn.Linear(4, 1)
        self.actor_logstd = nn.Parameter(torch.zeros(1, 2))


class Categorical(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Linear(4, 3 * 5)
        self.register_buffer("atoms", torch.linspace(-1, 1, 5))


class Squashed(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(4, 1)
        self.action_scale, self.action_bias = torch.tensor(2.0), torch.tensor(0.0)

    def forward(self, x):
        return self.mean(x), self.mean(x)


class Rainbow(nn.Module):
    def __init__(self):
        super().__init__()
        self.n_atoms, self.layer = 5, nn.Linear(4, 3 * 5)
        self.register_buffer("support", torch.linspace(-1, 1, 5))

    def forward(self, x):
        return self.layer(x).view(-1, 3, 5).softmax(2)


class DiscreteSoft(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc_logits = nn.Linear(4, 3)

    def forward(self, x):
        return self.fc_logits(x)


class Remembering(ActorCritic):
    def __init__(self):
        super().__init__()
        self.network, self.lstm = nn.Linear(2, 3), nn.LSTM(3, 4)


@pytest.mark.parametrize(
    ("module", "keys"),
    [
        (ActorCritic(), {"action_logits", "action_probs", "state_value"}),
        (Continuous(), {"action_means", "action_vars", "state_value"}),
        (Categorical(), {"action_values", "action_value_dist", "z_values"}),
        (Squashed(), {"action_deterministic"}),
        (Rainbow(), {"action_values", "action_value_dist", "z_values"}),
        (DiscreteSoft(), {"action_logits", "action_probs"}),
        (nn.Linear(4, 3), {"action_values"}),
    ],
)
def test_networks_of_cleanrl_are_told_apart(module: nn.Module, keys: set[str]) -> None:
    agent = Watched(adapted(module))
    shown = agent.explain(np.ones(4, np.float32))
    assert shown.keys() == keys
    agent.act(np.ones(4, np.float32))
    assert agent.can("gradient")


def test_the_memory_of_a_recurrent_network_of_cleanrl_is_carried_through_an_episode() -> None:
    module = Remembering()
    agent = adapted(module)
    assert agent.recurrent
    steps = np.random.default_rng(0).integers(0, 255, (3, 2)).astype(np.float32)
    for _ in range(2):  # the second episode begins anew
        agent.reset()
        values = []
        for step in steps:
            values.append(agent.explain(step)["state_value"])
            agent.act(step)
        with torch.no_grad():
            hidden, _ = module.lstm(module.network(torch.from_numpy(steps) / 255.0)[:, None])
            expected = module.critic(hidden[:, 0])
        np.testing.assert_allclose(np.stack(values), expected.numpy(), rtol=1e-5, atol=1e-7)


def _layers(inputs: int, outputs: int, kind: type[nn.Module], width: int = 6) -> nn.Sequential:
    middle = [nn.Linear(inputs, width), kind(), nn.Linear(width, width), kind()]
    return nn.Sequential(*middle, nn.Linear(width, outputs))


def _seeing(*last: nn.Module) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(4, 3, 8, stride=4), nn.ReLU(), nn.Conv2d(3, 2, 4, stride=2), nn.ReLU()),
        *(nn.Conv2d(2, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(98, 5), nn.ReLU(), *last),
    )


class Trained(nn.Module):
    """Parts by name, as CleanRL's programs call them."""

    def __init__(self, **parts: object):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, torch.Tensor):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)

    def forward(self, x):
        if hasattr(self, "network"):
            return self.network(x / 255 if x.dim() == 4 else x)
        hidden = self.fc2(self.fc1(x).relu()).relu()
        if hasattr(self, "fc_mu"):
            return self.fc_mu(hidden).tanh() * self.action_scale + self.action_bias
        return self.fc_mean(hidden), self.fc_logstd(hidden)


def _squashed(**heads: nn.Module) -> Trained:
    scale = {"action_scale": torch.tensor([2.0]), "action_bias": torch.tensor([0.5])}
    return Trained(fc1=nn.Linear(4, 6), fc2=nn.Linear(6, 6), **heads, **scale)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (Trained(network=_layers(4, 2, nn.ReLU)), (4,)),
        (Trained(network=_seeing(nn.Linear(5, 6))), (4, 84, 84)),
        (Trained(network=_layers(4, 9, nn.ReLU), atoms=torch.linspace(-1, 1, 3)), (4,)),
        (Trained(actor=_layers(4, 2, nn.Tanh), critic=_layers(4, 1, nn.Tanh)), (4,)),
        (Trained(network=_seeing(), actor=nn.Linear(5, 6), critic=nn.Linear(5, 1)), (4, 84, 84)),
        (
            Trained(
                actor_mean=_layers(4, 2, nn.Tanh),
                critic=_layers(4, 1, nn.Tanh),
                actor_logstd=torch.ones(1, 2),
            ),
            (4,),
        ),
        (_squashed(fc_mu=nn.Linear(6, 1)), (4,)),
        (_squashed(fc_mean=nn.Linear(6, 1), fc_logstd=nn.Linear(6, 1)), (4,)),
    ],
    ids=["DQN", "DQN for Atari", "C51", "PPO", "PPO for Atari", "PPO continuous", "TD3", "SAC"],
)
def test_weights_of_cleanrl_become_the_network_that_they_are_of(
    module: Trained, shape: tuple[int, ...], tmp_path: Path
) -> None:
    weights: object = module.state_dict()
    if hasattr(module, "atoms"):
        weights = {"model_weights": weights, "args": {"env_id": "CartPole-v1"}}
    if hasattr(module, "fc_mu"):
        weights = (weights, {}, {})
    torch.save(weights, tmp_path / "a.cleanrl_model")
    agent, _ = load_agent(str(tmp_path / "a.cleanrl_model"))
    assert agent.agent.kind == "CleanRL"
    seen = np.random.default_rng(0).integers(0, 255, (2, *shape)).astype(np.float32)
    found, wanted = agent.agent.forward(seen)[0], module_agent(module).forward(seen)[0]
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        np.testing.assert_array_equal(found[key], value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (nn.Linear(2, 2), "expected tensors alone, a state_dict.* AGENT.py return the network"),
        (b"x", "is no file of PyTorch"),
        ([1], "expected weights by name, got list"),
        (nn.Linear(2, 2).state_dict(), "no part is called network, actor or critic.*weight, bias"),
        ({"network.0.weight": torch.zeros(2, 3, 5, 5)}, r"a weight has the shape \[2, 3, 5, 5\]"),
        ({"network.0.weight": torch.zeros(2, 3), "lstm.bias": torch.zeros(2)}, "Unexpected|state"),
        (None, "cannot be read: No such file"),
    ],
)
def test_weights_of_other_networks_are_named(content: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pt"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        torch.save(content, path)
    with pytest.raises(AgentFault, match=words):
        load_agent(str(path))


def test_gradients_of_a_module_are_exact_and_weights_are_drawn_anew() -> None:
    module = nn.Linear(4, 3)
    agent = module_agent(module)
    slope = agent.gradient(np.ones((2, 4), np.float32), "action_values", 1)
    np.testing.assert_allclose(slope, np.repeat(module.weight[1:2].detach().numpy(), 2, 0))
    other = agent.randomised(0)
    assert not torch.equal(other.module.weight, module.weight)
    assert agent.layers() == 1


def test_links_of_hagane_act_with_exact_gradients_and_random_weights() -> None:
    from hagane.nn.functions.activation import tanh
    from hagane.nn.links.connection import Linear
    from hagane.nn.model.chain import Chain

    class Net(Chain):
        def __init__(self):
            super().__init__()
            with self.init_scope():
                self.first, self.second = Linear(4, 5), Linear(5, 3)

        def __call__(self, x):
            values = self.second(tanh(self.first(x)))
            return {"action_values": values}

    net = Net()
    agent = Watched(adapted(net))
    seen = np.float32([[1, -1, 0.5, 2], [0, 1, 0, 1]])
    assert agent.act(seen[0]) == int(np.argmax(agent.explain(seen[0])["action_values"]))
    slope = agent.agent.gradient(seen, "action_values", 2)
    for part in range(4):
        step = np.zeros(4, np.float32)
        step[part] = 1e-2
        ahead, behind = (agent.forward(seen + s)[0]["action_values"][:, 2] for s in (step, -step))
        np.testing.assert_allclose(slope[:, part], (ahead - behind) / 2e-2, atol=1e-3)
    last = agent.agent.randomised(0, 1)
    np.testing.assert_array_equal(last.link.first.W.array, net.first.W.array)
    assert not np.array_equal(last.link.second.W.array, net.second.W.array)
    assert last.layers() == 2
    assert adapted(Linear(4, 3)).explain(seen[0]).keys() == {"action_values"}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"policy_class": {"__module__": "stable_baselines3.dqn.policies"}}, "stable-baselines3"),
        ({"policy_class": {"__module__": "sb3_contrib.qrdqn.policies"}}, "sb3-contrib"),
        (
            {"policy_class": {"__module__": "stable_baselines3.common.policies"}},
            "could not be told",
        ),
        ({"policy_class": {}, "clip_range": 1}, "stable-baselines3"),
    ],
)
def test_archives_name_the_library_that_they_need(
    tmp_path: Path, facts: dict[str, object], words: str
) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data", json.dumps(facts))
    with pytest.raises(AgentFault, match=words):
        StableBaselinesAgent.load(str(tmp_path / "a.zip"))


def chainer_class(name: str, **fields: object) -> object:
    return type(name, (), fields)()


class Keeping:
    def __init__(self, *outputs: object):
        self.outputs = outputs

    def __call__(self, states: object) -> object:
        return self.outputs if len(self.outputs) > 1 else self.outputs[0]


V = type("Variable", (), {"__init__": lambda self, data: setattr(self, "data", np.asarray(data))})


@pytest.mark.parametrize(
    ("outputs", "keys"),
    [
        (
            (chainer_class("SoftmaxDistribution", all_prob=V([[0.5, 0.5]])), V([[1.0]])),
            {"action_probs", "state_value"},
        ),
        (
            (chainer_class("GaussianDistribution", mean=V([[0.0]]), var=V([[1.0]])),),
            {"action_means", "action_vars"},
        ),
        ((chainer_class("DiscreteActionValue", q_values=V([[1.0, 2.0]])),), {"action_values"}),
        (
            (
                chainer_class(
                    "DistributionalDiscreteActionValue",
                    q_values=V([[1.0, 2.0]]),
                    z_values=np.float32([0, 1, 2]),
                    q_dist=V(np.full((1, 2, 3), 1 / 3)),
                ),
            ),
            {"action_values", "z_values", "action_value_dist"},
        ),
        (
            (chainer_class("QuadraticActionValue", mu=V([[0.5]]), v=V([[1.0]])),),
            {"action_deterministic", "action_value"},
        ),
        ((chainer_class("SingleActionValue", max=V([3.0])),), {"action_value"}),
        (
            (chainer_class("MellowmaxDistribution", all_prob=V([[0.5, 0.5]]), beta=2.0),),
            {"action_probs", "mellowmax_beta"},
        ),
        (
            (chainer_class("ContinuousDeterministicDistribution", x=V([[0.5]])),),
            {"action_deterministic"},
        ),
    ],
)
def test_every_output_of_chainerrl_is_shown(outputs: tuple[object, ...], keys: set[str]) -> None:
    ended = []
    inner = SimpleNamespace(
        model=Keeping(*outputs),
        phi=np.float32,
        batch_states=lambda states, xp, phi: phi(states),
        act=lambda observation: 1,
        stop_episode=lambda: ended.append(True),
    )
    agent = Watched(adapted(inner))
    assert isinstance(agent.agent, ChainerRLAgent)
    assert agent.explain(np.ones(4)).keys() == keys
    assert agent.act(np.ones(4)) == 1
    agent.end_episode()
    assert ended == [True]


def test_outputs_that_chainerrl_does_not_have_are_named() -> None:
    for output, words in (
        (object(), "Model output type of object: expected a Variable"),
        (chainer_class("SoftmaxDistribution"), "Distribution type SoftmaxDistribution: a part"),
        (chainer_class("DiscreteActionValue"), "ActionValue type DiscreteActionValue: .*q_values"),
    ):
        inner = SimpleNamespace(
            model=Keeping(output), phi=np.float32, batch_states=lambda s, xp, phi: s, act=len
        )
        with pytest.raises(AgentFault, match=words):
            ChainerRLAgent(inner).explain(np.ones(4))


def test_archives_that_stable_baselines_did_not_write_are_named(tmp_path: Path) -> None:
    (tmp_path / "ppo.zip").write_bytes(b"no archive")
    with pytest.raises(AgentFault, match="no archive of Stable-Baselines3"):
        StableBaselinesAgent.load(str(tmp_path / "ppo.zip"))


def test_action_meanings_are_mappings_or_lists() -> None:
    assert named_actions(["a", "b"]) == named_actions({0: "a", 1: "b"}) == {"0": "a", "1": "b"}
    with pytest.raises(AgentFault, match="expected a dict such as"):
        named_actions("ab")


def test_an_episode_is_ended_once_and_only_where_the_agent_has_acted() -> None:
    class Agent:
        ended = 0

        def act(self, observation: object) -> int:
            return 0

        def stop_episode(self) -> None:
            self.ended += 1

    agent = Agent()
    watched = Watched(agent)
    watched.end_episode()
    assert agent.ended == 0
    watched.act(None)
    watched.end_episode()
    watched.end_episode()
    assert agent.ended == 1
