"""FT-transformer for a table of numbers and categories, with early stopping and a checkpoint."""

import argparse
import os
import tempfile
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Table(Dataset):
    def __init__(self, n=120, seed=0):
        rng = np.random.default_rng(seed)
        self.num = rng.normal(size=(n, 5)).astype(np.float32)
        self.cat = np.stack([rng.integers(0, c, n) for c in (3, 4, 7)], axis=1)
        self.y = (self.num[:, 0] + (self.cat[:, 1] == 2) > 0.3).astype(np.float32)
        self.num = (self.num - self.num.mean(axis=0)) / self.num.std(axis=0)

    def __len__(self):
        return self.y.shape[0]

    def __getitem__(self, i):
        return {"num": self.num[i], "cat": torch.from_numpy(self.cat[i]), "y": self.y[i]}


class Tokenizer(nn.Module):
    def __init__(self, n_num, cards, d):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_num + 1, d))
        self.bias = nn.Parameter(torch.empty(n_num + len(cards), d))
        offsets = torch.tensor([0] + list(cards[:-1])).cumsum(0)
        self.register_buffer("offsets", offsets)
        self.emb = nn.Embedding(sum(cards), d)
        for p in (self.weight, self.bias):
            nn.init.kaiming_uniform_(p, a=5**0.5)

    def forward(self, num, cat):
        ones = torch.ones(num.shape[0], 1, device=num.device)
        x = self.weight[None] * torch.cat([ones, num], dim=1)[:, :, None]
        x = torch.cat([x, self.emb(cat + self.offsets[None])], dim=1)
        bias = torch.cat([torch.zeros(1, self.bias.shape[1]), self.bias])
        return x + bias[None]


class Model(nn.Module):
    def __init__(self, n_num=5, cards=(3, 4, 7), d=24, heads=4, layers=2, p=0.1):
        super().__init__()
        self.tok = Tokenizer(n_num, cards, d)
        self.attn = nn.ModuleList(
            [nn.MultiheadAttention(d, heads, dropout=p, batch_first=True) for _ in range(layers)]
        )
        self.ff = nn.ModuleList(
            [
                nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(p), nn.Linear(2 * d, d))
                for _ in range(layers)
            ]
        )
        self.n1 = nn.ModuleList([nn.LayerNorm(d) for _ in range(layers)])
        self.n2 = nn.ModuleList([nn.LayerNorm(d) for _ in range(layers)])
        self.head = nn.Sequential(nn.LayerNorm(d), nn.ReLU(), nn.Linear(d, 1))

    def forward(self, num, cat):
        x = self.tok(num, cat)
        for i, (attn, ff) in enumerate(zip(self.attn, self.ff)):
            h = self.n1[i](x)
            a, _ = attn(h, h, h, need_weights=False)
            x = x + a
            x = x + ff(self.n2[i](x))
        return self.head(x[:, 0]).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience, path):
        self.best, self.bad, self.patience, self.path = float("inf"), 0, patience, path

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.bad = value, 0
            torch.save({"model": model.state_dict(), "best": value}, self.path)
        else:
            self.bad += 1
        return self.bad >= self.patience


def evaluate(model, loader):
    model.eval()
    preds, ys = [], []
    with torch.no_grad():
        for batch in loader:
            preds.append(torch.sigmoid(model(batch["num"], batch["cat"])).cpu().numpy())
            ys.append(batch["y"].numpy())
    preds, ys = np.concatenate(preds), np.concatenate(ys)
    loss = -np.mean(ys * np.log(preds + 1e-7) + (1 - ys) * np.log(1 - preds + 1e-7))
    return float(loss), float(((preds > 0.5) == ys).mean())


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(0)
    train, val = random_split(Table(), [100, 20])
    loaders = {
        "train": DataLoader(train, args.batch_size, shuffle=True),
        "val": DataLoader(val, 64),
    }
    model = Model()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))
    with tempfile.TemporaryDirectory() as folder:
        stop = EarlyStopping(2, os.path.join(folder, "best.pt"))
        for epoch in range(args.epochs):
            model.train()
            running = 0.0
            for batch in loaders["train"]:
                opt.zero_grad()
                logits = model(batch["num"], batch["cat"])
                loss = criterion(logits, batch["y"])
                loss.backward()
                opt.step()
                running += loss.item() * len(batch["y"])
            value, acc = evaluate(model, loaders["val"])
            print(f"{epoch}: {running / len(train):.3f} {value:.3f} {acc:.2f}")
            if stop(value, model):
                break
        model.load_state_dict(torch.load(stop.path)["model"])
    print(evaluate(model, loaders["val"]))


if __name__ == "__main__":
    main()
