"""Models of language: an LSTM, and a small GPT."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.model.chain import Chain, ChainList


class LSTMLanguageModel(Chain):
    """Layers of LSTM over embeddings; tokens ``(batch, time)`` to ``(batch, time, words)``.

    Args:
        words: How many tokens there are.
        units: Of embeddings and layers.
        layers: How many layers.
        dropout: Share of values that is dropped between layers.
    """

    def __init__(self, words: int, units: int = 200, layers: int = 2, dropout: float = 0.5):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, units)
            self.lstm = L.NStepLSTM(layers, units, units, dropout)
            self.out = L.Linear(units, words)

    def forward(self, tokens: Any) -> Any:
        """Return scores of the next token."""
        _, _, found = self.lstm(None, None, list(F.separate(self.embed(tokens), axis=0)))
        return self.out(F.stack(found, axis=0), n_batch_axes=2)


class _Attention(Chain):
    """Attention of many heads to earlier positions."""

    def __init__(self, units: int, heads: int):
        super().__init__()
        self._heads = heads
        with self.init_scope():
            self.read = L.Linear(units, 3 * units)
            self.out = L.Linear(units, units)

    def forward(self, x: Any) -> Any:
        batch, time, units = x.shape
        split = F.reshape(
            self.read(x, n_batch_axes=2), (batch, time, 3, self._heads, units // self._heads)
        )
        q, k, v = F.separate(F.transpose(split, (2, 0, 3, 1, 4)), axis=0)
        scale = (units // self._heads) ** -0.5
        scores = F.matmul(q, k, transb=True) * scale
        hidden = np.triu(np.full((time, time), -1e9, scores.dtype), 1)
        weights = F.softmax(scores + F.broadcast_to(hidden, scores.shape), axis=-1)
        found = F.transpose(F.matmul(weights, v), (0, 2, 1, 3))
        return self.out(F.reshape(found, (batch, time, units)), n_batch_axes=2)


class _Layer(Chain):
    """A layer of a transformer that normalises first."""

    def __init__(self, units: int, heads: int):
        super().__init__()
        with self.init_scope():
            self.norm1 = L.LayerNormalization(units)
            self.attention = _Attention(units, heads)
            self.norm2 = L.LayerNormalization(units)
            self.widen = L.Linear(units, 4 * units)
            self.narrow = L.Linear(4 * units, units)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(normalised(self.norm1, x))
        h = F.gelu(self.widen(normalised(self.norm2, x), n_batch_axes=2))
        return x + self.narrow(h, n_batch_axes=2)


def normalised(norm: Any, x: Any) -> Any:
    """Apply a normalisation of ``(batch, units)`` at each time."""
    return F.reshape(norm(F.reshape(x, (-1, x.shape[-1]))), x.shape)


class GPT(Chain):
    """A decoder of transformer layers; tokens ``(batch, time)`` to ``(batch, time, words)``.

    "Language models are unsupervised multitask learners" (Radford et al., 2019).

    Args:
        words: How many tokens there are.
        length: The longest time.
        units: Of embeddings and layers; a multiple of ``heads``.
        layers: How many layers.
        heads: Of attention.
    """

    def __init__(
        self, words: int, length: int = 128, units: int = 128, layers: int = 4, heads: int = 4
    ):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(words, units)
            self.place = L.EmbedID(length, units)
            self.body = ChainList(*(_Layer(units, heads) for _ in range(layers)))
            self.norm = L.LayerNormalization(units)
            self.out = L.Linear(units, words, nobias=True)

    def forward(self, tokens: Any) -> Any:
        """Return scores of the next token."""
        places = self.place(np.arange(tokens.shape[1], dtype=np.int32))
        x = self.embed(tokens)
        x = x + F.broadcast_to(places, x.shape)
        for layer in self.body.children():
            x = layer(x)
        return self.out(normalised(self.norm, x), n_batch_axes=2)
