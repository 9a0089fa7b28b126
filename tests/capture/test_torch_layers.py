"""Layers of PyTorch as graphs: what their own lists of calls leave open."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import hagane
from hagane.errors import CaptureError
from hagane.graph import to_proto

from .meanings import flat


class Wrapped(nn.Module):
    """One layer in a module with a source of its own."""

    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x)


class Positions(nn.Module):
    """Buffers without a registration, of which a longer input makes a new one."""

    def __init__(self, count: int):
        super().__init__()
        self.scale = nn.Buffer(torch.full((3,), 2.0))
        self.make(count)

    def make(self, count: int) -> None:
        places = torch.arange(count * 3, dtype=torch.float32).view(count, 3)
        self.places = nn.Buffer(places, persistent=False)

    def forward(self, x: Any) -> Any:
        if x.shape[0] > self.places.shape[0]:
            self.make(x.shape[0])
        return x * self.scale + self.places[: x.shape[0]]


@pytest.mark.parametrize("rows", [2, 6])
def test_a_buffer_made_by_its_class_is_a_tensor_that_is_not_trained(rows: int) -> None:
    module = Positions(4)
    report = hagane.check(module, f"float32[{rows}, 3]")
    assert not report.errors
    assert not report.unknown
    model = hagane.capture(module, f"float32[{rows}, 3]")
    x = torch.randn(rows, 3)
    own = {"x": x.numpy(), "places": module.places.numpy()}
    session = hagane.InferenceSession(model)
    feed = {value.name: own[value.name] for value in session.get_inputs()}
    np.testing.assert_allclose(session.run(None, feed)[0], module(x), rtol=1e-6)


class Masked(Wrapped):
    def forward(self, x: Any, mask: Any, padding: Any) -> Any:
        return self.inner(x, mask, padding)


def agree(function: Any, types: dict[str, str], *inputs: torch.Tensor) -> None:
    """Check the graph of a function against the function."""
    model = to_proto(hagane.capture(function, **types)).SerializeToString()
    with torch.no_grad():
        expected = function(*inputs).numpy()
    session = onnxruntime.InferenceSession(model)
    feed = {v.name: x.numpy() for v, x in zip(session.get_inputs(), inputs, strict=True)}
    for engine in (session, hagane.InferenceSession(model)):
        found = engine.run(None, feed)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(
    "settings",
    [{}, {"norm_first": True, "activation": "gelu"}, {"batch_first": True, "bias": False}],
    ids=str,
)
def test_encoder_layer_out_of_training_is_captured(settings: dict[str, Any], batch: int) -> None:
    layer = nn.TransformerEncoderLayer(16, 2, 32, **settings)
    agree(Wrapped(layer).eval(), {"x": "float32[n,m,16]"}, torch.randn(batch, 5, 16))


@pytest.mark.filterwarnings("ignore:Support for mismatched")
def test_masks_of_an_encoder_layer_are_added_to_each_other() -> None:
    layer = Masked(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)).eval()
    types = {"x": "float32[n,m,16]", "mask": "float32[m,m]", "padding": "bool[n,m]"}
    padding = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]).bool()
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # it gives NaN for these masks
    try:
        agree(layer, types, torch.randn(2, 5, 16), torch.randn(5, 5), padding)
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def test_batch_norm_out_of_training_uses_what_it_has_tracked() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.3))
    net(torch.randn(4, 3, 9, 9))
    agree(Wrapped(net).eval(), {"x": "float32[n,3,h,w]"}, torch.randn(2, 3, 8, 7))


@pytest.mark.parametrize(
    ("wanted", "type_"),
    [
        (1, "float32[n,3,h,w]"),
        ((1, None), "float32[n,3,h,w]"),
        ((3, 7), "float32[n,3,8,7]"),
        ((5, 4), "float32[n,3,8,7]"),
        ((11, 2), "float32[n,3,8,7]"),
    ],
)
def test_means_share_out_the_axes_as_pytorch_does(wanted: Any, type_: str) -> None:
    agree(Wrapped(nn.AdaptiveAvgPool2d(wanted)), {"x": type_}, torch.randn(2, 3, 8, 7))


@pytest.mark.parametrize("layer", [nn.AdaptiveAvgPool2d((3, 2)), nn.AdaptiveMaxPool2d((2, 5))])
def test_windows_share_out_axes_of_unknown_size(layer: Any) -> None:
    for height, width in ((8, 7), (3, 5), (2, 2)):
        x = torch.randn(2, 3, height, width)
        agree(Wrapped(layer), {"x": "float32[n,3,h,w]"}, x)


def test_many_windows_of_axes_of_unknown_size_are_refused() -> None:
    with pytest.raises(hagane.errors.CaptureError, match="only the type of its result is known"):
        hagane.capture(Wrapped(nn.AdaptiveAvgPool2d((65, 2))), x="float32[n,3,h,w]")


def nan_sum(x: Any) -> Any:
    return x.nansum(1)


def nan_mean(x: Any) -> Any:
    return torch.nanmean(x, dim=1, keepdim=True)


def spread(x: Any) -> Any:
    return x.std(1) + x.var((0, 1), unbiased=False) + torch.var(x, dim=1, correction=2)


def scaled_sum(x: Any) -> Any:
    return torch.add(x, x * x, alpha=3) - torch.sub(x, x.log_softmax(-1), alpha=0.5)


@pytest.mark.parametrize("function", [nan_sum, nan_mean, spread, scaled_sum])
def test_reductions_compute_what_pytorch_computes(function: Any) -> None:
    x = torch.randn(3, 4)
    if "nan" in function.__name__:
        x[1, 2] = float("nan")
    agree(function, {"x": "float32[n,m]"}, x)


def test_dropout_in_training_is_refused() -> None:
    with pytest.raises(hagane.errors.CaptureError, match="only the type of its result is known"):
        hagane.capture(Wrapped(nn.Dropout(0.5)), x="float32[n]")


# Layers and functions of PyTorch as what is captured.

ALONE = [
    (nn.Linear(3, 4), ["float32[n,3]"], [(5, 3)]),
    (nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten()), ["float32[n,3,8,8]"],
     [(2, 3, 8, 8)]),
    (nn.LSTM(3, 4, 2), ["float32[t,n,3]"], [(5, 2, 3)]),
    (nn.GRU(3, 4, batch_first=True), ["float32[n,t,3]"], [(2, 5, 3)]),
    (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
     ["float32[n,t,8]"], [(2, 5, 8)]),
    (nn.Transformer(8, 2, 1, 1, 16, batch_first=True), ["float32[n,t,8]", "float32[n,s,8]"],
     [(2, 5, 8), (2, 3, 8)]),
    (torch.relu, ["float32[n]"], [(4,)]),
    (torch.add, ["float32[n]", "float32[n]"], [(4,), (4,)]),
]  # fmt: skip


@pytest.mark.parametrize(("found", "types", "shapes"), ALONE, ids=lambda v: type(v).__name__)
@pytest.mark.filterwarnings("ignore")
def test_layers_and_functions_of_pytorch_are_captured_alone(
    found: Any, types: Any, shapes: Any
) -> None:
    found = found.eval() if isinstance(found, nn.Module) else found
    model = to_proto(hagane.capture(found, *types)).SerializeToString()
    inputs = [torch.randn(shape) for shape in shapes]
    with torch.no_grad():
        expected = list(flat(found(*inputs)))
    session = onnxruntime.InferenceSession(model)
    feed = {v.name: x.numpy() for v, x in zip(session.get_inputs(), inputs, strict=True)}
    for engine in (session, hagane.InferenceSession(model)):
        for ours, theirs in zip(engine.run(None, feed), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_layer_alone_keeps_the_names_of_its_arguments_outputs_and_weights() -> None:
    model = hagane.capture(
        nn.LSTM(3, 4), "float32[t,n,3]", hx="tuple[float32[1,n,4], float32[1,n,4]]"
    )
    assert [v.name for v in model.graph.inputs] == ["input", "hx.0", "hx.1"]
    assert [v.name for v in model.graph.outputs] == ["0", "1.0", "1.1"]
    linear = hagane.capture(nn.Linear(3, 4), "float32[n,3]")
    assert {*linear.graph.initializers} == {"weight", "bias"}


@pytest.mark.parametrize(
    ("found", "types", "named", "text"),
    [
        (nn.Linear(3, 4), ["float32[3]"] * 2, {}, r"'torch.nn.Linear' takes .*\(input\), got 2"),
        (nn.Linear(3, 4), [], {"x": "float32[3]"}, r"no argument 'x'; it has: input"),
        (nn.Linear(3, 4), [], {}, r"type of the argument 'input' of 'torch.nn.Linear' is not kno"),
        (nn.Linear(3, 4), ["float32[n, 5]"], {}, r"<torch.nn.Linear>:1: .*expected .*3"),
        (nn.ModuleList(), ["float32[3]"], {}, "ModuleList has no forward, which a call of it runs"),
        (len, ["float32[3]"], {}, r"<built-in function len> has no Python source"),
    ],
    ids=str,
)
def test_calls_that_a_layer_alone_does_not_take_are_refused(
    found: Any, types: Any, named: Any, text: str
) -> None:
    with pytest.raises(hagane.errors.CaptureError, match=text):
        hagane.capture(found, *types, **named)


def blurred(x: Any, kernel: Any) -> Any:
    return nn.functional.conv2d(x, kernel, padding=(kernel.shape[2] // 2, kernel.shape[3] // 2))


def as_long(x: Any, kernel: Any) -> Any:
    return nn.functional.conv2d(x, kernel, padding="same", dilation=2)


@pytest.mark.parametrize("function", [blurred, as_long])
def test_a_kernel_of_open_size_pads_by_its_own(function: Any) -> None:
    model = hagane.capture(function, "float32[b, 1, h, w]", "float32[1, 1, k, l]")
    session = hagane.InferenceSession(model)
    for image, kernel in (((2, 1, 9, 8), (1, 1, 3, 2)), ((1, 1, 7, 12), (1, 1, 4, 5))):
        x, w = torch.randn(image), torch.randn(kernel)
        (found,) = session.run(None, {"x": x.numpy(), "kernel": w.numpy()})
        np.testing.assert_allclose(found, function(x, w), rtol=1e-4, atol=1e-5)


def test_padding_by_a_wrong_count_of_formulas_is_named() -> None:
    def call(x: Any, kernel: Any) -> Any:
        size = kernel.shape[2] // 2
        return nn.functional.conv2d(x, kernel, padding=(size, size, size))

    with pytest.raises(CaptureError, match="padding of one or 2 numbers, got 3"):
        hagane.capture(call, "float32[b, 1, h, w]", "float32[1, 1, k, k]")
