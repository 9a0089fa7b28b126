"""Folders of chainer-trt's ModelRetriever (``model.json`` and weights) as models."""

from hagane.ship.retrieved.folder import DESCRIPTION, model_source, read_retrieved
from hagane.ship.retrieved.layers import KINDS

__all__ = ["DESCRIPTION", "KINDS", "model_source", "read_retrieved"]
