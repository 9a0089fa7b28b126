"""Datasets that workers can import."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
import types
from typing import Any

import numpy as np

from hagane.training.iterators import sample_random


class Mixed:
    """Nested samples: stacked, ragged, text, numbers."""

    def __init__(self, length: int = 23):
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "image": np.full((2, 3), index, np.float32),
            "pair": (index, f"name {index}"),
            "ragged": np.arange(index % 5, dtype=np.int16),
            "list": [np.float64(index), None],
        }


class Drawing:
    """Samples made of random numbers from every generator."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> tuple[int, float, float, float]:
        return index, random.random(), float(np.random.rand()), float(sample_random().random())


class Faulty:
    """Something happens at one index; ``once`` leaves a mark so that it happens one time only."""

    def __init__(
        self,
        what: str,
        at: int = 5,
        length: int = 12,
        once: str | None = None,
        gate: str | None = None,
    ):
        self.what = what
        self.at = at
        self.length = length
        self.once = once
        self.gate = gate

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index == self.at and self._now():
            return getattr(self, self.what)()
        return index, np.full(3, index)

    def _now(self) -> bool:
        if self.once is None:
            return True
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def raises(self) -> None:
        raise KeyError("no such label")

    def stops(self) -> None:
        raise StopIteration

    def exits(self) -> None:
        os._exit(3)

    def is_killed(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def waits(self) -> tuple[int, Any]:
        """Stall until the gate, a file, is there."""
        assert self.gate is not None
        while not os.path.exists(self.gate):
            time.sleep(0.005)
        return self.at, np.full(3, self.at)

    def hangs(self) -> None:
        time.sleep(1000)

    def cannot_be_pickled(self) -> Any:
        return lambda: None

    def is_odd(self) -> Any:
        return Faulty("raises")


class Foreign:
    """Raises, or returns, something of a class that only the worker can import."""

    def __init__(self, how: str):
        self.how = how

    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> Any:
        if index != 5:
            return index
        module = types.ModuleType("only_here")
        sys.modules["only_here"] = module
        exec(
            "class OddError(ValueError):\n"
            "    pass\n"
            "class Mute(ValueError):\n"
            "    def __str__(self):\n"
            "        raise RuntimeError('no text')\n"
            "class Final(ValueError):\n"
            "    def __init_subclass__(cls):\n"
            "        raise RuntimeError('not to be derived')\n"
            "class Thing:\n"
            "    pass\n",
            module.__dict__,
        )
        if self.how == "return":
            return module.Thing()
        if self.how == "raise a local class":

            class Local(ValueError):
                pass

            raise Local("odd sample")
        raise {"raise": module.OddError, "mute": module.Mute, "final": module.Final}[self.how](
            "odd sample"
        )
