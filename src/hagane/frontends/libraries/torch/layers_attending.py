"""Attention and transformers of ``torch.nn``."""

from __future__ import annotations

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch import normalising
from hagane.frontends.libraries.torch.layer import layer, weight
from hagane.frontends.python.core import Core
from hagane.frontends.python.values import Value


@layer("MultiheadAttention")
class MultiheadAttention:
    """Attention with projections (Vaswani et al., 2017)."""

    @staticmethod
    def init(t: Core, embed_dim: Value, num_heads: Value, dropout: Value = 0.0, bias: Value = True,
             add_bias_kv: Value = False, add_zero_attn: Value = False, kdim: Value = None,
             vdim: Value = None, batch_first: Value = False, device: Value = None,
             dtype: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if isinstance(embed_dim, int) and isinstance(num_heads, int) and embed_dim % num_heads:
            t.fail(
                "assertion",
                f"expected embed_dim ({embed_dim}) to be divisible by num_heads ({num_heads})",
            )
        return {
            "embed_dim": embed_dim, "num_heads": num_heads, "dropout": dropout,
            "kdim": embed_dim if kdim is None else kdim, "vdim": embed_dim if vdim is None else vdim,
            "batch_first": batch_first, "head_dim": embed_dim // num_heads,
            "in_proj_weight": weight(t, 3 * embed_dim, embed_dim),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, query: Value, key: Value, value: Value,
                key_padding_mask: Value = None, need_weights: Value = True, attn_mask: Value = None,
                average_attn_weights: Value = True, is_causal: Value = False) -> Value:  # fmt: skip
        """Apply the layer."""
        return normalising.multi_head_attention(
            t, self.embed_dim, self.num_heads, bool(self.batch_first), query, key, value, self.kdim,
            self.vdim, key_padding_mask, attn_mask, need_weights, average_attn_weights,
        )  # fmt: skip
