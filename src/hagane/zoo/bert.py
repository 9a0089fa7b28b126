"""BERT: an encoder of transformer layers, and its heads."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.autograd.parameter import Parameter
from hagane.nn.initializers import Normal
from hagane.nn.model.chain import Chain, ChainList
from hagane.zoo.language import normalised


class _Layer(Chain):
    """A layer of a transformer that normalises last (Vaswani et al., 2017, section 3.1)."""

    def __init__(self, units: int, heads: int, hidden: int, dropout: float):
        super().__init__()
        self._dropout = dropout
        with self.init_scope():
            self.attention = L.MultiHeadAttention(units, heads, dropout=dropout)
            self.norm1 = _norm(units)
            self.widen = _linear(units, hidden)
            self.narrow = _linear(hidden, units)
            self.norm2 = _norm(units)

    def forward(self, x: Any, mask: Any = None) -> Any:
        h = F.dropout(self.attention(x, mask=mask), self._dropout)
        x = normalised(self.norm1, x + h)
        h = self.narrow(F.gelu(self.widen(x, n_batch_axes=2)), n_batch_axes=2)
        return normalised(self.norm2, x + F.dropout(h, self._dropout))


class BERT(Chain):
    """BERT; tokens ``(batch, time)`` to ``(batch, time, units)``.

    "BERT: pre-training of deep bidirectional transformers for language understanding" (Devlin et
    al., 2018); the default sizes are those of BERT-base.

    Args:
        words: How many tokens there are.
        length: The longest time.
        units: Of embeddings and layers; a multiple of ``heads``.
        layers: How many layers.
        heads: Of attention.
        hidden: Units inside of a layer; four times ``units`` if None.
        segments: How many kinds of segments.
        dropout: Share of values, and of attention's weights, that is dropped in training.
    """

    def __init__(
        self,
        words: int = 30522,
        length: int = 512,
        units: int = 768,
        layers: int = 12,
        heads: int = 12,
        hidden: int | None = None,
        segments: int = 2,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.units, self._dropout = units, dropout
        inner = 4 * units if hidden is None else hidden
        with self.init_scope():
            self.embed = L.EmbedID(words, units, Normal(0.02))
            self.place = L.EmbedID(length, units, Normal(0.02))
            self.segment = L.EmbedID(segments, units, Normal(0.02))
            self.norm = _norm(units)
            self.body = ChainList(*(_Layer(units, heads, inner, dropout) for _ in range(layers)))
            self.pool = _linear(units, units)

    def forward(self, tokens: Any, segments: Any = None, present: Any = None) -> Any:
        """Return values of each position.

        Args:
            tokens: (batch, time).
            segments: The segment of each token, (batch, time); the first if None.
            present: Whether a token counts, truth values (batch, time); all do if None.
        """
        kinds = np.zeros_like(tokens) if segments is None else segments
        x = self.embed(tokens) + self.segment(kinds)
        places = self.place(np.arange(tokens.shape[1], dtype=np.int32))
        x = normalised(self.norm, x + F.broadcast_to(places, x.shape))
        x = F.dropout(x, self._dropout)
        mask = None if present is None else present[:, None, None, :]
        for layer in self.body.children():
            x = layer(x, mask)
        return x

    def pooled(self, x: Any) -> Any:
        """Return a summary of each sequence, ``(batch, units)``, from its first position."""
        return F.tanh(self.pool(x[:, 0]))


class BERTClassifier(Chain):
    """BERT under a classifier of sequences, as it is fine-tuned; ``(batch, classes)``.

    Args:
        bert: The encoder.
        classes: How many scores it returns.
    """

    def __init__(self, bert: BERT, classes: int = 2):
        super().__init__()
        self._dropout = bert._dropout
        with self.init_scope():
            self.bert = bert
            self.out = _linear(bert.units, classes)

    def forward(self, tokens: Any, segments: Any = None, present: Any = None) -> Any:
        """Return scores of sequences; arguments as for :class:`BERT`."""
        found = self.bert.pooled(self.bert(tokens, segments, present))
        return self.out(F.dropout(found, self._dropout))


class BERTWords(Chain):
    """BERT under scores of words, as it is trained on hidden ones; ``(batch, time, words)``.

    The scores are products with the embeddings of the words (Devlin et al., 2018, section 3.1).

    Args:
        bert: The encoder.
    """

    def __init__(self, bert: BERT):
        super().__init__()
        with self.init_scope():
            self.bert = bert
            self.transform = _linear(bert.units, bert.units)
            self.norm = _norm(bert.units)
            self.bias = Parameter(0, bert.embed.W.shape[0])

    def forward(self, tokens: Any, segments: Any = None, present: Any = None) -> Any:
        """Return scores of the words at each position; arguments as for :class:`BERT`."""
        h = F.gelu(self.transform(self.bert(tokens, segments, present), n_batch_axes=2))
        return F.linear(normalised(self.norm, h), self.bert.embed.W, self.bias, n_batch_axes=2)


def _linear(inputs: int, units: int) -> Any:
    return L.Linear(inputs, units, initialW=Normal(0.02))


def _norm(units: int) -> Any:
    return L.LayerNormalization(units, eps=1e-12)
