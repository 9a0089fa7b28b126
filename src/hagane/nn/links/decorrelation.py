"""Decorrelated batch normalization as a link."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hagane.nn import functions as F
from hagane.nn.autograd.configuration import config
from hagane.nn.functions.applying import pop_options
from hagane.nn.model.link import Link
from hagane.nn.serializers.serializer import Deserializer


class DecorrelatedBatchNormalization(Link):
    """Removes the correlation of channels, in training by batches, else by running statistics.

    Args:
        size: The number of channels.
        groups: Into how many they are split; channels of different groups may correlate.
        decay: Of the running statistics.
        eps: Added to variances.
        dtype: The element type of the statistics.
    """

    def __init__(
        self,
        size: int,
        groups: int = 16,
        decay: float = 0.9,
        eps: float = 2e-5,
        dtype: Any = np.float32,
    ):
        super().__init__()
        count = size // groups
        self.avg_mean = np.zeros((groups, count), dtype)
        self.register_persistent("avg_mean")
        self.avg_projection = np.tile(np.eye(count, dtype=dtype), (groups, 1, 1))
        self.register_persistent("avg_projection")
        self.N = 0
        self.register_persistent("N")
        self.decay, self.eps, self.groups = decay, eps, groups

    def serialize(self, serializer: Any) -> None:
        """Save or load the statistics; those of one group may lack the axis of groups."""
        if isinstance(serializer, Deserializer):
            serializer = _Grouped(serializer, {"avg_mean": 2, "avg_projection": 3}, self.groups)
        super().serialize(serializer)

    def forward(self, x: Any, **kwargs: Any) -> Any:
        """Return the values without correlation.

        Args:
            x: (batch, channels, *places).
            **kwargs: ``finetune``, in training: whether the statistics become means of all batches
                since ``start_finetuning``.
        """
        (finetune,) = pop_options("DecorrelatedBatchNormalization", kwargs, (), finetune=False)
        if not config.train:
            return F.fixed_decorrelated_batch_normalization(
                x, self.avg_mean, self.avg_projection, groups=self.groups
            )
        # A call that only repeats an earlier one leaves the statistics as they are.
        repeated = config.in_recomputing
        if finetune and not repeated:
            self.N += 1
        return F.decorrelated_batch_normalization(
            x,
            groups=self.groups,
            eps=self.eps,
            running_mean=None if repeated else self.avg_mean,
            running_projection=None if repeated else self.avg_projection,
            decay=1.0 - 1.0 / max(self.N, 1) if finetune else self.decay,
        )

    def start_finetuning(self) -> None:
        """Forget how many batches the statistics come from."""
        self.N = 0


class _Grouped(Deserializer):
    """Gives statistics of old snapshots the axis of groups."""

    def __init__(self, base: Any, ranks: dict[str, int], groups: int):
        self._base, self._ranks, self._groups = base, ranks, groups

    def __getitem__(self, key: str) -> Any:
        return self._base[key]

    def __call__(self, key: str, value: Any) -> Any:
        if key not in self._ranks:
            return self._base(key, value)
        found = np.asarray(self._base(key, None))
        if found.ndim == self._ranks[key] - 1:
            if self._groups != 1:
                warnings.warn(
                    "Found moving statistics of old DecorrelatedBatchNormalization, whose "
                    "algorithm was different from the paper.",
                    stacklevel=2,
                )
            found = np.broadcast_to(found, (self._groups, *found.shape))
        if found.ndim != self._ranks[key]:
            raise ValueError(f"{key}: expected {self._ranks[key]} axes, got shape {found.shape}")
        if value is None:
            return found
        value[...] = found
        return value
