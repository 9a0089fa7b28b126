"""Attention of several heads, and the blocks of transformers."""

from __future__ import annotations

from typing import Any

from hagane.nn import functions as F
from hagane.nn.links.connection import Linear
from hagane.nn.links.normalization import LayerNormalization
from hagane.nn.model.chain import Chain


class MultiHeadAttention(Chain):
    """Attention in several heads (Vaswani et al. 2017, section 3.2.2).

    Args:
        units: Features of inputs and outputs.
        heads: Into how many heads they are split.
        nobias: Whether the projections have no bias.
        dropout: The share of weights that is dropped in training.
        rotary: Whether positions turn queries and keys.
        kv_heads: Of keys and values, which heads of queries share; as many as heads if None.

    Raises:
        ValueError: Units don't split into heads, or heads into those of keys.
    """

    def __init__(
        self,
        units: int,
        heads: int,
        nobias: bool = False,
        dropout: float = 0.0,
        rotary: bool = False,
        kv_heads: int | None = None,
    ):
        super().__init__()
        shared = heads if kv_heads is None else kv_heads
        if units % heads or heads % shared:
            raise ValueError(
                f"MultiHeadAttention: expected units that split into heads, and heads into "
                f"kv_heads, got {units} units, {heads} heads, {shared} kv_heads"
            )
        self.units, self.heads, self.kv_heads = units, heads, shared
        self.dropout, self.rotary = dropout, rotary
        size = units // heads * shared
        with self.init_scope():
            self.query = Linear(units, units, nobias=nobias)
            self.key = Linear(units, size, nobias=nobias)
            self.value = Linear(units, size, nobias=nobias)
            self.out = Linear(units, units, nobias=nobias)

    def _split(self, x: Any, link: Linear, heads: int) -> Any:
        batch, length = x.shape[:2]
        y = F.reshape(link(x, n_batch_axes=2), (batch, length, heads, self.units // self.heads))
        return F.transpose(y, (0, 2, 1, 3))

    def forward(self, x: Any, memory: Any = None, mask: Any = None, is_causal: bool = False) -> Any:
        """Return the attended values, (batch, length, units).

        Args:
            x: (batch, length, units).
            memory: Where keys and values come from, (batch, keys, units); ``x`` if None.
            mask: Truth values, true where visible, or numbers that are added to the scores;
                (length, keys), or with axes of batch and heads before.
            is_causal: Whether a place sees only places up to itself.
        """
        source = x if memory is None else memory
        q = self._split(x, self.query, self.heads)
        k = self._split(source, self.key, self.kv_heads)
        v = self._split(source, self.value, self.kv_heads)
        if self.rotary:
            q, k = F.rotary(q), F.rotary(k)
        if self.kv_heads != self.heads:
            times = self.heads // self.kv_heads
            k, v = F.repeat(k, times, axis=1), F.repeat(v, times, axis=1)
        y = F.scaled_dot_product_attention(
            q, k, v, mask, dropout_p=self.dropout, is_causal=is_causal
        )
        batch, length = x.shape[:2]
        joined = F.reshape(F.transpose(y, (0, 2, 1, 3)), (batch, length, self.units))
        return self.out(joined, n_batch_axes=2)


class TransformerBlock(Chain):
    """Attention and a network of two layers, each normalised before and added to its input.

    Args:
        units: Features.
        heads: Of the attention.
        hidden: Features between the two layers; four times ``units`` if None.
        dropout: The share of outputs, and of attention's weights, that is dropped in training.
        rotary: Whether positions turn queries and keys.
        cross: Whether it also attends to a memory.
    """

    def __init__(
        self,
        units: int,
        heads: int,
        hidden: int | None = None,
        dropout: float = 0.0,
        rotary: bool = False,
        cross: bool = False,
    ):
        super().__init__()
        self.dropout, self.cross = dropout, cross
        inner = 4 * units if hidden is None else hidden
        with self.init_scope():
            self.norm1 = LayerNormalization(units)
            self.attention = MultiHeadAttention(units, heads, dropout=dropout, rotary=rotary)
            if cross:
                self.norm_memory = LayerNormalization(units)
                self.memory_attention = MultiHeadAttention(units, heads, dropout=dropout)
            self.norm2 = LayerNormalization(units)
            self.first = Linear(units, inner)
            self.second = Linear(inner, units)

    def forward(self, x: Any, memory: Any = None, mask: Any = None, is_causal: bool = False) -> Any:
        """Return the outputs, (batch, length, units).

        Args:
            x: (batch, length, units).
            memory: (batch, keys, units), for a block with ``cross``.
            mask: As for :class:`MultiHeadAttention`, of the attention to ``x``.
            is_causal: Likewise.

        Raises:
            ValueError: A memory is given to a block without ``cross``, or lacks for one with it.
        """
        if (memory is None) == self.cross:
            raise ValueError(
                "TransformerBlock: expected a memory for a block with cross=True, and only then"
            )
        y = self.attention(_normalised(self.norm1, x), mask=mask, is_causal=is_causal)
        x = x + F.dropout(y, self.dropout)
        if self.cross:
            y = self.memory_attention(_normalised(self.norm_memory, x), memory)
            x = x + F.dropout(y, self.dropout)
        y = F.gelu(self.first(_normalised(self.norm2, x), n_batch_axes=2))
        return x + F.dropout(self.second(y, n_batch_axes=2), self.dropout)


def _normalised(norm: LayerNormalization, x: Any) -> Any:
    return F.layer_norm(x, norm.gamma, norm.beta, norm.eps)
