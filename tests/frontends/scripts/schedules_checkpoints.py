"""Forecast a time series: schedulers, early stopping, checkpoints that resume, k folds."""

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Iterator, Optional

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import CosineAnnealingWarmRestarts, LambdaLR, ReduceLROnPlateau
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler


@dataclass
class Config:
    window: int = 24
    horizon: int = 4
    hidden: int = 16
    batch_size: int = 16
    epochs: int = 3
    folds: int = 2
    lr: float = 1e-2
    patience: int = 2
    schedule: str = "plateau"
    betas: tuple = (0.9, 0.99)
    tags: list = field(default_factory=list)


class Windows(Dataset):
    def __init__(self, series: np.ndarray, window: int, horizon: int):
        self.mean, self.std = series.mean(), series.std()
        self.series = ((series - self.mean) / self.std).astype(np.float32)
        self.window, self.horizon = window, horizon

    def __len__(self) -> int:
        return len(self.series) - self.window - self.horizon + 1

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        x = self.series[i : i + self.window]
        y = self.series[i + self.window : i + self.window + self.horizon]
        return {"x": torch.from_numpy(x), "y": torch.from_numpy(y)}


class Shuffled(Sampler):
    def __init__(self, indices, generator: Optional[torch.Generator] = None):
        self.indices = list(indices)
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in torch.randperm(len(self.indices), generator=self.generator):
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class Stream(IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        for i in range(self.count):
            yield torch.randn(24), torch.randn(4)


class Forecaster(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(1, cfg.hidden, 5, padding="same"), nn.GELU(), nn.Conv1d(cfg.hidden, cfg.hidden, 3, 2, 1)
        )
        self.rnn = nn.LSTM(cfg.hidden, cfg.hidden, batch_first=True)
        self.head = nn.Linear(cfg.hidden, cfg.horizon)

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv(x.unsqueeze(1)).transpose(1, 2)
        _, (h_n, _) = self.rnn(h)
        return self.head(h_n[-1])


class EarlyStopping:
    def __init__(self, patience: int, delta: float = 0.0):
        self.patience, self.delta = patience, delta
        self.best = math.inf
        self.bad = 0

    def __call__(self, value: float) -> bool:
        if value < self.best - self.delta:
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        return self.bad > self.patience


def make_scheduler(name: str, optimizer: torch.optim.Optimizer, cfg: Config):
    if name == "plateau":
        return ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=1)
    if name == "restarts":
        return CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    if name == "lambda":
        return LambdaLR(optimizer, lambda epoch: 0.95**epoch)
    raise ValueError(f"unknown schedule {name}")


class Trainer:
    def __init__(self, cfg: Config, folder: Path):
        self.cfg = cfg
        self.folder = folder
        self.model = Forecaster(cfg)
        self.optimizer = torch.optim.NAdam(self.model.parameters(), lr=cfg.lr, betas=cfg.betas)
        self.scheduler = make_scheduler(cfg.schedule, self.optimizer, cfg)
        self.loss = nn.HuberLoss()
        self.epoch = 0
        self.history: list[dict[str, Any]] = []

    @property
    def checkpoint(self) -> Path:
        return self.folder / "last.pt"

    def save(self) -> None:
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "epoch": self.epoch,
                "config": asdict(self.cfg),
            },
            self.checkpoint,
        )

    def resume(self) -> bool:
        if not self.checkpoint.exists():
            return False
        state = torch.load(self.checkpoint, map_location="cpu", weights_only=False)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.epoch = state["epoch"] + 1
        return True

    def run_epoch(self, loader: DataLoader, train: bool = True) -> float:
        self.model.train(train)
        total, count = 0.0, 0
        with torch.set_grad_enabled(train):
            for batch in loader:
                predicted = self.model(batch["x"])
                loss = self.loss(predicted, batch["y"])
                if train:
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                total += loss.item() * len(batch["x"])
                count += len(batch["x"])
        return total / max(count, 1)

    def fit(self, train_loader: DataLoader, val_loader: DataLoader) -> float:
        stopping = EarlyStopping(self.cfg.patience)
        while self.epoch < self.cfg.epochs:
            train_loss = self.run_epoch(train_loader)
            val_loss = self.run_epoch(val_loader, train=False)
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(val_loss)
            else:
                self.scheduler.step()
            lr = self.optimizer.param_groups[0]["lr"]
            self.history.append({"epoch": self.epoch, "train": train_loss, "val": val_loss, "lr": lr})
            self.save()
            if stopping(val_loss):
                break
            self.epoch += 1
        return stopping.best


def k_folds(n: int, k: int) -> Iterator[tuple[list[int], list[int]]]:
    size = n // k
    for fold in range(k):
        val = list(range(fold * size, (fold + 1) * size))
        train = [i for i in range(n) if i not in set(val)]
        yield train, val


def main() -> None:
    cfg = Config(tags=["demo"])
    t = np.arange(200)
    series = np.sin(t / 5) + 0.1 * np.random.randn(200)
    dataset = Windows(series, cfg.window, cfg.horizon)
    scores = []
    with tempfile.TemporaryDirectory() as name:
        for fold, (train_ids, val_ids) in enumerate(k_folds(len(dataset), cfg.folds)):
            folder = Path(name) / f"fold{fold}"
            folder.mkdir(parents=True, exist_ok=True)
            trainer = Trainer(cfg, folder)
            trainer.resume()
            train_loader = DataLoader(dataset, cfg.batch_size, sampler=Shuffled(train_ids))
            val_loader = DataLoader(dataset, cfg.batch_size, sampler=Shuffled(val_ids))
            scores.append(trainer.fit(train_loader, val_loader))
            print(json.dumps(trainer.history[-1]))
        (Path(name) / "scores.json").write_text(json.dumps(scores))
        print(os.listdir(name))
    for x, y in DataLoader(Stream(8), batch_size=4):
        print(nn.functional.l1_loss(trainer.model(x), y).item())
    print(f"mean {np.mean(scores):.4f} std {np.std(scores):.4f}")


if __name__ == "__main__":
    main()
