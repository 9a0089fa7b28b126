"""A compiled function or model returns what the original returns, and notices what changed."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hagane
from hagane.capturing.sessions import Sessions
from hagane.errors import CaptureError, KernelError

pytestmark = pytest.mark.filterwarnings("ignore::hagane.CompileNotice")


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@dataclass
class Found:
    logits: Any
    parts: Any
    extra: Any = None


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 4)
        self.drop = nn.Dropout(0.5)
        self.scale = 2.0
        self.sizes = [1, 2]

    def forward(self, x: Any, mask: Any = None, *, k: int = 1) -> Any:
        y = self.drop(torch.relu(self.inner(x))) * self.scale + k
        if mask is not None:
            y = y * mask
        return {"y": y, "sums": (y.sum(1), [y.mean()]), "count": len(self.sizes), "none": None}


def same(ours: Any, theirs: Any) -> None:
    """Check that two results have the same structure, types and values."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, torch.Tensor):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(
            ours.detach().float(), theirs.detach().float(), rtol=1e-4, atol=1e-5
        )
    elif isinstance(theirs, dict):
        assert [*ours] == [*theirs]
        for key in theirs:
            same(ours[key], theirs[key])
    elif isinstance(theirs, list | tuple):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif isinstance(theirs, Found):
        same(vars(ours), vars(theirs))
    else:
        assert ours == theirs


def agree(compiled: Any, original: Any, *args: Any, **kwargs: Any) -> None:
    with torch.no_grad():
        same(compiled(*args, **kwargs), original(*args, **kwargs))


def quiet() -> Any:
    return pytest.warns(hagane.CompileNotice)


def test_sizes_are_left_open_from_the_second_one_on() -> None:
    net = Net().eval()
    compiled = hagane.compile(net, fullgraph=True)
    for rows in (5, 5, 7, 9, 2):
        agree(compiled, net, torch.randn(rows, 3))
    assert len(compiled.captures) == 2
    assert compiled.captures[1].startswith("Net(x[size0, 3])")
    agree(compiled, net, torch.randn(1, 3))
    agree(compiled, net, torch.randn(0, 3))
    assert len(compiled.captures) == 4  # 1 and 0 are graphs of their own


def test_dynamic_names_sizes_or_keeps_all_fixed() -> None:
    net = Net().eval()
    for dynamic in ({"x": {0: "batch"}}, True):
        compiled = hagane.compile(net, dynamic=dynamic)
        for rows in (5, 7):
            agree(compiled, net, torch.randn(rows, 3))
        assert len(compiled.captures) == 1
    compiled = hagane.compile(net, dynamic=False)
    with quiet():
        for rows in (5, 7, 5):
            agree(compiled, net, torch.randn(rows, 3))
    assert len(compiled.captures) == 2


def test_sizes_that_were_equal_and_no_longer_are_make_a_new_graph() -> None:
    def stacked(x: Any, y: Any) -> Any:
        return torch.cat([x, y]).sum(0) + (x.shape[0] == y.shape[0])

    compiled = hagane.compile(stacked, fullgraph=True, dynamic=True)
    agree(compiled, stacked, torch.randn(3, 2), torch.randn(3, 2))
    with pytest.warns(hagane.CompileNotice, match="no longer has the size of another one"):
        agree(compiled, stacked, torch.randn(4, 2), torch.randn(3, 2))


