"""Recurrent networks by hand, halting, routing."""

# mypy: ignore-errors

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .program import Program, floats, lister, whole

PROGRAMS: list[Program] = []
program = lister(PROGRAMS)
torch.manual_seed(5)


class HandLSTM(nn.Module):
    def __init__(self, inputs=3, width=4):
        super().__init__()
        self.width = width
        self.gates = nn.Linear(inputs + width, 4 * width)

    def forward(self, x):
        h = x.new_zeros(x.shape[1], self.width)
        c = torch.zeros_like(h)
        out = []
        for step in x:
            i, f, g, o = self.gates(torch.cat([step, h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            out.append(h)
        return torch.stack(out), (h, c)


class Halting(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.halt = nn.Linear(4, 1)

    def forward(self, x):
        h = torch.zeros(x.shape[0], 4)
        total = torch.zeros(x.shape[0], 1)
        out = torch.zeros_like(h)
        steps = 0
        while (total < 0.99).any() and steps < 6:
            h = self.cell(x, h)
            p = torch.sigmoid(self.halt(h))
            p = torch.minimum(p, 1 - total)
            out = out + p * h
            total = total + p
            steps += 1
        return out, steps


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)

    def forward(self, x, lengths):
        outputs = []
        for b in range(x.shape[0]):
            h = torch.zeros(4)
            for t in range(int(lengths[b])):
                h = self.cell(x[b, t], h)
            outputs.append(h)
        return torch.stack(outputs)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(7, 4), nn.Linear(8, 4)])

    def forward(self, x):
        states = [torch.zeros(x.shape[1], 4) for _ in self.layers]
        for t in range(x.shape[0]):
            y = x[t]
            for k, layer in enumerate(self.layers):
                states[k] = torch.tanh(layer(torch.cat([y, states[k]], -1)))
                y = states[k]
        return y, states


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(3, 3)
        self.experts = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        rows = []
        for i in range(x.shape[0]):
            row = x[i]
            for k, expert in enumerate(self.experts):
                if chosen[i] == k:
                    row = expert(row)
            rows.append(row)
        return torch.stack(rows), chosen


@dataclass
class Result:
    score: Tensor
    steps: int
    path: list


class Pondering(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)

    def forward(self, x, limit=5):
        path = []
        n = 0
        while n < limit:
            x = torch.tanh(self.body(x))
            path.append(x.sum())
            if x.abs().max() < 0.4:
                break
            n += 1
        return Result(x, n, path)


for _model, _types, _cases in [
    (HandLSTM(), {"x": "float32[t, b, 3]"}, [(floats(4, 2, 3),), (floats(1, 1, 3),)]),
    (Halting(), {"x": "float32[b, 3]"}, [(floats(2, 3),), (floats(1, 3, scale=9),)]),
    (Masked(), {"x": "float32[b, t, 3]", "lengths": "int64[b]"},
     [(floats(2, 4, 3), whole(4, 2)), (floats(1, 1, 3), whole(1))]),
    (Stacked(), {"x": "float32[t, b, 3]"}, [(floats(4, 2, 3),), (floats(1, 1, 3),)]),
    (Experts(), {"x": "float32[b, 3]"}, [(floats(5, 3),), (floats(1, 3),)]),
    (Pondering(), {"x": "float32[b, 3]"}, [(floats(5, 3),), (floats(1, 3, scale=0.01),)]),
]:  # fmt: skip
    PROGRAMS.append(Program(_model.eval(), _types, tuple(_cases)))


@program((floats(5, 3), floats(3, 3, seed=1)), (floats(1, 3), floats(3, 3)),
         x="float32[t, 3]", w="float32[3, 3]")  # fmt: skip
def elman(x, w):
    h = torch.zeros(3)
    for t in range(len(x)):
        h = torch.tanh(x[t] + w @ h)
    return h


@program((floats(4, 3),), (floats(1, 3),), x="float32[t, 3]")
def both_ways(x):
    ahead, back = [], []
    h = torch.zeros(3)
    for row in x:
        h = torch.tanh(row + h)
        ahead.append(h)
    h = torch.zeros(3)
    for row in reversed(x):
        h = torch.tanh(row + 0.5 * h)
        back.append(h)
    back.reverse()
    return torch.cat([torch.stack(ahead), torch.stack(back)], dim=1)


@program((floats(4, 3), floats(6, 3, seed=1)), (floats(1, 3), floats(1, 3, seed=1)),
         q="float32[n, 3]", k="float32[m, 3]")  # fmt: skip
def attention_rows(q, k):
    out = []
    for row in q:
        scores = torch.stack([(row * other).sum() for other in k])
        weights = torch.softmax(scores, 0)
        out.append((weights.unsqueeze(1) * k).sum(0))
    return torch.stack(out)


@program((floats(6, 2), 2), (floats(3, 2, seed=4), 3), x="float32[t, 2]", stride="int")
def clockwork(x, stride):
    slow = torch.zeros(2)
    fast = torch.zeros(2)
    for t, row in enumerate(x):
        fast = torch.tanh(row + fast)
        if t % stride == 0:
            slow = slow + fast
    return slow, fast


@program((floats(4, 3),), (floats(1, 3, scale=1e-3),), (floats(2, 3, shift=5),), x="float32[n, 3]")
def settle(x):
    for steps in range(1, 20):
        new = torch.tanh(x) * 0.9
        if (new - x).abs().max() < 1e-3:
            return new, steps
        x = new
    return x, -1


@program((floats(5),), (floats(1),), (floats(3, shift=-9),), x="float32[n]")
def window(x):
    queue = []
    out = []
    for v in x:
        queue.append(v)
        if len(queue) > 3:
            queue.pop(0)
        out.append(sum(queue) / len(queue))
    return torch.stack(out)
