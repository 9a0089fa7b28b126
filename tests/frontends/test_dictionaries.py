"""Dictionaries and lists of programs: tensors and numbers of NumPy as keys, places and members."""

from __future__ import annotations

from pathlib import Path

from hagane.checking import Request, check_source

from .checking import check_text
from .test_training_context import checked

OWN_STATE = """
class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, {"lr": lr})
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if len(state) == 0:
                    state["mean"] = torch.zeros_like(p)
                state["mean"].mul_(0.9).add_(p.grad)
                p.add_(state["mean"], alpha=-group["lr"])
class Plain:
    def __init__(self, params):
        self.params, self.kept = list(params), {}
    def step(self):
        for p in self.params:
            if p not in self.kept:
                self.kept[p] = torch.zeros_like(p.data)
            self.kept[p] = 0.9 * self.kept[p] + p.grad
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 2))
both = [Momentum(net.parameters()), Plain(net.parameters())]
for _ in range(3):
    net(torch.randn(4, 3)).sum().backward()
    for one in both:
        one.step()
shape = both[0].state[net[0].weight]["mean"].shape
assert shape == (3, 3)
"""


def test_an_optimizer_of_the_program_keeps_state_by_parameters(tmp_path: Path) -> None:
    report = checked(tmp_path, OWN_STATE)
    assert report.exit_code == 0, (report.errors, report.unknown)
    wrong = checked(
        tmp_path, OWN_STATE.replace("_like(p)", "_like(p[0])").replace("assert shape == (3, 3)", "")
    )
    assert ["does not fit in place" in e.message for e in wrong.errors] == [True]


def test_a_tensor_is_a_key_by_its_identity(tmp_path: Path) -> None:
    text = "words = {0: 'a', 1: 'b'}\nfor i in torch.randint(0, 2, (4,)):\n    print(words[i%s])\n"
    assert checked(tmp_path, text % ".item()").exit_code == 0
    (error,) = checked(tmp_path, text % "").errors
    assert "by its identity, not by its value; expected one of the keys 0, 1" in error.message
    assert "take its number with .item()" in error.message


def test_sets_of_numpy_numbers_are_keys_of_which_the_run_knows_the_number(tmp_path: Path) -> None:
    text = """
import numpy as np
labels = torch.arange(12) % 3
places = {k: np.where(labels.numpy() == k)[0] for k in list(set(labels.numpy()))}
chosen = [np.random.choice(places[k], 4) for k in np.random.choice(list(places), 2)]
total = sum(len(v) for v in places.values())
for key, where in places.items():
    assert where.ndim == 1
picked = torch.randn(12, 5)[np.concatenate(chosen)]
"""
    report = checked(tmp_path, text)
    assert report.exit_code == 0, (report.errors, report.unknown)
    wrong = checked(tmp_path, text + "nn.Linear(4, 2)(picked)\n")
    assert ["expected 4 features" in e.message for e in wrong.errors] == [True]


def test_tensors_are_bounds_of_slices_of_lists(tmp_path: Path) -> None:
    text = "ends = torch.tensor([2, 3])\nx = [torch.zeros(4, 5)] * 6\n"
    report = checked(
        tmp_path, text + "y = torch.stack(x[: ends[1]])\nassert y.shape == (3, 4, 5)\n"
    )
    assert report.exit_code == 0, (report.errors, report.unknown)


REGISTRY = """
import torch
from types import SimpleNamespace
class Registry(dict):
    def register(self, name, made):
        self[name] = made
ACTS, SIZES, NAMES = Registry(), {}, ["gelu"]
ACTS.update(gelu=torch.nn.GELU, relu=torch.nn.ReLU)
ACTS.register("tanh", torch.nn.Tanh)
NAMES += ["tanh"]
for number, name in enumerate(NAMES):
    SIZES.setdefault(name, 2 + number)
print("loaded")
class Net(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.act, self.layer = ACTS[kind](), torch.nn.Linear(4, SIZES[kind])
    def forward(self, x):
        y = self.act(self.layer(x))
        return SimpleNamespace(y=y, **{"total": y.sum(-1)})
"""


