"""Accuracy of models of bytes: trained models on pictures, sentences and sounds.

    python benchmarks/quantized.py [NAME …]

Each model is quantised in several forms, by hagane and by ONNX Runtime's quantiser, calibrated on
one part of the data and measured on the other. *agreement* is the share of results that are as in
fp32: the first class of a picture, the closest sentence of a sentence, the digit. *signal* is that
of the outputs over the error in decibels; *KL* the mean divergence of classes from those of fp32,
in nats. *accuracy*, where labels are known, stands beside that of fp32.

``--pictures FOLDER`` takes a labelled picture of each of ImageNet's classes, in the order of their
names, as the repository ``EliSchwartz/imagenet-sample-images`` has them: 125 calibrate, 125 others
keep accuracy, 750 are measured.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import onnx
import torch
from PIL import Image

import hagane
from hagane.ship.quantize import QuantizeOptions, Scheme, quantize

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from fetch import fetch

Feed = dict[str, np.ndarray]
# Class or neighbour of each result of a list of outputs, one for each feed.
Decide = Callable[[Sequence[np.ndarray]], np.ndarray]


@dataclass(frozen=True, slots=True)
class Task:
    """A model with data.

    Attributes:
        model: The model.
        given: Inputs that calibrate.
        held: Inputs that are measured.
        decide: What the outputs, one of each feed, say.
        labels: What they should say of those measured, where that is known.
        scored: Whether outputs are scores of classes.
        checked: Inputs, neither those that calibrate nor those that are measured, on which
            ``keep_accuracy`` measures agreement; those that calibrate if there are none.
        known: What the outputs should say of these, where that is known.
    """

    model: onnx.ModelProto
    given: list[Feed]
    held: list[Feed]
    decide: Decide
    labels: list[np.ndarray] | None = None
    scored: bool = True
    checked: list[Feed] = field(default_factory=list)
    known: list[np.ndarray] | None = None


def pictures() -> Task:
    """MobileNetV2 on crops of photographs."""
    from mobilenet_v2 import mobilenet_v2

    return _of_crops(mobilenet_v2())


def pictures_lite() -> Task:
    """EfficientNet-Lite0 on the same."""
    from trained import efficientnet_lite0

    return _of_crops(efficientnet_lite0())


# Mean and deviation of the three colours that a model of images was trained with.
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
COLOURS: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "MobileNetV2": IMAGENET,
    "EfficientNet-Lite0": ((127 / 255,) * 3, (128 / 255,) * 3),
}


def of_classes(model: onnx.ModelProto, name: str, folder: Path) -> Task:
    """Return the task of a network of images on a picture of each class, an eighth to calibrate.

    The middle of each is taken, as in the evaluation of the models by those who trained them.
    """
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpeg", ".jpg"))
    if len(paths) != 1000:
        raise SystemExit(f"{folder}: expected a picture of each of 1000 classes, got {len(paths)}")
    feeds = [{"image": _middle(path, *COLOURS[name])} for path in paths]
    held = [i for i in range(1000) if i % 4]
    classes: Decide = lambda outputs: np.array([y.argmax() for y in outputs])  # noqa: E731
    return Task(
        model,
        feeds[::8],
        [feeds[i] for i in held],
        classes,
        [np.array(held)],
        checked=feeds[4::8],
        known=[np.arange(4, 1000, 8)],
    )


def _middle(path: Path, mean: Sequence[float], deviation: Sequence[float]) -> np.ndarray:
    """Return the middle 224 × 224 of a picture whose shorter side is 256."""
    picture = Image.open(path).convert("RGB")
    scale = 256 / min(picture.size)
    sizes = [max(256, round(size * scale)) for size in picture.size]
    picture = picture.resize((sizes[0], sizes[1]), Image.Resampling.BILINEAR)
    left, top = ((size - 224) // 2 for size in sizes)
    pixels = np.asarray(picture.crop((left, top, left + 224, top + 224)), np.float32) / 255
    made = (pixels - np.float32(mean)) / np.float32(deviation)
    return np.ascontiguousarray(made.transpose(2, 0, 1)[None])


def _of_crops(model: onnx.ModelProto) -> Task:
    """Return the task of a network of images; the pictures that calibrate are others.

    The label of a crop is what fp32 says about all crops of its picture together. Other crops of
    the pictures that calibrate are those on which accuracy is kept.
    """
    from sklearn import datasets

    folder = fetch("scikit-image==0.26.0") / "skimage" / "data"
    paths = sorted(folder.glob("*.[jp][pn]g"))
    paths += sorted((Path(datasets.__file__).parent / "images").glob("*.jpg"))
    given: list[Feed] = []
    held: list[Feed] = []
    labels: list[np.ndarray] = []
    checked: list[Feed] = []
    known: list[np.ndarray] = []
    session = hagane.InferenceSession(model)
    for number, path in enumerate(paths):
        picture = Image.open(path).convert("RGB")
        if min(picture.size) < 128:
            continue
        random = np.random.default_rng(number)
        count = CROPS + 4 * (number % 2)
        crops = [{"image": _crop(picture, random)} for _ in range(count)]
        together = sum(session.run(None, feed)[0].ravel() for feed in crops)
        right = [np.array([np.argmax(together)])] * CROPS
        if number % 2:
            given += crops[:4]
            checked += crops[4:]
            known += right
        else:
            held += crops
            labels += right
    classes: Decide = lambda outputs: np.array([y.argmax() for y in outputs])  # noqa: E731
    return Task(model, given, held, classes, labels, checked=checked, known=known)


def _crop(picture: Image.Image, random: np.random.Generator) -> np.ndarray:
    """Return a part of a picture, perhaps mirrored, brighter or darker."""
    mean, deviation = np.float32([0.485, 0.456, 0.406]), np.float32([0.229, 0.224, 0.225])
    side = min(picture.size) * random.uniform(0.35, 1)
    left, top = (random.uniform(0, size - side) for size in picture.size)
    part = picture.crop((int(left), int(top), int(left + side), int(top + side)))
    pixels = np.asarray(part.resize((224, 224), Image.Resampling.BILINEAR), np.float32) / 255
    if random.random() < 0.5:
        pixels = pixels[:, ::-1]
    pixels = np.clip(pixels * random.uniform(0.8, 1.2) + random.uniform(-0.05, 0.05), 0, 1)
    made = ((pixels - mean) / deviation).astype(np.float32)
    return np.ascontiguousarray(made.transpose(2, 0, 1)[None])


SUBJECTS = (
    "A young woman",
    "The old teacher",
    "My neighbour",
    "The company",
    "A group of tourists",
)
ACTIONS = (
    "plays the guitar on a stage", "is cooking pasta in the kitchen", "bought a new electric car",
    "walks through the rain without an umbrella", "explains the theory of relativity",
    "lost a lot of money on the stock market", "is reading a book about gardening",
    "photographs wild birds near the river",
)  # fmt: skip


def sentences() -> Task:
    """MiniLM on short sentences: the closest other one of each."""
    from compare_sentences import WordPiece
    from minilm import minilm, model_folder

    words = (model_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tokenizer = WordPiece(words)
    feeds = []
    for subject in SUBJECTS:
        for action in ACTIONS:
            ids = np.array([tokenizer.encode(f"{subject} {action}.")])
            feeds.append({"input_ids": ids, "attention_mask": np.ones_like(ids)})
    order = np.random.default_rng(0).permutation(len(feeds))

    def closest(outputs: Sequence[np.ndarray]) -> np.ndarray:
        vectors = np.concatenate(outputs)
        likeness = vectors @ vectors.T
        np.fill_diagonal(likeness, -1)
        return likeness.argmax(1)

    feeds = [feeds[i] for i in order]
    return Task(minilm(), feeds[::2], feeds[1::2], closest, scored=False)


def digits() -> Task:
    """An LSTM over the rows of handwritten digits, trained here."""
    from sklearn.datasets import load_digits

    torch.manual_seed(0)
    data, labels = load_digits(return_X_y=True)
    x = torch.tensor(data.reshape(-1, 8, 8).transpose(1, 0, 2) / 16, dtype=torch.float32)
    y = torch.tensor(labels)
    net = _Reader()
    optimizer = torch.optim.Adam(net.parameters(), 5e-3)
    for _ in range(12):
        for some in torch.randperm(1200).split(50):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(x[:, some]), y[some]).backward()
            optimizer.step()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "lstm.onnx"
        torch.onnx.export(
            net.eval(), (x[:, :1],), str(path), dynamo=False, opset_version=17,
            input_names=["x"], dynamic_axes={"x": {1: "batch"}},
        )  # fmt: skip
        model = onnx.load(path)
    held = [range(i, i + 20) for i in range(1200, 1780, 20)]
    feeds = [{"x": x[:, list(some)].numpy()} for some in held]
    classes: Decide = lambda outputs: np.concatenate(outputs).argmax(1)  # noqa: E731
    right = [labels[list(some)] for some in held]
    return Task(model, feeds[::2], feeds[1::2], classes, right[1::2])


class _Reader(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = torch.nn.LSTM(8, 64)
        self.last = torch.nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(self.rows(x)[0][-1])
        return found


def digits_residual() -> Task:
    """ResNet-50 over enlarged handwritten digits, trained here: no package has trained weights."""
    from sklearn.datasets import load_digits

    from models import resnet50

    torch.manual_seed(0)
    data, labels = load_digits(return_X_y=True)
    small = torch.tensor(data.reshape(-1, 1, 8, 8) / 8 - 1, dtype=torch.float32)
    x = torch.nn.functional.interpolate(small, size=(64, 64), mode="bilinear").repeat(1, 3, 1, 1)
    y = torch.tensor(labels)
    net = resnet50().train()
    optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9, weight_decay=1e-4)
    step = hagane.compile(_loss, optimizer)
    for epoch in range(8):
        for group in optimizer.param_groups:
            group["lr"] = 0.02 * (1 - epoch / 8)
        for some in torch.randperm(1200).split(40):
            step(net, x[some], y[some])
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "resnet.onnx"
        torch.onnx.export(
            net.eval(), (x[:1],), str(path), dynamo=False, opset_version=17,
            input_names=["x"], dynamic_axes={"x": {0: "batch"}},
        )  # fmt: skip
        model = onnx.load(path)
    feeds = [{"x": x[i : i + 1].numpy()} for i in range(len(x))]
    classes: Decide = lambda outputs: np.concatenate(outputs).argmax(1)  # noqa: E731
    return Task(model, feeds[:1200:12], feeds[1200:], classes, [labels[1200:]])


def _loss(module: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(module(x), y)


TASKS: Mapping[str, Callable[[], Task]] = {
    "MobileNetV2": pictures,
    "EfficientNet-Lite0": pictures_lite,
    "ResNet-50": digits_residual,
    "MiniLM": sentences,
    "LSTM": digits,
}
WEIGHTS = Scheme(weights_only=True)
# Crops of each picture.
CROPS = 16
PLAIN = QuantizeOptions(correct_bias=False, fit_channels=False)
CHANNELS = replace(PLAIN, fit_channels=True)
IMAGES: Mapping[str, QuantizeOptions] = {
    "default": QuantizeOptions(),
    "default, 1 % at most": QuantizeOptions(keep_accuracy=0.01),
    "minmax": PLAIN,
    "entropy": replace(PLAIN, method="entropy"),
    "percentile": replace(PLAIN, method="percentile"),
    "mse": replace(PLAIN, method="mse"),
    "minmax, rounding, biases": replace(PLAIN, correct_bias=True, fit_rounding=True),
    "minmax, channels": CHANNELS,
    "percentile, channels": replace(CHANNELS, method="percentile"),
    "channels, rounding, biases": QuantizeOptions(fit_rounding=True),
    "channels, rounding, biases, 1 % at most": QuantizeOptions(
        fit_rounding=True, keep_accuracy=0.01
    ),
}
# Calibrations of ONNX Runtime's quantiser, by the form of the same method here.
PEER = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
FORMS: Mapping[str, Mapping[str, QuantizeOptions]] = {
    "MobileNetV2": IMAGES,
    "EfficientNet-Lite0": IMAGES,
    "ResNet-50": {"default": QuantizeOptions(), "minmax": PLAIN},
    "MiniLM": {
        "default": QuantizeOptions(),
        "minmax": PLAIN,
        "mse": replace(PLAIN, method="mse"),
        "smooth": replace(PLAIN, smooth=0.5),
        "smooth, biases": QuantizeOptions(smooth=0.5),
        "dynamic": QuantizeOptions(scheme=Scheme(dynamic=True)),
        "dynamic, smooth": QuantizeOptions(scheme=Scheme(dynamic=True), smooth=0.5),
        "weights": QuantizeOptions(scheme=WEIGHTS),
        "weights of 4 bits": QuantizeOptions(scheme=replace(WEIGHTS, bits=4)),
        "smooth, 1 % at most": QuantizeOptions(smooth=0.5, keep_accuracy=0.01),
    },
    "LSTM": {
        "default": QuantizeOptions(),
        "weights": QuantizeOptions(scheme=WEIGHTS),
        "dynamic": QuantizeOptions(scheme=Scheme(dynamic=True)),
    },
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is measured.

    Attributes:
        forms: Only these; all if there is none.
        peer: Whether ONNX Runtime quantises too.
        nncf: Whether NNCF does, for OpenVINO.
        save: A folder for the files.
        labels: Whether accuracy is kept by labels.
        pictures: A folder with a picture of each class.
    """

    forms: Sequence[str] = ()
    peer: bool = False
    nncf: bool = False
    save: Path | None = None
    labels: bool = False
    pictures: Path | None = None


