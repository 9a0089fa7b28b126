"""Run packages that import ``onnxruntime``, unchanged, on it and on hagane in its place.

    pip install --no-deps rapidocr-onnxruntime silero-vad magika basic-pitch insightface fastembed \
        optimum optimum-onnx sentence-transformers faster-whisper
    python tests/outside/packages.py [NAME ...]

Each package is used as its README shows, on inputs that are made here: drawn text, tones, source
code, models with random weights. What it returns with hagane is compared with what it returns with
ONNX Runtime. A package that is not installed is named. Prints a table; status 1 if one differs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).resolve().parents[2] / "src"
# Numbers of two engines agree to this, relative to the largest.
AGREEMENT = 1e-3


SENTENCES = ["the model runs fast on this machine", "a model runs slowly and that one"]


def page(folder: Path) -> str:
    """Draw a page of text."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (640, 240), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(36)
    for line, text in enumerate(("Invoice 2024-117", "Total: 1,250.00 EUR", "Thank you")):
        draw.text((30, 20 + 70 * line), text, fill="black", font=font)
    path = folder / "page.png"
    image.save(path)
    return str(path)


def tones(rate: int, seconds: float) -> np.ndarray:
    """Return notes of the C major triad, one after another, over noise."""
    time_ = np.arange(int(rate * seconds)) / rate
    pitch = np.array([261.63, 329.63, 392.0])[np.minimum((time_ / seconds * 3).astype(int), 2)]
    swell = 0.5 + 0.5 * np.sin(2 * np.pi * 3 * time_)
    noise = np.random.default_rng(0).standard_normal(len(time_))
    return (0.4 * swell * np.sin(2 * np.pi * pitch * time_) + 0.01 * noise).astype(np.float32)


def rapidocr_onnxruntime(folder: Path) -> Any:
    from rapidocr_onnxruntime import RapidOCR

    engine = RapidOCR()
    result, _ = engine(page(folder))
    return [[box, text, round(float(score), 3)] for box, text, score in result]


def silero_vad(folder: Path) -> Any:
    import torch
    from silero_vad import get_speech_timestamps, load_silero_vad

    model = load_silero_vad(onnx=True)
    wave = torch.from_numpy(tones(16000, 3.0))
    stamps = get_speech_timestamps(wave, model, return_seconds=True)
    model.reset_states()
    chances = [float(model(wave[i : i + 512], 16000)) for i in range(0, 16000, 512) if i < 15872]
    return {"stamps": stamps, "chances": chances}


def magika(folder: Path) -> Any:
    from magika import Magika

    reader = Magika()
    texts = (
        b"function log(message) { console.log(message); }\nlog('hello');\n" * 4,
        b"# Title\n\nSome *text* in [Markdown](https://example.com).\n" * 4,
        b"import os\n\ndef main():\n    print(os.getcwd())\n" * 4,
    )
    found = [reader.identify_bytes(text) for text in texts]
    return [[one.output.label, round(float(one.score), 3)] for one in found]


def basic_pitch(folder: Path) -> Any:
    import soundfile
    from basic_pitch.inference import predict

    path = folder / "tones.wav"
    soundfile.write(path, tones(22050, 3.0), 22050)
    output, _midi, notes = predict(str(path))
    sums = {name: [float(v.sum()), float(v.max())] for name, v in sorted(output.items())}
    return {"output": sums, "notes": sorted([round(n[0], 2), int(n[2])] for n in notes)}


