"""Log folders, and a server of its own process that a whole file of tests asks."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

AGENTS = Path(__file__).parent / "agents.py"


class Served:
    """A running server and a client that has its token."""

    def __init__(self, process: subprocess.Popen[str], address: str, folder: Path):
        self.process, self.address, self.folder = process, address, folder
        self.base, self.token = re.fullmatch(
            r"(http://127.0.0.1:\d+)/\?token=(\S+)", address
        ).groups()
        self.client = httpx.Client(
            base_url=self.base, headers={"Authorization": f"Bearer {self.token}"}, timeout=30
        )

    def get(self, path: str) -> Any:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def roll_out(self, steps: int, seed: int = 0, **more: Any) -> dict[str, Any]:
        body = {"step_count": steps, "seed": seed, **more}
        answer = self.client.post("/api/rollouts", json=body)
        assert answer.status_code == 202, answer.text
        return answer.json()

    def finished(self, job: int, seconds: float = 60) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for found in self.get("/api/jobs")["jobs"]:
                if found["id"] == job and found["status"] not in ("waiting", "running"):
                    return found
            time.sleep(0.05)
        raise AssertionError(f"job {job} has not ended")

    def lines(self, rollout: str) -> list[dict[str, Any]]:
        path = self.folder / "rollouts" / rollout / "rollout_log.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "hagane", "rl", "serve", *words]
    process = subprocess.Popen(
        [*command, "--port", "0", "--logdir", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)
        assert found, f"no address in {line!r}"
        served = Served(process, found[0], folder)
        yield served
        served.client.close()
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        finally:
            process.stdout.close()


@pytest.fixture(scope="package")
def balancing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of an agent that balances CartPole."""
    folder = tmp_path_factory.mktemp("balancing")
    with serving(folder, f"{AGENTS}:Balancer", "--env", "CartPole-v1") as served:
        yield served
