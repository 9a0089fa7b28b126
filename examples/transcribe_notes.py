"""Hear notes in a sound: Spotify's Basic Pitch (``basic-pitch``, Apache-2.0).

The sound is made here from a few harmonics; the notes heard have to be the notes played.
"""

from __future__ import annotations

import numpy as np
from fetch import fetch

import hagane

RATE = 22050
LENGTH = 43844  # samples of one window of the model
LOWEST = 21  # MIDI number of the model's first note, the piano's lowest A
NOTES = (69, 76)  # A4 and E5


def tone(note: int) -> np.ndarray:
    """Return a plucked tone with eight harmonics, float32, one window long."""
    seconds = np.arange(LENGTH) / RATE
    pitch = 440 * 2 ** ((note - 69) / 12)
    harmonics = sum(np.sin(2 * np.pi * pitch * k * seconds) / k**1.5 for k in range(1, 9))
    return (harmonics * np.exp(-1.5 * seconds)).astype(np.float32)


def main() -> None:
    folder = fetch("basic-pitch==0.4.0") / "basic_pitch" / "saved_models" / "icassp_2022"
    session = hagane.InferenceSession(folder / "nmp.onnx")
    names = [item.name for item in session.get_outputs()]
    shapes = {item.name: item.shape for item in session.get_outputs()}
    (notes_name,) = [name for name in names if name.endswith(":1")]
    assert shapes[notes_name][1:] == [172, 88]
    sound = sum(tone(note) for note in NOTES) * 0.3
    feed = {session.get_inputs()[0].name: sound.reshape(1, LENGTH, 1).astype(np.float32)}
    (activity,) = session.run([notes_name], feed)
    loudness = activity[0, 10:120].mean(axis=0)
    heard = sorted(int(n) + LOWEST for n in np.argsort(-loudness)[: len(NOTES)])
    print(f"played {list(NOTES)}, heard {heard}")
    assert heard == list(NOTES)


if __name__ == "__main__":
    main()
