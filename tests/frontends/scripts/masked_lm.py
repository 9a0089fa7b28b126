from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torch.nn.utils.rnn import pad_sequence

PAD, CLS, SEP, MASK, UNK = range(5)
corpus = """the cat sat on the mat
a dog ran in the park and barked
birds fly over the sea
the sea is blue""".splitlines()


class Vocab:
    def __init__(self, lines):
        words = sorted({w for line in lines for w in line.split()})
        self.itos = ["<pad>", "<cls>", "<sep>", "<mask>", "<unk>"] + words
        self.stoi = {w: i for i, w in enumerate(self.itos)}

    def __len__(self):
        return len(self.itos)

    def encode(self, line):
        return torch.tensor([CLS] + [self.stoi.get(w, UNK) for w in line.split()] + [SEP])


@dataclass
class BertConfig:
    vocab_size: int
    hidden: int = 32
    heads: int = 4
    layers: int = 2
    max_len: int = 16
    dropout: float = 0.1
    mlm_prob: float = 0.3


class SelfAttention(nn.Module):
    def __init__(self, cfg: BertConfig):
        super().__init__()
        self.h, self.d = cfg.heads, cfg.hidden // cfg.heads
        self.query, self.key, self.value, self.dense = (nn.Linear(cfg.hidden, cfg.hidden) for _ in range(4))
        self.norm = nn.LayerNorm(cfg.hidden, eps=1e-12)
        self.drop = nn.Dropout(cfg.dropout)

    def transpose_for_scores(self, x):
        new_shape = x.size()[:-1] + (self.h, self.d)
        return x.view(*new_shape).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = (self.transpose_for_scores(f(x)) for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / self.d**0.5
        scores = scores + mask
        ctx = torch.matmul(self.drop(scores.softmax(-1)), v).permute(0, 2, 1, 3).contiguous()
        ctx = ctx.view(*ctx.size()[:-2], self.h * self.d)
        return self.norm(x + self.drop(self.dense(ctx)))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attn = SelfAttention(cfg)
        self.ff = nn.Sequential(nn.Linear(cfg.hidden, 4 * cfg.hidden), nn.GELU(), nn.Linear(4 * cfg.hidden, cfg.hidden), nn.Dropout(cfg.dropout))
        self.norm = nn.LayerNorm(cfg.hidden)

    def forward(self, x, mask):
        x = self.attn(x, mask)
        return self.norm(x + self.ff(x))


class BertForMaskedLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.tok = nn.Embedding(cfg.vocab_size, cfg.hidden, padding_idx=PAD)
        self.pos = nn.Embedding(cfg.max_len, cfg.hidden)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.decoder = nn.Linear(cfg.hidden, cfg.vocab_size, bias=False)
        self.decoder.weight = self.tok.weight
        self.bias = nn.Parameter(torch.zeros(cfg.vocab_size))
        self.register_buffer("position_ids", torch.arange(cfg.max_len).expand((1, -1)))
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            m.weight.data.normal_(mean=0.0, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            m.bias.data.zero_()

    def forward(self, ids, attention_mask, labels=None):
        b, t = ids.shape
        x = self.tok(ids) + self.pos(self.position_ids[:, :t])
        ext = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, ext)
        logits = self.decoder(x) + self.bias
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.view(-1, self.cfg.vocab_size), labels.view(-1), ignore_index=-100)
        return (loss, logits) if loss is not None else (logits,)


class MLMCollator:
    def __init__(self, vocab, p):
        self.vocab, self.p = vocab, p

    def __call__(self, batch):
        ids = pad_sequence(batch, batch_first=True, padding_value=PAD)
        labels = ids.clone()
        prob = torch.full(labels.shape, self.p)
        special = (ids == PAD) | (ids == CLS) | (ids == SEP)
        prob.masked_fill_(special, value=0.0)
        masked = torch.bernoulli(prob).bool()
        labels[~masked] = -100
        replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & masked
        ids[replaced] = MASK
        rand = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & masked & ~replaced
        words = torch.randint(len(self.vocab), labels.shape, dtype=torch.long)
        ids[rand] = words[rand]
        return {"ids": ids, "attention_mask": (ids != PAD).long(), "labels": labels}


def main():
    torch.manual_seed(1)
    vocab = Vocab(corpus)
    cfg = BertConfig(len(vocab))
    print(json.dumps(asdict(cfg), indent=2))
    loader = DataLoader([vocab.encode(line) for line in corpus], batch_size=2, collate_fn=MLMCollator(vocab, cfg.mlm_prob))
    model = BertForMaskedLM(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=2)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, decay], milestones=[2])
    for epoch in range(2):
        for batch in loader:
            loss, logits = model(**batch)
            opt.zero_grad()
            loss.backward()
            total = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
        print(epoch, loss.item(), float(total), sched.get_last_lr()[0])
    model.eval()
    (logits,) = model(batch["ids"], batch["attention_mask"])
    print([[vocab.itos[i] for i in row] for row in logits.argmax(-1).tolist()])


main()
