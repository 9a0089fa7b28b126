"""Sequences to sequences: an encoder and a decoder of LSTM, with attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from hagane.nn import functions as F  # noqa: N812
from hagane.nn import links as L  # noqa: N812
from hagane.nn.autograd.configuration import no_backprop_mode, using_config
from hagane.nn.model.chain import Chain


class Seq2Seq(Chain):
    """An encoder and a decoder of LSTM with global attention.

    "Sequence to sequence learning with neural networks" (Sutskever et al., 2014), with the
    "general" scores of "Effective approaches to attention-based neural machine translation" (Luong
    et al., 2015, equations 5 to 8). The sequences of a batch have one length: shorter ones are
    filled with a word that stands for nothing.

    Args:
        words: How many tokens the source has.
        target_words: How many tokens the target has; as many as the source if None.
        units: Of embeddings and layers.
        layers: Of encoder and decoder.
        dropout: Share of values that is dropped between layers.
    """

    def __init__(
        self,
        words: int,
        target_words: int | None = None,
        units: int = 256,
        layers: int = 2,
        dropout: float = 0.2,
    ):
        super().__init__()
        targets = words if target_words is None else target_words
        with self.init_scope():
            self.embed = L.EmbedID(words, units)
            self.encoder = L.NStepLSTM(layers, units, units, dropout)
            self.embed_target = L.EmbedID(targets, units)
            self.decoder = L.NStepLSTM(layers, units, units, dropout)
            self.query = L.Linear(units, units, nobias=True)
            self.join = L.Linear(2 * units, units, nobias=True)
            self.out = L.Linear(units, targets)

    def encode(self, source: Any) -> tuple[Any, Any, Any]:
        """Return states, cells and outputs ``(batch, time, units)`` of the encoder."""
        return _run(self.encoder, None, None, self.embed(source))

    def forward(self, source: Any, target: Any) -> Any:
        """Return scores of each next token of the target, ``(batch, steps, target words)``.

        Args:
            source: Tokens, (batch, time).
            target: The tokens before the scored ones, (batch, steps).
        """
        state, cell, memory = self.encode(source)
        return self._scores(state, cell, memory, target)[2]

    def _scores(self, state: Any, cell: Any, memory: Any, target: Any) -> tuple[Any, Any, Any]:
        state, cell, h = _run(self.decoder, state, cell, self.embed_target(target))
        query = self.query(h, n_batch_axes=2)
        seen = F.scaled_dot_product_attention(query, memory, memory, scale=1.0)
        joined = F.tanh(self.join(F.concat((seen, h), axis=2), n_batch_axes=2))
        return state, cell, self.out(joined, n_batch_axes=2)

    def translate(self, source: Any, start: int, steps: int) -> Any:
        """Return the likeliest tokens, one after the other, ``(batch, steps)``, int32.

        Args:
            source: Tokens, (batch, time).
            start: The token before the first.
            steps: How many tokens.
        """
        now = np.full((len(source), 1), start, np.int32)
        found = []
        with no_backprop_mode(), using_config("train", False):
            state, cell, memory = self.encode(source)
            for _ in range(steps):
                state, cell, scores = self._scores(state, cell, memory, now)
                now = scores.array.argmax(axis=2).astype(np.int32)
                found.append(now)
        return np.concatenate(found, axis=1)


def _run(lstm: Any, state: Any, cell: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return last states, last cells and all outputs of an LSTM over ``(batch, time, units)``."""
    state, cell, found = lstm(state, cell, list(F.separate(x, axis=0)))
    return state, cell, F.stack(found, axis=0)