def test_arguments_by_keyword_and_of_other_values_are_seen() -> None:
    net = Net().eval()
    compiled = hagane.compile(net, fullgraph=True)
    x = torch.randn(4, 3)
    agree(compiled, net, x)
    agree(compiled, net, x=x, k=2)
    with pytest.warns(hagane.CompileNotice, match="captured anew: 'k' was 2 and is 3"):
        agree(compiled, net, x, k=3)
    agree(compiled, net, x, k=17)
    assert len(compiled.captures) == 3
    agree(compiled, net, x, torch.rand(4, 4) > 0.5)
    agree(compiled, net, x, torch.rand(4, 4).double())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda net: setattr(net, "scale", 3.0), r"'Net.scale' was 2.0 and is 3.0"),
        (lambda net: net.sizes.append(3), r"content of a list that is read changed"),
        (lambda net: net.train(), r"'Dropout.training' was False and is True"),
        (lambda net: setattr(net, "inner", nn.Linear(3, 4)), r"'Net.inner' was .* another one"),
        (lambda net: setattr(net.inner, "bias", None), r"'Linear.bias' was .* and is None"),
    ],
)
def test_what_changes_in_a_model_is_noticed(change: Any, reason: str) -> None:
    net = Net().eval()
    compiled = hagane.compile(net)
    compiled.drop.p = 0.0  # through to the model: nothing is random in training either
    agree(compiled, net, torch.randn(4, 3))
    change(net)
    with pytest.warns(hagane.CompileNotice, match=reason):
        agree(compiled, net, torch.randn(4, 3))


def test_weights_that_are_updated_in_place_are_seen_without_another_capture() -> None:
    net = Net().eval()
    compiled = hagane.compile(net, fullgraph=True)
    x = torch.randn(4, 3)
    agree(compiled, net, x)
    with torch.no_grad():
        net.inner.weight.mul_(2)
        agree(compiled, net, x)
        net.inner.bias.data = torch.randn(4)
    agree(compiled, net, x)
    net.load_state_dict(Net().state_dict())
    agree(compiled, net, x)
    assert len(compiled.captures) == 1
    agree(compiled, net.double(), x.double())


def test_a_hook_runs_and_a_removed_one_no_longer_hinders() -> None:
    net = Net().eval()
    compiled = hagane.compile(net)
    x, calls = torch.randn(4, 3), []
    agree(compiled, net, x)
    handle = net.inner.register_forward_hook(lambda *_: calls.append(1))
    with pytest.warns(hagane.CompileNotice, match="the forward hooks of a Linear are others"):
        agree(compiled, net, x)
    assert len(calls) == 2
    handle.remove()
    agree(compiled, net, x)
    assert len(calls) == 2
    assert len(compiled.captures) == 1


SCALE = np.ones(3, np.float32)
FACTOR = 2


def scaled(x: Any) -> Any:
    return x * FACTOR


def test_globals_and_cells_are_guarded() -> None:
    global FACTOR
    compiled = hagane.compile(scaled, fullgraph=True)
    agree(compiled, scaled, torch.ones(3))
    FACTOR = 5
    with pytest.warns(hagane.CompileNotice, match="FACTOR' was 2 and is 5"):
        agree(compiled, scaled, torch.ones(3))
    FACTOR = 2
    shift = 1.0

    def moved(x: Any) -> Any:
        return x + shift

    compiled = hagane.compile(moved, fullgraph=True)
    agree(compiled, moved, torch.ones(3))
    shift = 2.0
    with quiet():
        agree(compiled, moved, torch.ones(3))


def test_gradients_come_from_the_original() -> None:
    net = Net().eval()
    compiled = hagane.compile(net, fullgraph=True)
    x = torch.randn(4, 3, requires_grad=True)
    for function in (net, compiled):
        found = function(x)
        (found["y"].square().sum() + found["sums"][1][0]).backward()
    for tensor in (x, net.inner.weight, net.inner.bias):
        assert tensor.grad is not None
    both = [x.grad.clone(), net.inner.weight.grad.clone()]
    x.grad = None
    net.zero_grad()
    net(x)["y"].square().sum().add(net(x)["sums"][1][0]).backward()
    for ours, theirs in zip(both, [x.grad, net.inner.weight.grad], strict=True):
        torch.testing.assert_close(ours, 2 * theirs)


def test_a_weight_that_changes_before_backward_is_an_error() -> None:
    net = Net().eval()
    out = hagane.compile(net)(torch.randn(4, 3))["y"]
    with torch.no_grad():
        net.inner.weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_a_model_in_training_runs_in_python_with_one_notice() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh()).train()
    compiled = hagane.compile(net)
    x = torch.randn(4, 3)
    with pytest.warns(hagane.CompileNotice, match=r"in training.*call eval\(\)"):
        compiled(x).sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(x).sum().backward()
    assert net[0].weight.grad is not None


