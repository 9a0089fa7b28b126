"""Decoders: greedy, beams, sampling without chance, constraints."""

# mypy: ignore-errors

import torch
import torch.nn.functional as F
from torch import nn

from .program import Program, floats, lister, whole

PROGRAMS: list[Program] = []
program = lister(PROGRAMS)
torch.manual_seed(3)


class Step(nn.Module):
    def __init__(self, size=6, width=5):
        super().__init__()
        self.embed = nn.Embedding(size, width)
        self.cell = nn.Linear(2 * width, width)
        self.out = nn.Linear(width, size)

    def forward(self, token, h):
        h = torch.tanh(self.cell(torch.cat([self.embed(token), h], dim=-1)))
        return self.out(h), h


STEP = Step().eval()
END = 2


@program(floats(1, 5), floats(1, 5, seed=1), floats(1, 5, seed=55, shift=-3), h="float32[1, 5]")
def greedy(h):
    token = torch.tensor([1])
    out = []
    for _ in range(10):
        scores, h = STEP(token, h)
        token = scores.argmax(dim=-1)
        if token.item() == END:
            break
        out.append(token)
    return torch.stack(out) if out else torch.zeros(0, 1, dtype=torch.int64)


@program(floats(1, 5), floats(1, 5, seed=1), floats(1, 5, seed=9, scale=4), h="float32[1, 5]")
def greedy_ids(h):
    ids = [1]
    while ids[-1] != END and len(ids) < 8:
        scores, h = STEP(torch.tensor([ids[-1]]), h)
        ids.append(int(scores[0].argmax()))
    return ids


@program(floats(3, 5), floats(1, 5, seed=1), floats(1, 5, seed=55, shift=-3), h="float32[b, 5]")
def greedy_batch(h):
    token = torch.ones(h.shape[0], dtype=torch.int64)
    done = torch.zeros(h.shape[0], dtype=torch.bool)
    out = token.unsqueeze(1)
    for _ in range(7):
        scores, h = STEP(token, h)
        token = torch.where(done, torch.full_like(token, END), scores.argmax(-1))
        out = torch.cat([out, token.unsqueeze(1)], dim=1)
        done = done | (token == END)
        if done.all():
            break
    return out, done


@program(floats(1, 5), floats(1, 5, seed=4), h="float32[1, 5]")
def beam_search(h):
    width = 3
    scores, h = STEP(torch.tensor([1]), h)
    best, token = F.log_softmax(scores[0], -1).topk(width)
    state = h.expand(width, 5)
    sequences = token.unsqueeze(1)
    for _ in range(4):
        scores, state = STEP(token, state)
        every = best.unsqueeze(1) + F.log_softmax(scores, -1)
        best, flat = every.reshape(-1).topk(width)
        beam = flat // 6
        token = flat % 6
        sequences = torch.cat([sequences[beam], token.unsqueeze(1)], 1)
        state = state[beam]
        if (token == token[0]).all() or best[0] < -4:
            break
    return sequences, best


@program(floats(1, 5), floats(1, 5, seed=4), floats(1, 5, seed=5, scale=5), h="float32[1, 5]")
def beam_lists(h):
    beams = [(0.0, [1], h)]
    for _ in range(3):
        candidates = []
        for score, ids, state in beams:
            logits, new = STEP(torch.tensor([ids[-1]]), state)
            values, tokens = F.log_softmax(logits[0], -1).topk(2)
            for k in range(2):
                candidates.append((score + values[k].item(), ids + [tokens[k].item()], new))
        candidates.sort(key=lambda c: c[0], reverse=True)
        beams = candidates[:2]
    return beams[0][1], beams[0][0]


@program((floats(1, 5), 0.3), (floats(1, 5, seed=1), 0.9), (floats(1, 5, seed=2), 2.0),
         h="float32[1, 5]", mass="float")  # fmt: skip
def nucleus(h, mass):
    scores, _ = STEP(torch.tensor([1]), h)
    p, order = torch.softmax(scores[0], -1).sort(descending=True)
    total, kept = 0.0, 0
    while kept < 6 and total < mass:
        total += p[kept].item()
        kept += 1
    return order[:kept], kept


@program((floats(4, 6), whole(1, 2)), (floats(1, 6), whole(3)),
         (floats(3, 6, seed=3), whole(0, 5, 5)),
         logits="float32[t, 6]", banned="int64[k]")  # fmt: skip
def constrained(logits, banned):
    ids = []
    for row in logits:
        row = row.clone()
        for b in banned:
            row[b] = -1e9
        if ids:
            row[ids[-1]] = -1e9
        ids.append(int(row.argmax()))
    return torch.tensor(ids)


@program(floats(6, 4), floats(1, 4), floats(9, 4, seed=8), logits="float32[t, 4]")
def ctc_collapse(logits):
    best = logits.argmax(-1)
    out = []
    previous = 0
    for token in best:
        t = int(token)
        if t != 0 and t != previous:
            out.append(t)
        previous = t
    return out, len(out)


@program((floats(1, 5), whole(1, 4, 3)), (floats(1, 5, seed=2), whole(1)),
         (floats(1, 5, seed=28, scale=10, shift=3), whole(1, 4, 3)),
         h="float32[1, 5]", prompt="int64[n]")  # fmt: skip
def prompted(h, prompt):
    scores = torch.zeros(1, 6)
    for token in prompt:
        scores, h = STEP(token.unsqueeze(0), h)
    made = []
    while len(made) < 5:
        token = scores.argmax(-1)
        made.append(token)
        if token == END:
            return torch.cat(made), True
        scores, h = STEP(token, h)
    return torch.cat(made), False


@program((floats(5, 6), 5), (floats(5, 6, seed=8), 1), draft="float32[t, 6]", k="int")
def speculative(draft, k):
    target = torch.roll(draft, k, 0)
    accepted = 0
    for i in range(draft.shape[0]):
        if draft[i].argmax() != target[i].argmax():
            break
        accepted += 1
    else:
        accepted = -1
    return accepted, target[: accepted + 1]
