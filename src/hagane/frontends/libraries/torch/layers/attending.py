"""Attention and transformers of ``torch.nn``."""

from __future__ import annotations

from collections.abc import Callable

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.networks import attending
from hagane.frontends.libraries.torch.functions.networks.dropping import dropout_of_weights
from hagane.frontends.libraries.torch.functions.numbers.elementwise import binary
from hagane.frontends.libraries.torch.layers.layer import layer, weight
from hagane.frontends.libraries.torch.operands import (
    need_tensor,
    same_dtype,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Tensor, Value


@layer("MultiheadAttention")
class MultiheadAttention:
    """Attention with projections (Vaswani et al., 2017)."""

    @staticmethod
    def init(
        t: Core, embed_dim: Value, num_heads: Value, dropout: Value = 0.0, bias: Value = True,
        add_bias_kv: Value = False, add_zero_attn: Value = False, kdim: Value = None,
        vdim: Value = None, batch_first: Value = False, device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        if isinstance(embed_dim, int) and isinstance(num_heads, int) and embed_dim % num_heads:
            t.fail(
                "assertion",
                f"expected embed_dim ({embed_dim}) to be divisible by num_heads ({num_heads})",
            )
        own = {"dtype": dtype, "device": device}
        kdim = embed_dim if kdim is None else kdim
        vdim = embed_dim if vdim is None else vdim
        joined = kdim == vdim == embed_dim  # one array then has the weights of all three
        apart = {} if joined else {"q": embed_dim, "k": kdim, "v": vdim}
        extra = [weight(t, 1, 1, embed_dim, **own) if add_bias_kv else None for _ in range(2)]
        return {
            "embed_dim": embed_dim, "num_heads": num_heads, "dropout": dropout,
            "kdim": kdim, "vdim": vdim,
            "add_zero_attn": add_zero_attn,
            "batch_first": batch_first, "head_dim": embed_dim // num_heads,
            "in_proj_weight": weight(t, 3 * embed_dim, embed_dim, **own) if joined else None,
            **{
                f"{name}_proj_weight": weight(t, embed_dim, apart[name], **own) if apart else None
                for name in "qkv"
            },
            "in_proj_bias": weight(t, 3 * embed_dim, **own) if bias else None,
            "bias_k": extra[0], "bias_v": extra[1],
            "out_proj": t.call_library("torch.nn.Linear", [embed_dim, embed_dim, bias], own),
        }  # fmt: skip

    @staticmethod
    def forward(
        t: Core, self: View, query: Value, key: Value, value: Value,
        key_padding_mask: Value = None, need_weights: Value = True, attn_mask: Value = None,
        average_attn_weights: Value = True, is_causal: Value = False,
    ) -> Value:  # fmt: skip
        """Apply the layer."""
        q, k, v = (
            need_tensor(t, x, name)
            for x, name in ((query, "query"), (key, "key"), (value, "value"))
        )
        projection = self.raw("in_proj_weight")
        if isinstance(projection, Tensor):
            same_dtype(t, q, projection, "query and weight")
        more = (self.get("bias_k", None) is not None) + bool(self.get("add_zero_attn", False))
        unseen = attending.hides_more(more, is_causal, key_padding_mask, need_weights)
        return attending.multi_head_attention(
            t, self.embed_dim, self.num_heads, bool(self.batch_first), q, k, v, self.kdim,
            self.vdim, key_padding_mask, attn_mask, need_weights, average_attn_weights,
            None if unseen else _projected(t, self), more,
        )  # fmt: skip


def _projected(t: Core, self: View) -> attending.Projected | None:
    """Return the weights of attention; None where it draws random numbers that nothing computes."""
    share, drop = self.get("dropout", 0.0), None
    if bool(self.get("training", True)) and share != 0:
        drop = dropout_of_weights(t, share)
        if drop is None:
            return None
    joined, biases = self.raw("in_proj_weight"), self.raw("in_proj_bias")
    if joined is None:
        weights = [self.raw(f"{name}_proj_weight") for name in "qkv"]
    else:
        weights = list(t.op("Split", joined, axis=0, num_outputs=3, outputs=3))
    own: list[Value] = [None] * 3
    if biases is not None:
        own = list(t.op("Split", biases, axis=0, num_outputs=3, outputs=3))
    out = View(t, self.raw("out_proj"))
    inner = tuple(zip(weights, own, strict=True))
    zeros = bool(self.get("add_zero_attn", False))
    keys, values = (
        self.raw(name) if self.get(name, None) is not None else None
        for name in ("bias_k", "bias_v")
    )
    rows = attending.further(t, keys, values, zeros, out.raw("weight"))
    return attending.Projected(inner, (out.raw("weight"), out.raw("bias")), rows, drop)


def _attended(
    t: Core, attention: Value, query: Tensor, memory: Tensor, mask: Value, padding: Value
) -> Tensor:
    """Return attention within a transformer's layer."""
    keywords = {"attn_mask": mask, "key_padding_mask": padding, "need_weights": False}
    found: Tensor = t.call(attention, [query, memory, memory], keywords)[0]
    return found


def _layer_attributes(
    t: Core, decodes: bool, d_model: Value, nhead: Value, dim_feedforward: Value, dropout: Value,
    activation: Value, layer_norm_eps: Value, batch_first: Value, norm_first: Value, bias: Value,
    device: Value, dtype: Value,
) -> dict[str, Value]:  # fmt: skip
    own = {"dtype": dtype, "device": device}

    def attention() -> Value:
        return t.call_library(
            "torch.nn.MultiheadAttention", [d_model, nhead, dropout, bias],
            {**own, "batch_first": batch_first},
        )  # fmt: skip

    def norm() -> Value:
        return t.call_library("torch.nn.LayerNorm", [d_model, layer_norm_eps, True, bias], own)

    def drop() -> Value:
        return t.call_library("torch.nn.Dropout", [dropout])

    return {
        "self_attn": attention(), **({"multihead_attn": attention()} if decodes else {}),
        "linear1": t.call_library("torch.nn.Linear", [d_model, dim_feedforward, bias], own),
        "dropout": drop(),
        "linear2": t.call_library("torch.nn.Linear", [dim_feedforward, d_model, bias], own),
        "norm_first": norm_first,
        "norm1": norm(), "norm2": norm(), **({"norm3": norm()} if decodes else {}),
        "dropout1": drop(), "dropout2": drop(), **({"dropout3": drop()} if decodes else {}),
        "activation": activation,
    }  # fmt: skip


def _applied(t: Core, self: View, name: str, x: Value) -> Value:
    return t.call(self.raw(name), [x], {})


def _fed_forward(t: Core, self: View, x: Value) -> Value:
    x = _applied(t, self, "linear1", x)
    activation = self.raw("activation")
    if isinstance(activation, str):
        x = t.call_library(f"torch.nn.functional.{activation}", [x])
    else:
        x = t.call(activation, [x], {})
    return _applied(t, self, "linear2", _applied(t, self, "dropout", x))


def _residual(t: Core, self: View, x: Value, number: int, block: Callable[[Value], Value]) -> Value:
    """Return the input plus a block of it, normalised before the block or behind the sum."""
    first = bool(self.raw("norm_first"))
    inner = block(_applied(t, self, f"norm{number}", x) if first else x)
    total = binary(t, "add", x, _applied(t, self, f"dropout{number}", inner))
    return total if first else _applied(t, self, f"norm{number}", total)


@layer("TransformerEncoderLayer")
class TransformerEncoderLayer:
    """Self-attention and two linear layers."""

    @staticmethod
    def init(
        t: Core, d_model: Value, nhead: Value, dim_feedforward: Value = 2048, dropout: Value = 0.1,
        activation: Value = "relu", layer_norm_eps: Value = 1e-5, batch_first: Value = False,
        norm_first: Value = False, bias: Value = True, device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return _layer_attributes(
            t, False, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
            batch_first, norm_first, bias, device, dtype,
        )  # fmt: skip

    @staticmethod
    def forward(
        t: Core, self: View, src: Value, src_mask: Value = None, src_key_padding_mask: Value = None,
        is_causal: Value = False,
    ) -> Value:  # fmt: skip
        """Apply the layer."""
        mask, padding = src_mask, src_key_padding_mask

        def attended(x: Value) -> Value:
            return _attended(t, self.raw("self_attn"), x, x, mask, padding)

        x = _residual(t, self, need_tensor(t, src, "src"), 1, attended)
        return _residual(t, self, x, 2, lambda x: _fed_forward(t, self, x))


@layer("TransformerDecoderLayer")
class TransformerDecoderLayer:
    """Self-attention, attention to a memory, and two linear layers."""

    @staticmethod
    def init(
        t: Core, d_model: Value, nhead: Value, dim_feedforward: Value = 2048, dropout: Value = 0.1,
        activation: Value = "relu", layer_norm_eps: Value = 1e-5, batch_first: Value = False,
        norm_first: Value = False, bias: Value = True, device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return _layer_attributes(
            t, True, d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
            batch_first, norm_first, bias, device, dtype,
        )  # fmt: skip

    @staticmethod
    def forward(
        t: Core, self: View, tgt: Value, memory: Value, tgt_mask: Value = None,
        memory_mask: Value = None, tgt_key_padding_mask: Value = None,
        memory_key_padding_mask: Value = None, tgt_is_causal: Value = False,
        memory_is_causal: Value = False,
    ) -> Value:  # fmt: skip
        """Apply the layer."""
        x, m = need_tensor(t, tgt, "tgt"), need_tensor(t, memory, "memory")

        def attended(x: Value) -> Value:
            return _attended(t, self.raw("self_attn"), x, x, tgt_mask, tgt_key_padding_mask)

        def reminded(x: Value) -> Value:
            attention = self.raw("multihead_attn")
            return _attended(t, attention, x, m, memory_mask, memory_key_padding_mask)

        x = _residual(t, self, x, 1, attended)
        x = _residual(t, self, x, 2, reminded)
        return _residual(t, self, x, 3, lambda x: _fed_forward(t, self, x))


def _stack(t: Core, first: Value, num_layers: Value, norm: Value) -> dict[str, Value]:
    copies = [t.copied(first, {}) for _ in range(num_layers)]
    layers = t.call_library("torch.nn.ModuleList", [copies])
    return {"layers": layers, "num_layers": num_layers, "norm": norm}


def _layers(t: Core, self: View) -> list[Value]:
    found = t.sequence(self.raw("layers"))
    return found if isinstance(found, list) else []


@layer("TransformerEncoder")
class TransformerEncoder:
    """Several encoder layers."""

    @staticmethod
    def init(
        t: Core, encoder_layer: Value, num_layers: Value, norm: Value = None,
        enable_nested_tensor: Value = True, mask_check: Value = True,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return _stack(t, encoder_layer, num_layers, norm)

    @staticmethod
    def forward(
        t: Core, self: View, src: Value, mask: Value = None, src_key_padding_mask: Value = None,
        is_causal: Value = None,
    ) -> Value:  # fmt: skip
        """Return the input through all layers."""
        keywords = {"src_mask": mask, "src_key_padding_mask": src_key_padding_mask}
        for module in _layers(t, self):
            src = t.call(module, [src], keywords)
        return src if self.raw("norm") is None else t.call(self.raw("norm"), [src], {})


@layer("TransformerDecoder")
class TransformerDecoder:
    """Several decoder layers."""

    @staticmethod
    def init(
        t: Core, decoder_layer: Value, num_layers: Value, norm: Value = None
    ) -> dict[str, Value]:
        """Return the attributes."""
        return _stack(t, decoder_layer, num_layers, norm)

    @staticmethod
    def forward(
        t: Core, self: View, tgt: Value, memory: Value, tgt_mask: Value = None,
        memory_mask: Value = None, tgt_key_padding_mask: Value = None,
        memory_key_padding_mask: Value = None, tgt_is_causal: Value = None,
        memory_is_causal: Value = False,
    ) -> Value:  # fmt: skip
        """Return the target through all layers."""
        keywords = {
            "tgt_mask": tgt_mask, "memory_mask": memory_mask,
            "tgt_key_padding_mask": tgt_key_padding_mask,
            "memory_key_padding_mask": memory_key_padding_mask,
        }  # fmt: skip
        for module in _layers(t, self):
            tgt = t.call(module, [tgt, memory], keywords)
        return tgt if self.raw("norm") is None else t.call(self.raw("norm"), [tgt], {})


@layer("Transformer")
class Transformer:
    """An encoder and a decoder."""

    @staticmethod
    def init(
        t: Core, d_model: Value = 512, nhead: Value = 8, num_encoder_layers: Value = 6,
        num_decoder_layers: Value = 6, dim_feedforward: Value = 2048, dropout: Value = 0.1,
        activation: Value = "relu", custom_encoder: Value = None, custom_decoder: Value = None,
        layer_norm_eps: Value = 1e-5, batch_first: Value = False, norm_first: Value = False,
        bias: Value = True, device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        own = {"device": device, "dtype": dtype}
        settings = {
            "d_model": d_model, "nhead": nhead, "dim_feedforward": dim_feedforward,
            "dropout": dropout, "activation": activation, "layer_norm_eps": layer_norm_eps,
            "batch_first": batch_first, "norm_first": norm_first, "bias": bias, **own,
        }  # fmt: skip

        def stack(kind: str, count: Value) -> Value:
            name = f"torch.nn.Transformer{kind}"
            norm = t.call_library("torch.nn.LayerNorm", [d_model, layer_norm_eps, True, bias], own)
            return t.call_library(name, [t.call_library(f"{name}Layer", [], settings), count, norm])

        return {
            "d_model": d_model, "nhead": nhead, "batch_first": batch_first,
            "encoder": custom_encoder or stack("Encoder", num_encoder_layers),
            "decoder": custom_decoder or stack("Decoder", num_decoder_layers),
        }  # fmt: skip

    @staticmethod
    def forward(
        t: Core, self: View, src: Value, tgt: Value, src_mask: Value = None, tgt_mask: Value = None,
        memory_mask: Value = None, src_key_padding_mask: Value = None,
        tgt_key_padding_mask: Value = None, memory_key_padding_mask: Value = None,
        src_is_causal: Value = None, tgt_is_causal: Value = None, memory_is_causal: Value = False,
    ) -> Value:  # fmt: skip
        """Return the target, decoded with the encoded source as memory."""
        memory = t.call(
            self.raw("encoder"),
            [src],
            {"mask": src_mask, "src_key_padding_mask": src_key_padding_mask},
        )
        return t.call(
            self.raw("decoder"),
            [tgt, memory],
            {
                "tgt_mask": tgt_mask,
                "memory_mask": memory_mask,
                "tgt_key_padding_mask": tgt_key_padding_mask,
                "memory_key_padding_mask": memory_key_padding_mask,
            },
        )

    @staticmethod
    def generate_square_subsequent_mask(
        t: Core, self: View, sz: Value, device: Value = None, dtype: Value = None
    ) -> Value:
        """Return a mask that hides later positions: (sz, sz)."""
        return causal_mask(t, sz, device, dtype)


@TORCH.function("nn.Transformer.generate_square_subsequent_mask")
def causal_mask(t: Core, sz: Value, device: Value = None, dtype: Value = None) -> Value:
    """Return a mask that hides later positions: (sz, sz)."""
    kinds = {"dtype": dtype, "device": device}
    full = t.call_library("torch.full", [(sz, sz), float("-inf")], kinds)
    return t.call_library("torch.triu", [full], {"diagonal": 1})