def unread(x: Any, odd: Any = None) -> Any:
    y = x.cumprod(0)
    return torch.special.zeta(y, y)


def test_what_cannot_be_captured_runs_in_python_and_names_its_line() -> None:
    compiled = hagane.compile(unread)
    line = unread.__code__.co_firstlineno + 2
    x = torch.rand(3) + 2
    with pytest.warns(hagane.CompileNotice) as caught:
        agree(compiled, unread, x)
    assert len(caught) == 1
    assert f"{__file__}:{line}: 'torch.special.zeta'" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agree(compiled, unread, x)
    with pytest.raises(CaptureError, match="zeta") as error:
        hagane.compile(unread, fullgraph=True)(x)
    assert f"{__file__}:{line}" in error.value.problems[0]


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (
            SimpleQueue(),
            r"'odd' is a SimpleQueue, whose content no graph sees; arguments may be",
        ),
        (
            torch.ones(2, dtype=torch.complex64, requires_grad=True),
            r"'odd' is of torch.complex64 and requires gradients",
        ),
        (torch.ones(2).to_sparse(), r"'odd' lies on cpu \(torch.sparse_coo\)"),
        (np.array(["a"]), r"'odd' is an array of <U1"),
    ],
)
def test_arguments_that_no_graph_takes_are_named(argument: Any, text: str) -> None:
    def first(x: Any, odd: Any) -> Any:
        return x + 1

    compiled = hagane.compile(first)
    with pytest.warns(hagane.CompileNotice, match=text):
        agree(compiled, first, torch.ones(3), argument)
    with pytest.raises(CaptureError, match=text):
        hagane.compile(first, fullgraph=True)(torch.ones(3), argument)


def test_structures_and_numbers_come_back_as_they_are() -> None:
    @hagane.compile(fullgraph=True)
    def several(x: Any, pair: Any, table: Any) -> Any:
        y = x + pair[0] * table["w"]
        return Found(y, [pair[1], (y.sum().item(), int(y.shape[0]))]), "text", y.max(1)

    x = torch.randn(2, 3)
    with torch.no_grad():
        found = several(x, (torch.ones(3), torch.zeros(2).bool()), {"w": torch.ones(1)})
    y = x + 1
    same(found[:2], (Found(y, [torch.zeros(2).bool(), (found[0].parts[1][0], 2)]), "text"))
    assert found[0].parts[1][0] == pytest.approx(float(y.sum()), rel=1e-5)
    same(found[2].values, y.max(1).values)
    same(found[2].indices, y.max(1).indices)


def test_tensors_share_their_memory_with_the_engine() -> None:
    def twice(x: Any) -> Any:
        return x + x

    compiled = hagane.compile(twice, fullgraph=True)
    x = torch.arange(6.0).reshape(2, 3).t()  # strides are kept
    agree(compiled, twice, x)
    agree(compiled, twice, torch.ones(3, 2).bfloat16())
    out = compiled(x)
    out += 1  # is the caller's alone
    agree(compiled, twice, x)


def test_methods_are_compiled_for_each_object() -> None:
    class Scaled:
        def __init__(self, factor: float):
            self.factor = factor

        @hagane.compile(fullgraph=True)
        def of(self, x: Any) -> Any:
            return x * self.factor

    one, two = Scaled(2.0), Scaled(3.0)
    assert float(one.of(torch.ones(()))) == 2
    assert float(two.of(torch.ones(()))) == 3


def test_explain_prints_graphs_and_guards(capsys: Any) -> None:
    net = Net().eval()
    compiled = hagane.compile(net, explain=True)
    agree(compiled, net, torch.randn(4, 3))
    net.scale = 7.0
    with quiet():
        agree(compiled, net, torch.randn(4, 3))
    printed = capsys.readouterr().out
    assert "captured Net(x[4, 3]): " in printed
    assert "  Net.scale is 2.0\n" in printed
    assert "captured anew: 'Net.scale' was 2.0 and is 7.0" in printed


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(hagane.errors.InvalidArgument, match="expected a function or a module"):
        hagane.compile(3)


