"""All mistakes put into the models in Chainer's style, each of which Chainer 7.8.1 refuses.

Where a loss refuses its labels, Chainer says only that an ``Expr`` cannot be a bool: once its type
check has failed, it checks again for the sake of the message, and that stumbles. Clashes of dtype
are few because arithmetic promotes.
"""

from __future__ import annotations

from .mistake import Kind, Mistake
from .mistakes_chainer_images import IMAGES
from .mistakes_chainer_sequences import SEQUENCES

__all__ = ["MISTAKES", "Kind", "Mistake"]

MISTAKES: tuple[Mistake, ...] = (*IMAGES, *SEQUENCES)
