"""Train a small PyTorch model on batches from hagane's MultiprocessIterator.

    pip install 'hagane[torch]'
    python examples/data/train_pytorch.py

Workers make the batches as stacked arrays in shared memory; ``torch.from_numpy`` takes them
without copying. The run is saved in the middle of an epoch and taken up again, with another
number of workers, to the same losses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hagane.training import measure
from hagane.training.iterators import MultiprocessIterator, sample_random


class NoisyRings:
    """Points on three rings, with noise that is new in every epoch and the same in every run."""

    def __len__(self) -> int:
        return 3000

    def __getitem__(self, index: int) -> tuple[np.ndarray, int]:
        label = index % 3
        angle = index * 2.399963
        point = (1 + label) * np.array([np.cos(angle), np.sin(angle)])
        return (point + sample_random().normal(0, 0.1, 2)).astype(np.float32), label


def make_iterator(workers: int) -> MultiprocessIterator:
    return MultiprocessIterator(
        NoisyRings(), 100, n_processes=workers, n_prefetch=2, seed=0, collate="stack"
    )


def train(iterator: MultiprocessIterator, model: Any, optimizer: Any, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        points, labels = iterator.next()
        loss = torch.nn.functional.cross_entropy(
            model(torch.from_numpy(points)), torch.from_numpy(labels)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with make_iterator(workers=2) as iterator:
        print(measure(iterator, lambda batch: model(torch.from_numpy(batch[0])), batches=20))
        losses = train(iterator, model, optimizer, 100)
        print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, at epoch {iterator.epoch_detail:.2f}")
        saved = iterator.state_dict(), [value.clone() for value in model.state_dict().values()]
        expected = train(iterator, model, optimizer, 10)

    for value, kept in zip(model.state_dict().values(), saved[1], strict=True):
        value.copy_(kept)
    with make_iterator(workers=1) as resumed:
        resumed.load_state_dict(saved[0])
        print("resumed exactly:", train(resumed, model, optimizer, 10) == expected)


if __name__ == "__main__":
    main()