def test_autocast_runs_in_python() -> None:
    net = Net().eval()
    compiled = hagane.compile(net)
    with quiet(), torch.autocast("cpu", torch.bfloat16):
        agree(compiled, net, torch.randn(4, 3))


def test_errors_are_those_of_the_original() -> None:
    def picked(x: Any, i: Any) -> Any:
        return x[i]

    compiled = hagane.compile(picked, fullgraph=True)
    agree(compiled, picked, torch.ones(3), torch.tensor([0, 2]))
    with pytest.raises(IndexError):
        compiled(torch.ones(3), torch.tensor([0, 5]))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        compiled(torch.ones(3))


class Counter:
    def __init__(self) -> None:
        self.count = np.zeros((), np.int64)

    def __call__(self, x: Any) -> Any:
        self.count = self.count + 1
        return x * self.count


def failed(*_: Any) -> Any:
    raise KernelError("Mul 'm' failed")


def test_a_graph_that_fails_by_itself_is_told_once_and_changes_nothing(monkeypatch: Any) -> None:
    counter = Counter()
    compiled = hagane.compile(counter)
    x = np.ones(2, np.float32)
    compiled(x)
    monkeypatch.setattr(Sessions, "run", failed)
    with pytest.warns(hagane.CompileNotice, match="Counter ran in Python: the graph failed, Mul"):
        np.testing.assert_array_equal(compiled(x), [2, 2])
    assert counter.count == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(compiled(x), [3, 3])
    strict = hagane.compile(Counter(), fullgraph=True)
    with pytest.raises(KernelError, match="Mul 'm' failed"):
        strict(x)


def test_other_errors_of_the_engine_are_not_hidden(monkeypatch: Any) -> None:
    def broken(*_: Any) -> Any:
        raise hagane.errors.InvalidFeed("x does not fit")

    compiled = hagane.compile(scaled)
    compiled(np.ones(2, np.float32))
    monkeypatch.setattr(Sessions, "run", broken)
    with pytest.raises(hagane.errors.InvalidFeed, match="x does not fit"):
        compiled(np.ones(2, np.float32))


def test_weights_that_keep_changing_are_given_to_one_session(monkeypatch: Any) -> None:
    from hagane.capturing import sessions

    made: list[Any] = []
    own = sessions.InferenceSession
    monkeypatch.setattr(sessions, "InferenceSession", lambda m: made.append(m) or own(m))
    monkeypatch.setattr(sessions, "_AT_REST", 3)
    net = nn.Linear(3, 2).eval()
    net.bias.data.zero_()
    compiled = hagane.compile(net, fullgraph=True)
    x = torch.randn(4, 3)
    counts = []
    for change in (0, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1):
        if change:
            with torch.no_grad():
                net.weight.mul_(2)
                net.bias.add_(1)
        agree(compiled, net, x)
        counts.append(len(made))
    # A first change makes a session anew; later ones share one, until the weights rest.
    assert counts == [1, 2, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4]


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.inner(x)) + 1


@pytest.mark.parametrize("part", ["", "inner", "act"])
def test_a_forward_that_an_object_has_of_its_own_is_followed(part: str) -> None:
    net = Shifted().eval()
    compiled = hagane.compile(net, fullgraph=True)
    x = torch.randn(4, 3)
    agree(compiled, net, x)
    net.get_submodule(part).forward = lambda x: x * 2
    with pytest.warns(hagane.CompileNotice, match=r"forward' was not there and is of type"):
        agree(compiled, net, x)
    agree(hagane.compile(net, fullgraph=True), net, x)


def test_another_class_of_an_object_is_noticed() -> None:
    class Doubled(Shifted):
        def forward(self, x: Any) -> Any:
            return super().forward(x) * 2

    net = Shifted().eval()
    compiled = hagane.compile(net)
    agree(compiled, net, torch.randn(4, 3))
    net.__class__ = Doubled
    with pytest.warns(hagane.CompileNotice, match="an object is a Doubled, and was a Shifted"):
        agree(compiled, net, torch.randn(4, 3))


