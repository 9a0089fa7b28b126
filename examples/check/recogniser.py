"""A small recogniser with three mistakes that training would find an hour later.

hagane check examples/check/recogniser.py:Recogniser --make 'Recogniser(40)' --show-types
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Recogniser(nn.Module):
    def __init__(self, classes, width=32):
        super().__init__()
        self.conv = nn.Conv2d(1, width, 3, stride=2)
        self.rnn = nn.GRU(width * 39, 64, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, classes)  # both directions come out: 128

    def forward(self, x: Float[Tensor, "batch time 80"]):
        h = F.relu(self.conv(x.unsqueeze(1)))
        h = h.transpose(1, 2).flatten(2)
        if h.shape[1] % 2:
            h = torch.cat([h, h.new_zeros(h.shape[0], 1, 39)], dim=1)  # the width is missing
        h = h.view(h.shape[0], -1, 2, h.shape[2]).mean(2)
        y, _ = self.rnn(h)
        weights = y.mean(-1).softmax(-1)
        return self.out((y * weights).sum(1))  # weights lack the last axis
