"""Small models of language learn the descriptions of data sets that scikit-learn brings.

    hagane train examples/training/words.py:make --iteration 400 --out words
    python examples/training/words.py BERT

GPT tells the next letter from those before it; BERT tells letters that are hidden, one in seven,
from all around. The frequencies of letters alone leave 3.4 nats a letter.
"""

import sys
from pathlib import Path

import numpy as np

import hagane
import hagane.functions as F
from hagane import training, zoo
from hagane.training import extensions

LENGTH = 64


def text():
    """Return the letters of the descriptions as numbers from 1 on, and how many kinds there are."""
    import sklearn.datasets

    folder = Path(sklearn.datasets.__file__).parent / "descr"
    whole = "".join(file.read_text() for file in sorted(folder.glob("*.rst")))
    kinds = {letter: number for number, letter in enumerate(sorted(set(whole)), 1)}
    return np.array([kinds[letter] for letter in whole], np.int32), len(kinds) + 1


class Next(hagane.Chain):
    """The cross entropy of the letters behind each place."""

    def __init__(self, kinds):
        super().__init__()
        with self.init_scope():
            self.network = zoo.GPT(kinds, LENGTH, 96, 3, 4)

    def forward(self, read, told, counts):
        """Return nats a letter."""
        return entropy(self.network(read), told, counts)


class Hidden(hagane.Chain):
    """The cross entropy of the letters that are hidden."""

    def __init__(self, kinds):
        super().__init__()
        with self.init_scope():
            bert = zoo.BERT(kinds, LENGTH, 96, 3, 4, dropout=0.0)
            self.network = zoo.BERTWords(bert)

    def forward(self, read, told, counts):
        """Return nats a letter."""
        return entropy(self.network(read), told, counts)


def entropy(scores, told, counts):
    """Return the mean cross entropy of the places that count."""
    each = F.softmax_cross_entropy(
        F.reshape(scores, (-1, scores.shape[2])), F.flatten(told), reduce="no"
    )
    return F.sum(each * F.flatten(counts)) / F.sum(counts)


class Rows:
    """Rows of the text: what is read, what is to be told, and the places that count.

    Args:
        letters: The text.
        hides: Whether letters are hidden, or the next ones are told.
    """

    def __init__(self, letters, hides):
        self.letters, self.hides = letters, hides
        self.drawn = np.random.RandomState(0)

    def __len__(self):
        return (len(self.letters) - 1) // LENGTH

    def __getitem__(self, number):
        start = self.drawn.randint(len(self.letters) - LENGTH)
        row = self.letters[start : start + LENGTH + 1]
        if not self.hides:
            return row[:-1], row[1:], np.ones(LENGTH, np.float32)
        hidden = self.drawn.rand(LENGTH) < 1 / 7
        hidden[self.drawn.randint(LENGTH)] = True
        return np.where(hidden, 0, row[:-1]).astype(np.int32), row[:-1], hidden.astype(np.float32)


# Of each: the model, the iterations, the step of Adam, and the nats a letter that it reaches.
MODELS = {"GPT": (Next, 600, 2e-3, 2.3), "BERT": (Hidden, 2000, 5e-4, 2.8)}


def make(iterations=None, out="words", model="GPT"):
    """Return the trainer."""
    np.random.seed(0)
    letters, kinds = text()
    build, usual, rate, _ = MODELS[model]
    chain = build(kinds)
    optimizer = hagane.optimizers.Adam(rate).setup(chain)
    rows = Rows(letters[: -len(letters) // 10], model == "BERT")
    iterator = hagane.iterators.SerialIterator(rows, 16, shuffle=False)
    step = hagane.compile(chain, optimizer)
    updater = training.StandardUpdater(iterator, optimizer, loss_func=step)
    trainer = training.Trainer(updater, (iterations or usual, "iteration"), out=out)
    trainer.extend(extensions.LogReport(trigger=(100, "iteration")))
    return trainer


def nats(chain, model, count=64):
    """Return the nats a letter of the last tenth of the text, which was not learnt."""
    letters, _ = text()
    rows = Rows(letters[-len(letters) // 10 :], model == "BERT")
    batch = hagane.dataset.concat_examples([rows[number] for number in range(count)])
    with hagane.no_backprop_mode(), hagane.using_config("train", False):
        return float(chain(*batch).array)


def main():
    model = sys.argv[1] if len(sys.argv) > 1 else "GPT"
    trainer = make(model=model)
    trainer.run()
    found = nats(trainer.updater.get_optimizer("main").target, model)
    print(f"{model}: {found:.2f} nats a letter after {trainer.elapsed_time:.0f} s")
    assert found <= MODELS[model][3], found


if __name__ == "__main__":
    main()