def test_hooks_of_all_modules_run() -> None:
    net = Shifted().eval()
    compiled = hagane.compile(net)
    agree(compiled, net, torch.randn(4, 3))
    handle = nn.modules.module.register_module_forward_hook(lambda m, i, o: o * 2)
    with pytest.warns(hagane.CompileNotice, match="forward hooks for all modules"):
        agree(compiled, net, torch.randn(4, 3))
    with pytest.raises(CaptureError, match="forward hooks for all modules"):
        hagane.capture(net, torch.randn(4, 3))
    handle.remove()
    agree(compiled, net, torch.randn(4, 3))


def test_a_list_of_the_caller_is_read_in_any_order() -> None:
    def cut(items: Any) -> Any:
        return sum([*items[1:], items[0] * 2])

    y = np.ones(2, np.float32)
    np.testing.assert_array_equal(hagane.compile(cut, fullgraph=True)([y, y]), [3, 3])


def test_an_ordered_dict_comes_back_as_one() -> None:
    from collections import OrderedDict

    def ordered(x: Any) -> Any:
        return OrderedDict(b=x, a=OrderedDict([("c", x + 1)]))

    found = hagane.compile(ordered, fullgraph=True)(torch.ones(2))
    same(found, ordered(torch.ones(2)))


def test_texts_among_the_arguments_are_texts_and_guarded() -> None:
    def chosen(x: Any, mode: str = "a", *, unit: str = "") -> Any:
        y = x if mode == "a" else -x
        return y * 2 if unit == "float32[3]" else y

    compiled = hagane.compile(chosen, fullgraph=True)
    for mode in ("a", "b", "float32[n]", "c"):
        agree(compiled, chosen, torch.ones(3), mode)
        agree(compiled, chosen, torch.ones(3), mode=mode, unit="float32[3]")


def test_whole_numbers_beyond_64_bits_stay_right() -> None:
    def counted(x: Any, n: int) -> Any:
        return x * (n // 3) + n % 3

    compiled = hagane.compile(counted)
    with quiet():
        for n in (4, 5, -7, 2**63, 2**62, 8):
            agree(compiled, counted, torch.ones(3), n)


def test_a_call_like_the_last_one_takes_the_short_way_while_nothing_changes() -> None:
    scale = np.full((2, 3), 2, np.float32)

    def function(x: Any) -> Any:
        return x * scale + len(x), x.sum()

    compiled = hagane.compile(function)
    x = np.ones((2, 3), np.float32)
    compiled(x)
    assert compiled._short is not None
    np.testing.assert_array_equal(compiled(x)[0], x * 4)
    scale[:] = 5  # seen though the array is the same
    np.testing.assert_array_equal(compiled(x + 1)[0], x * 12)
    np.testing.assert_array_equal(compiled(x=x)[0], x * 7)
    np.testing.assert_array_equal(compiled(x.astype(np.float64))[0], x * 7)
    longer = np.ones((2, 3), np.float32)
    assert compiled(longer)[1] == 6


def test_the_short_way_sees_gradients_modes_and_default_types() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.9)).eval()
    compiled = hagane.compile(module)
    x = torch.ones(1, 2)
    with torch.no_grad():
        compiled(x)
        assert not compiled(x).requires_grad
        module[0].weight.zero_()
        torch.testing.assert_close(compiled(x), module[0].bias.detach()[None])
    assert compiled(x).requires_grad
    hook = module[0].register_forward_hook(lambda *_: torch.zeros(1, 2))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not compiled(x).any()
    hook.remove()


class Base:
    rate = 0.5


class Settings(Base):
    names = ("a", "b")

    @property
    def twice(self) -> float:
        return self.rate * 2


def test_attributes_of_classes_are_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings()

    def read(x: Any) -> Any:
        return x * settings.twice + len(settings.names) + getattr(settings, "more", 0)

    compiled = hagane.compile(read, fullgraph=True)
    agree(compiled, read, torch.ones(3))
    for cls, name, value in (
        (Base, "rate", 4.0),
        (Settings, "rate", 3.0),  # comes before the one of the base
        (Settings, "names", ["a"]),
        (Settings, "twice", property(lambda self: 7.0)),
        (Base, "more", 5),  # there was none
    ):
        monkeypatch.setattr(cls, name, value, raising=False)
        agree(compiled, read, torch.ones(3))


