"""Chainer 7: the meaning of its names (https://docs.chainer.org/en/stable/reference/)."""

from hagane.frontends.libraries.chainer import (
    arithmetic,
    configuration,
    elementwise,
    filters,
    joining,
    link,
    links,
    losses,
    methods,
    normalisers,
    normalising,
    pooling,
    products,
    recurrent,
    reducing,
    shaping,
    states,
    windows,
)
from hagane.frontends.libraries.chainer.table import CHAINER

# Importing a module enters its functions into the table.
PARTS = (
    arithmetic, configuration, elementwise, filters, joining, link, links, losses, methods,
    normalisers, normalising, pooling, products, recurrent, reducing, shaping, states, windows,
)  # fmt: skip

__all__ = ["CHAINER", "PARTS"]
