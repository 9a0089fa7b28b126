"""How soon MultiprocessIterator reports or ends what went wrong, in seconds.

    python benchmarks/data_faults.py

The promise is one second for each on a machine that is not overloaded; the tests only bound hangs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

from hagane.training.iterators import MultiprocessIterator

AT = 40


class Zeros:
    """A hundred samples; the one at ``AT`` does ``fault``."""

    def __init__(self, fault: str):
        self.fault = fault

    def __len__(self) -> int:
        return 100

    def __getitem__(self, index: int) -> np.ndarray:
        if index == AT:
            if self.fault == "exception":
                raise ValueError("a bad sample")
            if self.fault == "exit":
                os._exit(3)
            if self.fault == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        return np.zeros(4, np.float32)


def seconds_until_reported(fault: str) -> tuple[float, str]:
    """Return the time from asking for the bad batch to the error, and the error's name."""
    with MultiprocessIterator(
        Zeros(fault), 8, n_processes=2, shuffle=False, repeat=False
    ) as batches:
        for _ in range(AT // 8):
            next(batches)
        if fault == "interrupt":
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        begun = time.perf_counter()
        try:
            next(batches)
        except (Exception, KeyboardInterrupt) as error:
            name = type(error).__name__
        batches.finalize()
    return time.perf_counter() - begun - 0.5 * (fault == "interrupt"), name


def seconds_until_orphans_end() -> float:
    """Return the time from killing a parent to the end of its last worker."""
    parent = subprocess.Popen(
        [sys.executable, __file__, "parent"], stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    parent.stdout.readline()
    parent.kill()
    begun = time.perf_counter()
    parent.stdout.read()  # ends when no process of the family holds the pipe
    parent.wait()
    return time.perf_counter() - begun


def main() -> None:
    if sys.argv[1:] == ["parent"]:
        batches = MultiprocessIterator(Zeros("sleep"), 8, n_processes=2, shuffle=False)
        next(batches)
        print("ready", flush=True)
        time.sleep(60)
    for fault in ("exception", "exit", "kill", "interrupt"):
        seconds, name = seconds_until_reported(fault)
        print(f"{fault:15} {seconds:6.3f} s  {name}", flush=True)
    print(f"{'parent killed':15} {seconds_until_orphans_end():6.3f} s  all workers gone")


if __name__ == "__main__":
    main()