def test_objects_without_source_are_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    options = SimpleNamespace(rate=2.0)
    recent = deque([1.0, 2.0])

    def read(x: Any) -> Any:
        return x * options.rate + recent[0] + len(recent) + sum(recent)

    read.shift = 1.0  # type: ignore[attr-defined]

    def shifted(x: Any) -> Any:
        return x + read.shift  # type: ignore[attr-defined]

    for function in (read, shifted):
        compiled = hagane.compile(function, fullgraph=True)
        for change in (
            lambda: None,
            lambda: setattr(options, "rate", 3.0),
            lambda: recent.append(4.0),
            lambda: recent.appendleft(7.0),
            lambda: setattr(read, "shift", 5.0),
        ):
            change()
            agree(compiled, function, torch.ones(3))


def test_a_global_that_hides_a_built_in_function_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = hagane.compile(counted, fullgraph=True)
    agree(compiled, counted, torch.ones(3))
    monkeypatch.setitem(globals(), "len", lambda items: 7)
    agree(compiled, counted, torch.ones(3))


def counted(x: Any) -> Any:
    return x + len([1, 2])


def test_changes_through_data_are_seen() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.large, self.small = nn.Linear(64, 64), nn.Linear(64, 2)
            self.kinds = torch.tensor([1, 2])

        def forward(self, x: Any) -> Any:
            return self.small(self.large(x)) * int(self.kinds[0])

    net = Wide().eval()
    compiled = hagane.compile(net, fullgraph=True)
    x = torch.randn(4, 64)
    for change in (
        lambda: None,
        lambda: net.large.weight.data.mul_(2),
        lambda: net.small.weight.data[1].fill_(3),
        lambda: net.small.bias.data.zero_(),
        lambda: net.kinds.data.add_(1),
        lambda: net.large.weight.data.t_(),
        lambda: net.large.weight.data.neg_(),
    ):
        change()
        agree(compiled, net, x)


def test_sizes_and_types_of_tensors_are_guarded_where_nothing_else_of_them_is_read() -> None:
    other = torch.ones(2)

    def read(x: Any) -> Any:
        return (x * other.shape[0]).to(other.dtype)

    compiled = hagane.compile(read, fullgraph=True)
    agree(compiled, read, torch.ones(3))
    other.data = torch.ones(5)
    agree(compiled, read, torch.ones(3))
    other.data = torch.ones(5, dtype=torch.float64)
    agree(compiled, read, torch.ones(3))


def test_a_question_about_memory_is_answered_for_contiguous_tensors_alone() -> None:
    def turned(x: Any) -> Any:
        return x.flip(0) if x.is_contiguous() else x

    compiled = hagane.compile(turned)
    for x in (torch.randn(3, 3), torch.randn(3, 3).t(), torch.randn(3, 3), torch.randn(6, 3)[::2]):
        agree(compiled, turned, x)
    assert len(compiled.captures) == 1


def test_another_default_type_than_float32_runs_in_python() -> None:
    def function(x: Any) -> Any:
        return x + torch.ones(3)

    compiled = hagane.compile(function)
    agree(compiled, function, torch.ones(3))
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.warns(hagane.CompileNotice, match="expected torch.float32 as PyTorch's def"):
            agree(compiled, function, torch.ones(3, dtype=torch.float32))
    finally:
        torch.set_default_dtype(torch.float32)
    agree(compiled, function, torch.ones(3))
    assert len(compiled.captures) == 1


def test_not_a_number_and_the_sign_of_zero_are_compared() -> None:
    net = Net().eval()
    compiled = hagane.compile(net, fullgraph=True)
    x = torch.randn(4, 3)
    for scale in (float("nan"), 0.0, float("nan"), 2.0):
        net.scale = scale
        with torch.no_grad():
            torch.testing.assert_close(compiled(x)["y"], net(x)["y"], equal_nan=True)

    def signed(x: Any) -> Any:
        return torch.copysign(x, torch.full((3,), net.scale))

    compiled = hagane.compile(signed, fullgraph=True)
    for scale in (0.0, -0.0, 0.0):
        net.scale = scale
        agree(compiled, signed, torch.ones(3))


