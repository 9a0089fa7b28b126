"""Seq2seq with attention learns to write digits in the opposite order.

    hagane train examples/training/reversal.py:make --epoch 20 --out reversal
    python examples/training/reversal.py

Rows of eight digits, drawn at random; of rows that it has not seen, nineteen in twenty come out
right as a whole.
"""

import numpy as np

import hagane
import hagane.functions as F
from hagane import training, zoo
from hagane.training import extensions

# The token before the first digit of a target.
START = 10


def rows(count, seed, length=8):
    """Return sources, the tokens before each target's, and targets, (count, length) each."""
    source = np.random.RandomState(seed).randint(0, 10, (count, length)).astype(np.int32)
    target = source[:, ::-1].copy()
    before = np.concatenate([np.full((count, 1), START, np.int32), target[:, :-1]], axis=1)
    return source, before, target


def loss(model, source, before, target):
    """Return the cross entropy of the next tokens."""
    scores = model(source, before)
    return F.softmax_cross_entropy(F.reshape(scores, (-1, scores.shape[2])), F.flatten(target))


def make(epochs=20, out="reversal", units=64, count=4000, length=8):
    """Return the trainer."""
    np.random.seed(0)
    model = zoo.Seq2Seq(10, START + 1, units, layers=1, dropout=0.0)
    optimizer = hagane.optimizers.Adam(4e-3).setup(model)
    optimizer.add_hook(hagane.optimizer_hooks.GradientClipping(1.0))
    data = hagane.datasets.TupleDataset(*rows(count, 0, length))
    iterator = hagane.iterators.SerialIterator(data, 100)
    step = hagane.compile(loss, optimizer)

    def update(*batch):
        hagane.report({"main/loss": float(step(model, *batch).array)})

    update.updates = True  # by itself, as a compiled step
    updater = training.StandardUpdater(iterator, optimizer, loss_func=update)
    trainer = training.Trainer(updater, (epochs, "epoch"), out=out)
    trainer.extend(extensions.LogReport())
    return trainer


def accuracy(model, count=500, length=8):
    """Return the share of new rows that are written right as a whole."""
    source, _, target = rows(count, 1, length)
    found = model.translate(source, START, length)
    return float((found == target).all(axis=1).mean())


def main():
    trainer = make()
    trainer.run()
    found = accuracy(trainer.updater.get_optimizer("main").target)
    print(f"{found:.3f} of the rows after {trainer.elapsed_time:.0f} s")
    assert found >= 0.95, found


if __name__ == "__main__":
    main()