def test_registries_are_filled_as_their_module_is_read(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(REGISTRY)
    report = check_source(Request(file, "Net", {"x": "float32[n, 4]"}, "Net('tanh')"))
    assert not report.errors, report.errors
    assert report.exit_code == 0, report.unknown
    assert {name: str(found.shape[0]) for name, found in report.tensors.items()} == {
        "y": "n", "total": "n",
    }  # fmt: skip
    assert report.tensors["y"].shape[1] == 3
    assert any("'print('loaded')' has effects at import" in n.message for n in report.notices)
    (error,) = check_source(Request(file, "Net", {"x": "float32[n, 4]"}, "Net('silu')")).errors
    assert "KeyError" in error.message


def test_texts_may_be_drawn_and_arrays_of_texts_are_named(tmp_path: Path) -> None:
    source = """
    import numpy as np

    def f(x: Shaped["float32[b, 4]"]):
        words = [["good", "fine"], ["bad", "poor"]]
        drawn = [" ".join(np.random.choice(words[k], 3)) for k in np.random.randint(0, 2, 5)]
        names = np.array(["low", "high"])
        return (x @ x.T)[: len(drawn)], names
    """
    report = check_text(tmp_path, source)
    assert not report.errors
    assert report.returned == "(numpy.ndarray(dtype=float32, shape=(min(5, b), b)), unknown)"


def test_padding_by_reflection_needs_channels(tmp_path: Path) -> None:
    source = """
    def f(x: Shaped["float32[b, 6]"]):
        return F.pad(x[2:], (1, 3), mode="reflect")
    """
    report = check_text(tmp_path, source)
    assert "channels of a padding by 'reflect'" in str(report.assumptions + report.errors)


COUNTED = """
from collections import Counter
def f(x):
    letters = Counter("abracadabra")
    letters.update(["a", "z"], q=2)
    letters["q"] += 1
    letters.subtract({"a": 2})
    vocab = {letter: place for place, (letter, _) in enumerate(letters.most_common(3))}
    table = nn.Embedding(len(vocab), 4)
    assert isinstance(letters, Counter) and not isinstance(vocab, Counter)
    return (torch.ones(letters["a"]) + torch.ones(4), torch.ones(letters["none"] + 1, 2),
            torch.ones(letters.total()), table(torch.tensor([vocab["a"], vocab["b"]])))
"""


def test_a_counter_counts(tmp_path: Path) -> None:
    report = check_text(tmp_path, COUNTED, {"x": "float32[2]"})
    assert report.ok, (report.errors, report.unknown)
    told = str(report.returned)
    shapes = ["(4,)", "(1, 2)", "(14,)", "(2, 4)"]
    assert [f"shape={shape}" in told for shape in shapes] == [True] * 4, told


def test_values_stored_at_indices_have_the_tensors_own_element_type(tmp_path: Path) -> None:
    source = (
        "def f(x, i):\n    x[i > 0] = torch.tensor(1)\n    x[0] = i[0]\n    x[{}] = i\n    return x"
    )
    inputs = {"x": "float32[n, 3]", "i": "int64[n, 3]"}
    assert check_text(tmp_path, source.format(":"), inputs).ok
    (error,) = check_text(tmp_path, source.format("torch.arange(x.size(0))"), inputs).errors
    assert error.message == (
        "item assignment: expected values of the element type float32 to be stored at indices, got "
        "torch.Tensor(dtype=int64, shape=(n, 3))"
    )
    assert error.remedy == "convert them: .to(torch.float32)"


def test_a_layer_that_fits_no_input_is_one_mistake(tmp_path: Path) -> None:
    source = """
    def f(x):
        layer = nn.Linear(4, 3)
        first = layer(x)
        second = layer(x[1:])
        return first, second
    """
    (error,) = check_text(tmp_path, source, {"x": "float32[n, 5]"}).errors
    assert "expected 4 features in the last axis, got 5" in error.message