def _face_models(folder: Path) -> tuple[str, str]:
    """Make a detector and a recogniser of faces with random weights."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weights: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def weight(*shape: int) -> str:
        name = f"w{len(weights)}"
        value = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]) or 1)
        weights.append(numpy_helper.from_array(value.astype(np.float32), name))
        return name

    def node(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def conv(x: str, before: int, after: int, stride: int) -> str:
        return node(
            "Conv", x, weight(after, before, 3, 3), strides=[stride, stride], pads=[1, 1, 1, 1]
        )

    def save(name: str, input_: Any, outputs: list[Any], graph: str) -> str:
        made = helper.make_graph(nodes, graph, [input_], outputs, weights)
        imports = [helper.make_opsetid("", 17)]
        onnx.save(helper.make_model(made, opset_imports=imports, ir_version=8), folder / name)
        return str(folder / name)

    x, width = "input.1", 3
    levels = []
    for after in (8, 16, 16, 16, 16):
        x = node("Relu", conv(x, width, after, 2))
        levels.append(x)
        width = after
    outputs: dict[str, list[str]] = {"score": [], "box": [], "point": []}
    for level in levels[2:]:
        for kind, size in (("score", 1), ("box", 4), ("point", 10)):
            head = node("Transpose", conv(level, 16, 2 * size, 1), perm=[2, 3, 0, 1])
            shape = f"s{len(weights)}"
            weights.append(numpy_helper.from_array(np.array([-1, size]), shape))
            head = node("Reshape", head, shape)
            if kind == "score":
                head = node("Sigmoid", head)
            outputs[kind].append(head)
    names = [*outputs["score"], *outputs["box"], *outputs["point"]]
    shape = [1, 3, "?", "?"]
    detector = save(
        "detector.onnx",
        helper.make_tensor_value_info("input.1", TensorProto.FLOAT, shape),
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
            for name, size in zip(names, [1] * 3 + [4] * 3 + [10] * 3, strict=True)
        ],
        "detector",
    )
    weights.clear()
    nodes.clear()
    y = "data"
    for before, after in ((3, 8), (8, 16), (16, 32)):
        y = node("Relu", conv(y, before, after, 2))
    y = node("Flatten", node("GlobalAveragePool", y))
    node("Gemm", y, weight(512, 32), transB=1, output="embedding")
    recogniser = save(
        "recogniser.onnx",
        helper.make_tensor_value_info("data", TensorProto.FLOAT, ["n", 3, 112, 112]),
        [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", 512])],
        "recogniser",
    )
    return detector, recogniser


def insightface(folder: Path) -> Any:
    from insightface import model_zoo

    detector, recogniser = _face_models(folder)
    picture = np.random.default_rng(1).integers(0, 256, (320, 320, 3)).astype(np.uint8)
    finder = model_zoo.get_model(detector, providers=["CPUExecutionProvider"])
    finder.prepare(ctx_id=-1, input_size=(320, 320), det_thresh=0.9)
    boxes, points = finder.detect(picture, max_num=5)
    reader = model_zoo.get_model(recogniser, providers=["CPUExecutionProvider"])
    reader.prepare(ctx_id=-1)
    features = reader.get_feat(picture[:112, :112])
    return {
        "classes": [type(finder).__name__, type(reader).__name__],
        "boxes": np.asarray(boxes).tolist(),
        "points": np.asarray(points).tolist(),
        "features": features.tolist(),
    }


def _small_bert(folder: Path) -> Path:
    """Make a tokenizer and the configuration of a small BERT."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, PreTrainedTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [*dict.fromkeys(word for text in SENTENCES for word in text.split())]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, "[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
        model_input_names=["input_ids", "attention_mask", "token_type_ids"],
    )
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    place = folder / "bert"
    config.save_pretrained(place)
    fast.save_pretrained(place)
    return place


