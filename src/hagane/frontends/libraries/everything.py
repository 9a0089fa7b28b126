"""The tables of all libraries; importing this fills them."""

from __future__ import annotations

from hagane.frontends.libraries.chainer import CHAINER
from hagane.frontends.libraries.einops import EINOPS
from hagane.frontends.libraries.names.additions import HAGANE
from hagane.frontends.libraries.numpy import NUMPY
from hagane.frontends.libraries.recording import TQDM
from hagane.frontends.libraries.sklearn import SKLEARN
from hagane.frontends.libraries.table import Table
from hagane.frontends.libraries.tokens import FIRE, TIKTOKEN, TYRO
from hagane.frontends.libraries.torch import TORCH
from hagane.frontends.libraries.torchvision import PIL, TORCHVISION

TABLES: dict[str, Table] = {
    "torch": TORCH,
    "numpy": NUMPY,
    "chainer": CHAINER,
    "einops": EINOPS,
    "tqdm": TQDM,
    "torchvision": TORCHVISION,
    "PIL": PIL,
    "sklearn": SKLEARN,
    "tiktoken": TIKTOKEN,
    "tyro": TYRO,
    "fire": FIRE,
    "hagane": HAGANE,
}