def measure(name: str, asked: Wanted) -> None:
    """Print a table of some forms of a model, of all if none is named; save the files."""
    forms, peer, save, labels = asked.forms, asked.peer, asked.save, asked.labels
    if asked.pictures is not None and name in COLOURS:
        from trained import TRAINED

        model = TRAINED[f"{name}, trained"]()
        task = of_classes(model, name, asked.pictures)
    else:
        task = TASKS[name]()
    given, held = task.given, task.held
    expected = _outputs(task.model, held)
    checked = task.checked or given
    wanted = task.decide(_outputs(task.model, checked))
    if labels and task.known is not None:
        wanted = np.concatenate(task.known)

    def metric(run: Callable[[Feed], list[np.ndarray]]) -> float:
        return float(np.mean(task.decide([run(feed)[0] for feed in checked]) == wanted))

    print(f"{name}: {len(held)} feeds measured, {_accuracy(task, expected)}")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "m.onnx", Path(folder) / "q.onnx"
        onnx.save(task.model, source)
        if asked.nncf:
            found = _compared(task, expected, by_nncf(source, given, held, name == "MiniLM"))
            print(f"  {'NNCF, in OpenVINO':36} {found}", flush=True)
        for form, options in FORMS[name].items():
            if forms and form not in forms:
                continue
            kept = quantize(source, lambda: given, made, options, metric=metric).layers
            names = [layer.name for layer in kept if layer.precision == "fp32"]
            size = made.stat().st_size / source.stat().st_size
            found = _compared(task, expected, _outputs(onnx.load(made), held))
            note = f", in fp32: {', '.join(names)}" if names else ""
            print(f"  {form:36} {found}, size {size:.2f}{note}", flush=True)
            if save is not None:
                stem = "_".join(f"{name} {form}".replace(",", "").replace("%", "").split())
                shutil.copy(made, save / f"{stem}.onnx")
            if peer and form in PEER:
                theirs = by_peer(source, given, form)
                found = _compared(task, expected, _outputs(theirs, held))
                if save is not None:
                    onnx.save(theirs, save / f"{name}_onnxruntime_{form}.onnx")
                print(f"  {f'onnxruntime, {form}':36} {found}", flush=True)