def _write_bert(to: Path, words: int = 32, width: int = 32) -> None:
    """Write one layer of a transformer with random weights as an ONNX model."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    weights: list[onnx.TensorProto] = []
    nodes: list[onnx.NodeProto] = []

    def constant(value: Any) -> str:
        weights.append(numpy_helper.from_array(np.asarray(value), f"w{len(weights)}"))
        return weights[-1].name

    def weight(*shape: int) -> str:
        return constant((random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def node(kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"v{len(nodes)}"
        nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def heads(x: str, order: list[int]) -> str:
        split = node("Reshape", node("MatMul", x, weight(width, width)), constant([0, 0, 4, -1]))
        return node("Transpose", split, perm=order)

    def normal(x: str, output: str = "") -> str:
        scale, bias = constant(np.ones(width, np.float32)), constant(np.zeros(width, np.float32))
        return node("LayerNormalization", x, scale, bias, output=output)

    kinds = node("Gather", weight(2, width), "token_type_ids")
    x = normal(node("Add", node("Gather", weight(words, width), "input_ids"), kinds))
    scores = node("MatMul", heads(x, [0, 2, 1, 3]), heads(x, [0, 2, 3, 1]))
    mask = node("Unsqueeze", node("Cast", "attention_mask", to=1), constant([1, 2]))
    hidden = node("Mul", node("Sub", mask, constant(np.float32(1))), constant(np.float32(1e4)))
    chances = node("Softmax", node("Add", scores, hidden), axis=-1)
    mixed = node("Transpose", node("MatMul", chances, heads(x, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
    x = normal(node("Add", x, node("Reshape", mixed, constant([0, 0, width]))))
    inner = node("Gelu", node("MatMul", x, weight(width, 2 * width)))
    normal(node("Add", x, node("MatMul", inner, weight(2 * width, width))), "last_hidden_state")
    names = ("input_ids", "attention_mask", "token_type_ids")
    sizes = ["batch", "length"]
    graph = helper.make_graph(
        nodes,
        "bert",
        [helper.make_tensor_value_info(name, TensorProto.INT64, sizes) for name in names],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*sizes, width])],
        weights,
    )
    imports = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=9), to)


def fastembed(folder: Path) -> Any:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    place = _small_bert(folder)
    _write_bert(place / "model.onnx")
    TextEmbedding.add_custom_model(
        model="small/bert",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="small/bert"),
        dim=32,
        model_file="model.onnx",
    )
    model = TextEmbedding(model_name="small/bert", specific_model_path=str(place))
    return np.array(list(model.embed(SENTENCES))).tolist()


def optimum(folder: Path) -> Any:
    from optimum.onnxruntime import ORTModelForFeatureExtraction
    from transformers import AutoTokenizer

    place = _small_bert(folder)
    _write_bert(place / "model.onnx")
    model = ORTModelForFeatureExtraction.from_pretrained(place)
    tokenizer = AutoTokenizer.from_pretrained(place)
    inputs = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    plain = model(**inputs).last_hidden_state
    model = ORTModelForFeatureExtraction.from_pretrained(place, use_io_binding=True)
    bound = model(**inputs).last_hidden_state
    return {"plain": plain.tolist(), "bound": bound.tolist()}


def sentence_transformers(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    place = _small_bert(folder)
    (place / "onnx").mkdir()
    _write_bert(place / "onnx" / "model.onnx")
    model = SentenceTransformer(str(place), backend="onnx")
    return model.encode(SENTENCES).tolist()


def faster_whisper(folder: Path) -> Any:
    from faster_whisper.vad import VadOptions, get_speech_timestamps, get_vad_model

    wave = tones(16000, 3.0)
    model = get_vad_model()
    chances = model(np.pad(wave, (0, -len(wave) % 512)))
    return {
        "stamps": get_speech_timestamps(wave, VadOptions()),
        "chances": np.asarray(chances).ravel().tolist(),
    }


PACKAGES: dict[str, Callable[[Path], Any]] = {
    one.__name__: one
    for one in (
        rapidocr_onnxruntime,
        silero_vad,
        magika,
        basic_pitch,
        insightface,
        fastembed,
        optimum,
        sentence_transformers,
        faster_whisper,
    )
}


def one(name: str, engine: str) -> None:
    """Run one package and print what it returns as the last line."""
    if engine == "hagane":
        sys.path.insert(0, str(SOURCE))
        import hagane

        hagane.install_as_onnxruntime()
    import onnxruntime

    stands_in = onnxruntime.InferenceSession.__module__.startswith("hagane.")
    assert stands_in == (engine == "hagane")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        result = PACKAGES[name](Path(folder))
        seconds = time.perf_counter() - started
    print()
    print(json.dumps({"result": result, "seconds": seconds}))


def difference(a: Any, b: Any, place: str = "") -> str:
    """Return where two results differ, or nothing."""
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return next((d for k in a if (d := difference(a[k], b[k], f"{place}.{k}"))), "")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        flat = _numbers(a), _numbers(b)
        if flat[0] is not None and flat[1] is not None and flat[0].shape == flat[1].shape:
            largest = max(float(np.abs(flat[0]).max(initial=0)), 1e-6)
            apart = float(np.abs(flat[0] - flat[1]).max(initial=0)) / largest
            return "" if apart <= AGREEMENT else f"{place}: {apart:.1e} apart"
        pairs = enumerate(zip(a, b, strict=True))
        return next((d for i, (x, y) in pairs if (d := difference(x, y, f"{place}[{i}]"))), "")
    if isinstance(a, float) and isinstance(b, float):
        return "" if abs(a - b) <= AGREEMENT * max(1.0, abs(a)) else f"{place}: {a} and {b}"
    return "" if a == b else f"{place}: {a!r} and {b!r}"


def _numbers(values: list[Any]) -> np.ndarray | None:
    try:
        array = np.array(values)
    except ValueError:
        return None
    return array if array.dtype.kind in "iuf" else None


def run(name: str, engine: str) -> dict[str, Any]:
    """Run one package in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--one", name, engine],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
    )
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return {"failed": lines[-1] if lines else f"status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    """Print the table."""
    differ = 0
    print("| package | hagane in ONNX Runtime's place |\n|---|---|")
    for name in sys.argv[1:] or PACKAGES:
        theirs, ours = run(name, "onnxruntime"), run(name, "hagane")
        if "failed" in theirs:
            text = f"not measured, with ONNX Runtime: {theirs['failed']}"
        elif "failed" in ours:
            text, differ = f"fails: {ours['failed']}", differ + 1
        else:
            apart = difference(theirs["result"], ours["result"])
            text, differ = (f"differs at {apart}", differ + 1) if apart else ("same result", differ)
        print(f"| {name} | {text} |", flush=True)
    return int(bool(differ))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main())
