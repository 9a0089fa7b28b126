"""Detect speech in sound with Silero VAD (``silero-vad``, MIT): an LSTM within nested Ifs.

The voice is synthesised here from vowels (a pulse train through three formants, after Fant,
"Acoustic Theory of Speech Production", 1960); noise and silence have to be told from it.
"""

from __future__ import annotations

import numpy as np
from fetch import fetch

import hagane

RATE = 16000
WINDOW, CONTEXT = 512, 64
# Frequency and bandwidth (Hz) and loudness of the formants of each vowel.
VOWELS = {
    "a": ((730, 90, 1.0), (1090, 110, 0.5), (2440, 170, 0.3)),
    "e": ((530, 70, 1.0), (1840, 100, 0.4), (2480, 150, 0.2)),
    "i": ((270, 60, 1.0), (2290, 100, 0.3), (3010, 150, 0.2)),
    "u": ((300, 60, 1.0), (870, 90, 0.4), (2240, 150, 0.1)),
}


def resonance(frequency: float, bandwidth: float) -> np.ndarray:
    """Return the impulse response of a two-pole resonator."""
    n = np.arange(800)
    angle = 2 * np.pi * frequency / RATE
    return np.exp(-np.pi * bandwidth / RATE * n) * np.sin((n + 1) * angle) / np.sin(angle)


def voice(vowels: str, generator: np.random.Generator) -> np.ndarray:
    """Return spoken vowels, a fifth of a second each, with short breaths between."""
    parts = []
    for vowel in vowels:
        count = int(0.22 * RATE)
        time = np.arange(count) / RATE
        pitch = generator.uniform(110, 150) * (1 + 0.03 * np.sin(2 * np.pi * 5 * time))
        pulses = np.diff(np.floor(np.cumsum(pitch) / RATE), prepend=0.0)
        source = np.convolve(pulses, np.exp(-np.arange(40) / 8))[:count]
        sound = np.zeros(count)
        for frequency, bandwidth, loudness in VOWELS[vowel]:
            formant = np.convolve(source, resonance(frequency, bandwidth))[:count]
            sound += loudness * formant / np.abs(formant).max()
        fade = np.minimum(1, np.minimum(np.arange(count), np.arange(count)[::-1]) / 800)
        parts += [0.4 * fade * sound / np.abs(sound).max(), 0.03 * generator.standard_normal(600)]
    return np.concatenate(parts)


def speech_probability(session: hagane.InferenceSession, sound: np.ndarray) -> np.ndarray:
    """Return the probability of speech for each window of 32 ms."""
    state = np.zeros((2, 1, 128), dtype=np.float32)
    context = np.zeros(CONTEXT, dtype=np.float32)
    found = []
    for start in range(0, len(sound) - WINDOW + 1, WINDOW):
        window = sound[start : start + WINDOW].astype(np.float32)
        feed = {
            "input": np.concatenate([context, window])[None],
            "state": state,
            "sr": np.array(RATE),
        }
        probability, state = session.run(None, feed)
        found.append(float(probability[0, 0]))
        context = window[-CONTEXT:]
    return np.array(found)


def main() -> None:
    folder = fetch("silero-vad==6.2.3") / "silero_vad" / "data"
    session = hagane.InferenceSession(folder / "silero_vad.onnx")
    generator = np.random.default_rng(0)
    sounds = {
        "voice": voice("aiueaeiu", generator),
        "noise": 0.05 * generator.standard_normal(RATE),
        "silence": np.zeros(RATE),
    }
    shares = {
        name: float((speech_probability(session, sound) > 0.5).mean())
        for name, sound in sounds.items()
    }
    for name, share in shares.items():
        print(f"{name}: {share:.0%} of the windows are speech")
    assert shares["voice"] > 0.6
    assert shares["noise"] == shares["silence"] == 0


if __name__ == "__main__":
    main()
