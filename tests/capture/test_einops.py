"""Patterns of einops in captured programs compute what einops does, at all sizes."""

from __future__ import annotations

from typing import Any

import einops
import numpy as np
import onnxruntime
import pytest
import torch
from einops.layers.torch import EinMix, Rearrange, Reduce

import hagane
from hagane.errors import CaptureError, KernelError
from hagane.graph import to_proto

SIZES = (
    {"b": 2, "h": 4, "w": 6, "n": 8},
    {"b": 1, "h": 2, "w": 2, "n": 2},
    {"b": 3, "h": 8, "w": 4, "n": 10},
)
X, Y = ("b", "h", "w", 3), ("b", "n")


def agree(
    function: Any, *shapes: tuple[Any, ...], kind: str = "torch", dtype: str = "float32"
) -> None:
    """Capture a function with open sizes, and compare it with itself at each."""
    named = [f"{dtype}[{', '.join(map(str, shape))}]" for shape in shapes]
    model = hagane.capture(function, *named)
    engines = [
        hagane.InferenceSession(model),
        onnxruntime.InferenceSession(to_proto(model).SerializeToString()),
    ]
    random = np.random.default_rng(0)
    for sizes in SIZES:
        arrays = [
            (random.normal(size=[sizes.get(n, n) for n in shape]) * 9).astype(dtype)
            for shape in shapes
        ]
        given = [torch.from_numpy(x) for x in arrays] if kind == "torch" else arrays
        expected = function(*given)
        wanted = expected if isinstance(expected, tuple | list) else [expected]
        for engine in engines:
            names = [value.name for value in engine.get_inputs()]
            found = engine.run(None, dict(zip(names, arrays, strict=True)))
            for ours, theirs in zip(found, wanted, strict=True):
                other = theirs.detach().numpy() if isinstance(theirs, torch.Tensor) else theirs
                assert ours.dtype == other.dtype
                np.testing.assert_allclose(ours, other, rtol=1e-5, atol=1e-5)


PATTERNS = [
    ("rearrange", X, "b h w c -> b c h w", {}),
    ("rearrange", X, "b h w c -> (b h) (w c)", {}),
    ("rearrange", X, "b ... -> (...) b", {}),
    ("rearrange", X, "... c -> c ...", {}),
    ("rearrange", X, "b (h p) (w q) c -> b (h w) (p q c)", {"p": 2, "q": 2}),
    ("rearrange", X, "b (p h) w c -> b 1 h () (p w c)", {"p": 2}),
    ("rearrange", Y, "b (k n) -> k b n", {"k": 2}),
    ("reduce", X, "b (h p) (w q) c -> b h w c", {"reduction": "max", "p": 2, "q": 2}),
    ("reduce", X, "b ... c -> b c", {"reduction": "mean"}),
    ("reduce", X, "b h w c -> c 1 b", {"reduction": "sum"}),
    ("reduce", X, "b h w 3 -> h b", {"reduction": "prod"}),
    ("reduce", X, "b h w c ->", {"reduction": "min"}),
    ("repeat", Y, "b n -> b k n", {"k": 5}),
    ("repeat", Y, "b n -> (r b) (n s) 2", {"r": 3, "s": 2}),
    ("repeat", X, "... c -> r ... c 1", {"r": 2}),
]


@pytest.mark.parametrize("kind", ["torch", "numpy"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("call", PATTERNS, ids=[f"{name} {text}" for name, _, text, _ in PATTERNS])
def test_patterns_compute_what_einops_does(call: Any, dtype: str, kind: str) -> None:
    name, shape, pattern, given = call
    if given.get("reduction") == "mean" and dtype == "int32":
        with pytest.raises(CaptureError, match="the mean takes floats"):
            hagane.capture(lambda x: einops.reduce(x, pattern, "mean"), "int32[b, h, w, 3]")
        return
    function = getattr(einops, name)
    agree(lambda x: function(x, pattern, **given), shape, kind=kind, dtype=dtype)


class Mixer(torch.nn.Module):
    """A mixer of patches whose axes are said by patterns."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches = torch.nn.Sequential(
            Rearrange("b (h p) (w q) c -> b h w (p q c)", p=2, q=2), torch.nn.Linear(12, 8)
        )
        self.mix = EinMix("b h w c -> b h w d", weight_shape="c d", bias_shape="d", c=8, d=4)
        self.pool = Reduce("b h w d -> b d", "mean")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(self.mix(self.patches(x)))


def test_layers_of_patterns_are_captured() -> None:
    model = Mixer().eval()
    with torch.no_grad():
        agree(model, X)
        compiled = hagane.compile(model, fullgraph=True, dynamic=True)
        for size in (6, 8, 10):
            x = torch.randn(3, size, 4, 3)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_tensors_are_packed_and_unpacked(kind: str) -> None:
    def function(x: Any, y: Any) -> Any:
        joined, shapes = einops.pack([x, y], "b *")
        first, second = einops.unpack(joined * 2, shapes, "b *")
        sizes = einops.parse_shape(x, "_ h ...")
        return joined, first + sizes["h"], second, einops.einsum(y, y, "batch i, batch j -> i j")

    agree(function, X, Y, kind=kind)


def test_lists_of_tensors_are_stacked_and_functions_reduce() -> None:
    def function(x: torch.Tensor) -> Any:
        parts = [x * k for k in range(3)]
        together = einops.rearrange(parts, "k b n -> b (k n)")
        spread = einops.reduce(parts, "k b n -> b n", lambda y, axes: y.amax(axes) - y.amin(axes))
        return together, spread

    agree(function, Y)


def test_a_size_that_a_pattern_does_not_divide_fails_in_the_run() -> None:
    model = hagane.capture(lambda x: einops.rearrange(x, "b (n k) -> b n k", k=4), "float32[b, n]")
    with pytest.raises(KernelError):
        hagane.InferenceSession(model).run(None, {"x": np.zeros((2, 6), np.float32)})


def test_numbers_are_no_axes_of_rearrange() -> None:
    with pytest.raises(CaptureError, match="takes no number but 1 as an axis, got 2"):
        hagane.capture(lambda x: einops.rearrange(x, "b 2 -> 2 b"), "float32[b, 2]")
