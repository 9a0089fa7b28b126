"""All mistakes put into the models written in PyTorch."""

from __future__ import annotations

from .mistake import Kind, Mistake
from .mistakes_torch_generative import GENERATIVE
from .mistakes_torch_images import IMAGES
from .mistakes_torch_language import LANGUAGE
from .mistakes_torch_sequences import SEQUENCES

__all__ = ["MISTAKES", "Kind", "Mistake"]

MISTAKES: tuple[Mistake, ...] = (*IMAGES, *GENERATIVE, *LANGUAGE, *SEQUENCES)