def by_peer(source: Path, given: Sequence[Feed], form: str) -> onnx.ModelProto:
    """Return a model quantised by ONNX Runtime, in QDQ form, with scales for each channel."""
    from onnxruntime import quantization as peer
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Reader(peer.CalibrationDataReader):  # type: ignore[misc]
        left = iter(given)

        def get_next(self) -> Feed | None:
            return next(self.left, None)

    plain, made = source.with_name("plain.onnx"), source.with_name("peer.onnx")
    quant_pre_process(str(source), str(plain), skip_symbolic_shape=True)
    peer.quantize_static(
        str(plain),
        str(made),
        Reader(),
        per_channel=True,
        activation_type=peer.QuantType.QUInt8,
        weight_type=peer.QuantType.QInt8,
        calibrate_method=peer.CalibrationMethod[PEER[form]],
    )
    return onnx.load(made)


def by_nncf(
    source: Path, given: Sequence[Feed], held: Sequence[Feed], transformer: bool
) -> list[np.ndarray]:
    """Return the results of a model that NNCF quantised, in OpenVINO."""
    import nncf
    import openvino

    model = openvino.Core().read_model(source)
    kind = nncf.ModelType.TRANSFORMER if transformer else None
    made = nncf.quantize(model, nncf.Dataset(given), subset_size=len(given), model_type=kind)
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(made, "CPU", settings).create_infer_request()
    return [next(iter(request.infer(feed).values())).copy() for feed in held]


