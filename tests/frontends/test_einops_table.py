"""Patterns of einops give the shapes of the same steps written in PyTorch."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from .calls import Call, agrees, inferred, real, sections

# A call of einops, and what it means in PyTorch.
PAIRS = """
x: float32[b=2, h=4, w=6, c=3]; y: float32[b=2, n=8]
    einops.pack([y, y[:, :1]], 'b *')[0] == torch.cat([y, y[:, :1]], 1)
    einops.pack([x, x], 'b * c')[0] == torch.cat([x.flatten(1, 2)] * 2, 1)
    einops.unpack(*einops.pack([x, x[:, :1]], 'b * c'), 'b * c')[1] == x[:, :1]
    einops.rearrange(x, 'b h w c -> b c h w') == x.permute(0, 3, 1, 2)
    einops.rearrange(x, 'b h w c -> b (h w) c') == x.flatten(1, 2)
    einops.rearrange(x, 'b ... -> b (...)') == x.flatten(1)
    einops.rearrange(x, 'b h w c -> (b h) (w c)') == x.flatten(2, 3).flatten(0, 1)
    einops.rearrange(x, '... c -> c ...') == x.permute(3, 0, 1, 2)
    einops.rearrange(y, 'b (k n) -> k b n', k=2) == y.view(y.size(0), 2, -1).transpose(0, 1)
    einops.rearrange(y, 'b n -> b 1 n 1') == y[:, None, :, None]
    einops.rearrange(y[:, None], 'b 1 n -> n b') == y.T
    einops.rearrange(y, 'b n -> b n ()') == y[..., None]
    einops.rearrange([y, y, y], 'k b n -> b k n') == torch.stack([y, y, y], 1)
    einops.reduce(x, 'b h w c -> b c', 'mean') == x.mean((1, 2))
    einops.reduce(x, 'b h w c -> b 1 1 c', 'max') == x.amax((1, 2), keepdim=True)
    einops.reduce(x, '... c -> c', 'sum') == x.sum((0, 1, 2))
    einops.reduce(y, 'b (n k) -> b n', 'max', k=2) == y.view(y.size(0), -1, 2).amax(2)
    einops.repeat(y, 'b n -> b n k', k=5) == y[..., None].expand(-1, -1, 5)
    einops.repeat(y, 'b n -> (r b) n', r=3) == y.repeat(3, 1)
    einops.repeat(y, 'b n -> b 2 n') == y[:, None].expand(-1, 2, -1)
    einops.repeat(y[:1], '1 n -> b n', b=7) == y[:1].expand(7, -1)
    einops.einsum(y, y, 'batch i, batch j -> batch i j') == y[:, :, None] * y[:, None]
    einops.parse_shape(y, 'b _')['b'] == y.size(0)
    Rearrange('b h w c -> b c h w')(x) == x.permute(0, 3, 1, 2)
    nn.Sequential(Rearrange('b n -> b n 1'), nn.Linear(1, 2))(y) == nn.Linear(1, 2)(y[..., None])
    Reduce('b n -> b', 'mean')(y) == y.mean(1)
"""
WRONG = {
    "rearrange(x, 'b h w -> b h w')": "expects 3 axes",
    "rearrange(x, 'b h w c -> b h w')": "c stands on one side only",
    "rearrange(x, 'b h w c -> b h w c d')": "d stands on one side only",
    "rearrange(x, 'b (h k) w c -> b h k w c')": "the sizes of h, k",
    "rearrange(x, 'b (h k) w c -> b h k w c', k=3)": "a multiple of 3, got 4",
    "rearrange(x, 'b (h k w c -> b h k w c')": "parentheses do not match",
    "rearrange(x, 'b b w c -> b w c')": "'b' stands twice",
    "rearrange(x, 'b h w c')": "takes a pattern",
    "rearrange(x, 'b h w c -> b h w c', q=2)": "'q' is no axis",
    "rearrange(x, 'b 1 w c -> b w c')": "to be 1, got 4",
    "rearrange(x, 'b h w c -> b c h w', b=3)": "expected the axis 'b' to be 3, got 2",
    "reduce(x, 'b h w c -> b d', 'mean')": "d stands on the right only",
    "reduce(x, 'b h w c -> b', 'foo')": "as reduction, got 'foo'",
    "reduce(x.long(), 'b h w c -> b', 'mean')": "the mean takes floats",
    "repeat(x, 'b h w c -> b h w c k')": "the size of k",
    "repeat(x, 'b h w c -> b h w')": "c stands on the left only",
    "rearrange(x, 'b h w c -> b ...')": "'...' stands on the right only",
    "rearrange(x, 'b h w 3 -> 3 b h w')": "takes no number but 1 as an axis, got 3, 3",
    "pack([], 'b *')": "pack takes at least one tensor",
}
_IMPORTS = "import einops; from einops.layers.torch import Rearrange, Reduce; "
SECTION = sections(PAIRS)[0]


@pytest.mark.parametrize("pair", [call.source for call in SECTION.calls])
def test_patterns_mean_what_they_say_in_pytorch(pair: str, tmp_path: Path) -> None:
    pattern, meaning = pair.split(" == ")
    ours = Call(_IMPORTS + pattern, SECTION.calls[0].inputs)
    for sizes in (ours.sizes, {"b": 5, "h": 1, "w": 2, "c": 7, "n": 10}):
        found = inferred(ours, tmp_path, True)
        assert not [*found.errors, *found.unknown]
        expected = real(Call(meaning, ours.inputs), sizes)
        assert agrees(found.result, expected, sizes, found.invented), (found.result, expected)


@pytest.mark.parametrize("call", WRONG)
def test_patterns_that_do_not_fit_are_errors(call: str, tmp_path: Path) -> None:
    inputs = (("x", "float32[2, 4, 6, 3]", 0),)
    found = inferred(Call(f"{_IMPORTS}einops.{call}", inputs), tmp_path, False)
    assert len(found.errors) == 1
    assert WRONG[call] in found.errors[0]