def test_batch_norm_goes_by_its_buffers_outside_of_training() -> None:
    norm = nn.BatchNorm1d(3).eval()
    norm.running_mean.add_(1)
    compiled = hagane.compile(norm, fullgraph=True)
    x = torch.randn(4, 3)
    agree(compiled, norm, x)
    norm.track_running_stats = False
    agree(compiled, norm, x)
    norm.running_mean = norm.running_var = None
    agree(compiled, norm, x)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count: Any = 0
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("seen", torch.tensor(0))
        self.total = torch.zeros(2)

    def forward(self, x: Any) -> Any:
        self.count += 1
        self.seen += 1
        self.mean.mul_(0.5).add_(x)
        self.total = self.total + x
        return x + self.mean + self.total + self.count * self.seen


def test_tensors_that_a_call_writes_stay_the_tensors_that_they_are() -> None:
    ours, theirs = Counting().eval(), Counting().eval()
    compiled = hagane.compile(ours, fullgraph=True)
    held = [(net.mean, net.seen, net.total) for net in (ours, theirs)]
    for _ in range(3):
        x = torch.randn(2)
        with torch.no_grad():
            same(compiled(x), theirs(x))
    assert len(compiled.captures) == 1
    for before, net in zip(held, (ours, theirs), strict=True):
        assert before[0] is net.mean
        assert before[1] is net.seen
        assert before[2] is not net.total
    same(held[0], held[1])


def test_an_attribute_that_becomes_a_tensor_stays_one() -> None:
    ours, theirs = Counting().eval(), Counting().eval()
    compiled = hagane.compile(ours)
    for count in (0, torch.tensor(2), 5, 0.5):
        ours.count, theirs.count = [c.clone() if isinstance(c, torch.Tensor) else c
                                    for c in (count, count)]  # fmt: skip
        for _ in range(2):
            x = torch.randn(2)
            with torch.no_grad():
                same(compiled(x), theirs(x))
            same(ours.count, theirs.count)


def test_other_code_of_a_function_is_seen() -> None:
    def doubled(x: Any) -> Any:
        return x * 2

    def halved(x: Any) -> Any:
        return x / 2

    def function(x: Any) -> Any:
        return doubled(x)

    compiled = hagane.compile(function, fullgraph=True)
    agree(compiled, function, torch.ones(2))
    doubled.__code__ = halved.__code__
    agree(compiled, function, torch.ones(2))


def test_a_program_that_asks_for_deterministic_algorithms_is_captured_for_each_answer() -> None:
    def doubled(x: Any) -> Any:
        return x * 2 if torch.are_deterministic_algorithms_enabled() else x * 3

    compiled = hagane.compile(doubled, fullgraph=True)
    x = torch.ones(2)
    before = torch.are_deterministic_algorithms_enabled()
    try:
        for mode in (False, True, False):
            torch.use_deterministic_algorithms(mode)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", hagane.CompileNotice)
                assert torch.equal(compiled(x), doubled(x))
    finally:
        torch.use_deterministic_algorithms(before)
    assert len(compiled.captures) == 2


def test_the_mode_of_gradients_is_that_of_the_call_and_of_contexts_in_it() -> None:
    def modes(x: Any) -> Any:
        with torch.enable_grad():
            y = x * 2 if torch.is_grad_enabled() else x
        with torch.no_grad():
            z = y + 1 if torch.is_grad_enabled() else y - 1
        return z * 3 if torch.is_grad_enabled() else z

    compiled = hagane.compile(modes, fullgraph=True)
    x = torch.ones(2)
    for mode in (False, True, False):
        with torch.set_grad_enabled(mode), warnings.catch_warnings():
            warnings.simplefilter("ignore", hagane.CompileNotice)
            assert torch.equal(compiled(x), modes(x))
