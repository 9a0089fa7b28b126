"""Run Chainer's own example programs, unchanged, on Chainer and on hagane, and compare.

    python tests/outside/chainer_examples.py FOLDER [--chainer PYTHON] [--keep FOLDER] [NAME ...]

``FOLDER`` holds a source tree of Chainer 7.8.1. Each program starts from the same seeds and data
(``example_data.py``), in a directory of its own, with ``hagane chainer`` under this Python and
under the Python of ``--chainer``, which has Chainer 7.8.1. Both need matplotlib, Pillow, h5py,
six, nltk and progressbar2; this one needs mlxtend too. Compared are the values of every log that
the trainer wrote, and the numbers on standard output elsewhere; all are listed with their greatest
relative difference. Status 1 if a program fails on either, or if its first values differ by more
than 1e-3.
Without ``--chainer``, programs have to run to their end.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.outside.example_data import write_local, write_published, write_stubs  # noqa: E402

SECONDS = 900
FIRST = 1e-3
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]\d+)?(?![\w.])|\bnan\b")
TIMED = re.compile(r"sec|elapsed|time|it/s|iters/sec|s/it|\d:\d\d")

COUNTS = ("elapsed_time", "epoch", "iteration")

# Name: folder of the program, then its steps, one after the other in one directory.
EXAMPLES = {
    "mnist": "mnist; train_mnist.py -e 3 -u 50; inference.py -s result/snapshot_iter_30 -u 50",
    "mnist resumed": "mnist; train_mnist.py -e 1 -u 50;"
    " train_mnist.py -e 3 -u 50 -r result/snapshot_iter_10",
    "mnist autoload": "mnist; train_mnist.py -e 1 -u 50; train_mnist.py -e 3 -u 50 --autoload",
    "mnist custom loop": "mnist; train_mnist_custom_loop.py -e 3 -u 50",
    "mnist data parallel": "mnist; train_mnist_data_parallel.py -e 3 -u 50 -d -1 -D -1",
    # In float32 rounding turns rectifiers behind the norms of few values.
    "cifar": "cifar; CHAINER_DTYPE=float64 train_cifar.py -e 2 -b 64 -l 0.01",
    "cifar 100": "cifar; CHAINER_DTYPE=float64 train_cifar.py -e 1 -b 64 --dataset cifar100",
    "cifar custom loop": "cifar; CHAINER_DTYPE=float64 train_cifar_custom_loop.py -e 1 --test",
    "ptb": "ptb; train_ptb.py -e 40 -u 16 -l 5 --test;"
    " gentxt.py -m model.npz -p the -u 16 --length 10",
    "ptb custom loop": "ptb; train_ptb_custom_loop.py -e 40 -u 16 -l 5 --test",
    "seq2seq": "seq2seq; seq2seq.py source_train.txt target_train.txt vocabulary.txt"
    " vocabulary.txt --validation-source source_test.txt --validation-target target_test.txt"
    " -e 8 -u 32 -l 2 -b 32 --log-interval 10 --validation-interval 20",
    "seq2seq dataset api": "seq2seq; seq2seq.py source_train.txt target_train.txt vocabulary.txt"
    " vocabulary.txt -e 4 -u 32 -l 1 -b 32 --log-interval 5 --use-dataset-api",
    "seq2seq preprocess": "seq2seq; wmt_preprocess.py source_train.txt words.txt"
    " --vocab-file out.txt --lower",
    **{
        f"text classification {kind}": f"text_classification; train_text_classifier.py -e 3 -u 20"
        f" --dataset TREC --model {kind}; < run_text_classifier.py --model-setup result/args.json"
        for kind in ("cnn", "rnn", "bow")
    },
    "text classification characters": "text_classification; train_text_classifier.py -e 1 -u 8"
    " --dataset TREC --model cnn --char-based",
    "sentiment": "sentiment; train_sentiment.py -e 4 -p 2 -u 10",
    "sentiment minibatch": "sentiment; train_recursive_minibatch.py -e 4 -p 2 -u 10",
    **{
        f"word2vec {model} {out}": f"word2vec; train_word2vec.py -e 2 -u 16 -b 100 -m {model}"
        f" -o {out}; < search.py"
        for model in ("skipgram", "cbow")
        for out in ("hsm", "ns", "original")
    },
    "pos": "pos; postagging.py -e 2 -b 6",
    "vae": "vae; train_vae.py -e 2 --dim-h 32 -z 4",
    "vae binary": "vae; train_vae.py -e 2 --dim-h 32 -z 4 -k 3 --beta 0.5 --binary",
    "dcgan": "dcgan; train_dcgan.py -e 1 -b 32 --display_interval 1 --snapshot_interval 4",
    "dcgan images": "dcgan; train_dcgan.py -e 1 -b 4 -i small --display_interval 1",
    "memnn": "memnn; train_memnn.py qa_train.txt qa_test.txt -e 3 -b 20;"
    " test_memnn.py model qa_test.txt",
    "memnn positions": "memnn; train_memnn.py qa_train.txt qa_test.txt -e 3 -b 20"
    " --sentence-repr pe",
    "dqn": "reinforcement_learning; dqn_cartpole.py -e 15 -u 16 -b 16 --replay-start-size 100",
    "double dqn": "reinforcement_learning; dqn_cartpole.py -e 15 -u 16 -b 16"
    " --replay-start-size 100 --target-type double_dqn",
    "ddpg": "reinforcement_learning; ddpg_pendulum.py -e 3 -u 16 -b 16 --replay-start-size 100",
    "wavenet": "wavenet; train.py -i VCTK -e 2 -b 2 -l 1024 --n_loop 1 --n_layer 3"
    " --a_channels 32 --r_channels 8 --s_channels 16 --display_interval 1 --snapshot_interval 4;"
    " generate.py -i VCTK/wav48/p0/0.wav -m result/snapshot_iter_4 --n_loop 1 --n_layer 3"
    " --a_channels 32 --r_channels 8 --s_channels 16",
    "glance": "glance; glance.py",
    "serialization": "serialization; save.py; load.py",
    "imagenet alex": "imagenet; compute_mean.py images.txt -R images -o mean.npy;"
    " train_imagenet.py images.txt images.txt -R images -a alex -B 2 -b 4 -E 1 -j 1 --test",
    **{
        f"imagenet {arch}": f"imagenet; train_imagenet.py images.txt images.txt -R images -a {arch}"
        " -B 2 -b 4 -E 1 -j 1 --test"
        for arch in ("nin", "googlenet", "googlenetbn", "resnet50")
    },
    "static graph mnist": "static_graph_optimizations/mnist; train_mnist.py -e 2 -u 50",
}


@dataclass(frozen=True)
class Engine:
    """A way to run a script: the start of the command, and what it has in its environment."""

    command: tuple[str, ...]
    stubs: Path
    path: tuple[str, ...] = ()


def run(engine: Engine, example: str, source: Path, place: Path, data: Path) -> str | None:
    """Run an example's steps in a copy of its folder; return what went wrong, None if nothing."""
    folder, *steps = (part.strip() for part in example.split(";"))
    shutil.copytree(source / "examples" / folder, place)
    shutil.copytree(data / "local", place, dirs_exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(engine.stubs), *engine.path)),
        "PYTHONHASHSEED": "0",
        "CHAINER_DATASET_ROOT": str(data / "published"),
        "NLTK_DATA": str(place / "nltk_data"),
        "MPLBACKEND": "Agg",
    }
    for i, step in enumerate(steps):
        words = step.removeprefix("<").split()
        named = dict(word.split("=") for word in words if word.startswith("CHAINER_"))
        words = words[len(named) :]
        try:
            done = subprocess.run(
                [*engine.command, *words], cwd=place, env=environment | named, text=True,
                input="the cat\nwhere is the dog\n", capture_output=True, timeout=SECONDS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"{words[0]}: not done after {SECONDS} s"
        (place / f"output{i}.txt").write_text(done.stdout)
        (place / f"errors{i}.txt").write_text(done.stderr)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            return f"{words[0]}: status {done.returncode}: {' '.join(lines[-6:])}"
    return None


def values(place: Path) -> list[tuple[str, float]]:
    """Return the values that a run left, with their names, in order."""
    found = []
    for path in sorted(place.rglob("log")):
        for entry in json.loads(path.read_text()):
            for key in sorted(entry):
                if key not in COUNTS and isinstance(entry[key], (int, float)):
                    found.append((f"{key} at {entry.get('iteration')}", float(entry[key])))
    for path in sorted(place.glob("output*.txt")):
        for line in re.split(r"[\r\n]|\x1b\[\w", path.read_text()):
            if found and path.name == "output0.txt":
                break  # the log has them, in more digits
            if not TIMED.search(line):
                numbers = NUMBER.findall(line)
                found += [(f"{path.stem}: {line.strip()[:40]}", float(one)) for one in numbers]
    return found


def difference(ours: list[tuple[str, float]], theirs: list[tuple[str, float]]) -> list[float]:
    """Return the relative difference of each value; infinite where names or counts differ."""
    if [name.split(":")[0] for name, _ in ours] != [name.split(":")[0] for name, _ in theirs]:
        return [float("inf")]
    return [
        abs(a - b) / max(abs(b), 1e-2) if a == a and b == b else float("inf") * (a == a or b == b)
        for (_, a), (_, b) in zip(ours, theirs, strict=True)
    ]


def losses(found: list[tuple[str, float]]) -> str:
    """Return the first and the last loss of a run."""
    rows = [value for name, value in found if "loss" in name and "validation" not in name]
    return f"{rows[0]:.5g} to {rows[-1]:.5g}" if rows else "no loss"


def main() -> int:
    """Run the examples, print a line for each; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chainer", help="the Python of an environment with Chainer 7.8.1")
    parser.add_argument("--keep", type=Path, help="a folder for what the programs leave")
    parser.add_argument("names", nargs="*", help="starts of names of examples")
    options = parser.parse_intermixed_args()
    chosen = {
        name: example
        for name, example in EXAMPLES.items()
        if not options.names or any(name.startswith(one) for one in options.names)
    }
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        base = (options.keep or Path(temporary)).resolve()
        data = base / "data"
        (data / "local").mkdir(parents=True, exist_ok=True)
        write_published(data / "published")
        write_local(data / "local")
        write_stubs(base / "stubs", old=False)
        write_stubs(base / "old_stubs", old=True)
        hagane = Engine(
            (sys.executable, "-m", "hagane", "chainer"), base / "stubs", (str(ROOT / "src"),)
        )
        chainer = options.chainer and Engine((options.chainer,), base / "old_stubs")
        for name, example in chosen.items():
            places = [base / kind / name.replace(" ", "_") for kind in ("hagane", "chainer")]
            for place in places:
                shutil.rmtree(place, ignore_errors=True)
            wrong = run(hagane, example, options.folder.resolve(), places[0], data)
            ours = values(places[0])
            line = f"{name}: loss {losses(ours)}"
            if wrong is None and chainer:
                other = run(chainer, example, options.folder.resolve(), places[1], data)
                theirs = values(places[1])
                gaps = difference(ours, theirs) or [0.0]
                line += f"; Chainer {losses(theirs)}; {len(ours)} values, relative difference"
                line += f" {gaps[0]:.1e} at first, {max(gaps):.1e} at most"
                if other is not None:
                    wrong = f"Chainer's own run: {other}"
                elif not max(gaps[: max(1, len(gaps) // 4)]) < FIRST:
                    wrong = "other values than Chainer's"
            failed += wrong is not None
            print(f"{line}; FAILED: {wrong}" if wrong else line, flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} as with Chainer")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