def _compared(task: Task, expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> str:
    """Return the figures of outputs beside those of fp32."""
    same = float(np.mean(task.decide(found) == task.decide(expected)))
    told = f"agreement {same:.3f}, signal {_signal(expected, found):.1f} dB"
    if task.scored:
        told += f", KL {_divergence(expected, found):.4f}"
    return f"{told}, {_accuracy(task, found)}".rstrip(", ")


def _divergence(expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    """Return the mean Kullback-Leibler divergence of classes from those of fp32, in nats."""
    p, q = (_log_softmax(np.concatenate(outputs)) for outputs in (expected, found))
    return float(np.mean(np.sum(np.exp(p) * (p - q), axis=-1)))


def _log_softmax(scores: np.ndarray) -> np.ndarray:
    left = scores.astype(np.float64) - scores.max(axis=-1, keepdims=True)
    result: np.ndarray = left - np.log(np.exp(left).sum(axis=-1, keepdims=True))
    return result


def _outputs(model: onnx.ModelProto, feeds: Sequence[Feed]) -> list[np.ndarray]:
    session = hagane.InferenceSession(model)
    return [session.run(None, feed)[0] for feed in feeds]


def _accuracy(task: Task, outputs: Sequence[np.ndarray]) -> str:
    if task.labels is None:
        return ""
    labels = np.concatenate(task.labels)
    return f"accuracy {np.mean(task.decide(outputs) == labels):.3f}, "


def _signal(expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    error = sum(float(np.sum((a - b) ** 2)) for a, b in zip(expected, found, strict=True))
    return 10 * float(np.log10(sum(float(np.sum(a**2)) for a in expected) / error))


def main() -> None:
    global CROPS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--form", action="append", default=[], help="Only this; may come again.")
    parser.add_argument("--crops", type=int, default=CROPS, help="Of each picture.")
    parser.add_argument("--labels", action="store_true", help="Keep accuracy by labels.")
    parser.add_argument("--save", type=Path, help="A folder for the files, to time them.")
    parser.add_argument("--peer", action="store_true", help="Let ONNX Runtime quantise too.")
    parser.add_argument("--nncf", action="store_true", help="Let NNCF quantise too.")
    parser.add_argument("--pictures", type=Path, help="A folder: a picture of each class.")
    given = parser.parse_args()
    CROPS = given.crops
    for name in given.names or TASKS:
        measure(
            name,
            Wanted(given.form, given.peer, given.nncf, given.save, given.labels, given.pictures),
        )


if __name__ == "__main__":
    main()
