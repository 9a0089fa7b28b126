"""Chainer's iterator over pipelines of NVIDIA DALI, which hagane has not."""

from __future__ import annotations

from typing import Any

from hagane.training.errors import NotProvided


class DaliIterator:
    """Refuses: DALI's pipelines run on GPUs, which hagane does not train on.

    Args:
        pipeline: A pipeline of DALI.
        repeat: Go on into the next epoch.

    Raises:
        NotProvided: Always.
    """

    def __init__(self, pipeline: Any, repeat: bool = True):
        raise NotProvided(
            f"DaliIterator: expected no pipeline of NVIDIA DALI, got {type(pipeline).__name__}: "
            "its pipelines need a GPU and hagane trains on the CPU; write the steps as a "
            "TransformDataset and pass it to MultiprocessIterator"
        )
