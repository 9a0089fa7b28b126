"""einops: axes moved, joined, split, reduced and repeated by a pattern.

https://einops.rocks/api/rearrange/
"""

from __future__ import annotations

from hagane.frontends.libraries.einops import layers, packing
from hagane.frontends.libraries.einops.functions import EINOPS

# Names whose values are made of functions of PyTorch and NumPy that have theirs.
COMPOSED = frozenset(
    f"einops.{name}"
    for name in (
        "rearrange", "reduce", "repeat", "einsum", "parse_shape", "pack", "unpack",
        "layers.torch.Rearrange.forward", "layers.torch.Reduce.forward",
    )
)  # fmt: skip

__all__ = ["COMPOSED", "EINOPS", "layers", "packing"]
