"""Attention of PyTorch with its projections as a function."""

from __future__ import annotations

from hagane.frontends.libraries.torch.functions import normalising
from hagane.frontends.libraries.torch.operands import need_tensor, shape_of
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value


@TORCH.function("nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(
    t: Core, query: Value, key: Value, value: Value, embed_dim_to_check: Value, num_heads: Value,
    in_proj_weight: Value, in_proj_bias: Value, bias_k: Value, bias_v: Value, add_zero_attn: Value,
    dropout_p: Value, out_proj_weight: Value, out_proj_bias: Value, training: Value = True,
    key_padding_mask: Value = None, need_weights: Value = True, attn_mask: Value = None,
    use_separate_proj_weight: Value = False, q_proj_weight: Value = None,
    k_proj_weight: Value = None, v_proj_weight: Value = None, static_k: Value = None,
    static_v: Value = None, average_attn_weights: Value = True, is_causal: Value = False,
) -> Value:  # fmt: skip
    """Return what ``nn.MultiheadAttention`` returns with ``batch_first=False``."""
    q, k, v = (
        need_tensor(t, x, name) for x, name in ((query, "query"), (key, "key"), (value, "value"))
    )
    extra = any(x is not None for x in (bias_k, bias_v, static_k, static_v)) or bool(add_zero_attn)
    parts = None
    if not extra and not (bool(training) and dropout_p != 0):
        if use_separate_proj_weight:
            weights = [q_proj_weight, k_proj_weight, v_proj_weight]
        else:
            weights = list(t.op("Split", in_proj_weight, axis=0, num_outputs=3, outputs=3))
        biases: list[Value] = [None] * 3
        if in_proj_bias is not None:
            biases = list(t.op("Split", in_proj_bias, axis=0, num_outputs=3, outputs=3))
        inner = tuple(zip(weights, biases, strict=True))
        parts = normalising.Projected(inner, (out_proj_weight, out_proj_bias))
    return normalising.multi_head_attention(
        t, embed_dim_to_check, num_heads, False, q, k, v, shape_of(t, k)[-1], shape_of(t, v)[-1],
        key_padding_mask, attn_mask, need_weights, average_attn_weights, parts,
    )  # fmt: skip
