"""Runs that are killed, or whose disk is full, resume to the same end to the bit."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hagane.errors import InvalidArgument
from hagane.training import extensions

SCRIPT = Path(__file__).parent / "killed_run.py"


def run(
    out: Path,
    moment: int = -1,
    largest: int | None = None,
    *,
    compiled: bool = False,
    writer: str = "",
) -> subprocess.CompletedProcess[str]:
    """Train in a process of its own; ``largest`` bounds the bytes of a file."""
    out.mkdir(exist_ok=True)

    def limit() -> None:
        if largest is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

    return subprocess.run(
        [sys.executable, str(SCRIPT), str(out), str(moment),
         *["compiled"] * compiled, *[writer] * bool(writer)],
        preexec_fn=limit, capture_output=True, text=True, check=False,
        # Bytecode that is cut off could be read by no process.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def the_same(out: Path, whole: Path) -> None:
    """Check that two runs ended alike, to the bit."""
    with np.load(whole / "end.npz") as wanted, np.load(out / "end.npz") as found:
        assert sorted(found) == sorted(wanted)
        for name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name], err_msg=name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run without a break."""
    out = tmp_path_factory.mktemp("whole")
    done = run(out)
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run of compiled steps without a break, whose code is in the cache."""
    for name in ("first", "second"):  # of which the former has more to do
        out = tmp_path_factory.mktemp(name)
        done = run(out, compiled=True)
        assert done.returncode == 0, done.stderr
    return out


def killed_at(
    moment: int, out: Path, whole: Path, *, compiled: bool = False, writer: str = ""
) -> None:
    """Kill a run at a moment, resume it, and compare its end."""
    assert run(out, moment, compiled=compiled, writer=writer).returncode == -signal.SIGKILL
    assert not (out / "end.npz").exists()
    again = run(out, compiled=compiled, writer=writer)
    assert again.returncode == 0, again.stderr
    assert not [name for name in os.listdir(out) if name.startswith("tmp")]
    the_same(out, whole)


@pytest.mark.long
def test_snapshots_that_a_killed_run_began_are_removed(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    listed = subprocess.Popen([sys.executable, "-c", ""])  # that nobody has waited for
    os.waitid(os.P_PID, listed.pid, os.WEXITED | os.WNOWAIT)
    processes = ended.pid, os.getpid(), listed.pid
    names = [f"tmpsnapshot_iter_2.{number}.ab_12x" for number in processes]
    for name in (*names, "tmp.other", "tmpsnapshot.9"):
        (out / name).mkdir()
        (out / name / "snapshot_iter_2").write_bytes(b"half")
    assert run(out).returncode == 0
    listed.wait()
    left = sorted(name for name in os.listdir(out) if name.startswith("tmp"))
    assert left == sorted(
        [names[1], "tmp.other", "tmpsnapshot.9"]
    )  # that runs, and others' folders
    the_same(out, whole)


@pytest.mark.parametrize(
    "draw", [0, *(pytest.param(draw, marks=pytest.mark.long) for draw in (1, 2))]
)
def test_a_killed_run_resumes_to_the_same_weights(draw: int, whole: Path, tmp_path: Path) -> None:
    events = int((whole / "events").read_text())
    moment = int(np.random.default_rng(draw).integers(events))
    killed_at(moment, tmp_path / "out", whole)


@pytest.mark.parametrize(
    "writer",
    [
        "ProcessQueueWriter",
        *(pytest.param(name, marks=pytest.mark.long)
          for name in ("ThreadWriter", "ThreadQueueWriter", "ProcessWriter")),
    ],
)  # fmt: skip
def test_a_killed_run_whose_snapshots_others_write_resumes_to_the_same_weights(
    writer: str, whole: Path, tmp_path: Path
) -> None:
    events = int((whole / "events").read_text())
    killed_at(events * 3 // 4, tmp_path / "out", whole, writer=writer)


@pytest.mark.long
def test_fifty_killed_runs_resume_to_the_same_weights(whole: Path, tmp_path: Path) -> None:
    events = int((whole / "events").read_text())
    for number, moment in enumerate(np.random.default_rng(7).integers(events, size=50)):
        killed_at(int(moment), tmp_path / str(number), whole)


@pytest.mark.parametrize(
    "draw", [0, *(pytest.param(draw, marks=pytest.mark.long) for draw in range(1, 50))]
)
def test_a_killed_run_of_compiled_steps_resumes_to_the_same_weights(
    draw: int, compiled: Path, tmp_path: Path
) -> None:
    events = int((compiled / "events").read_text())
    # Nearly all events are those of the first step, which is compiled; runs have some more or less.
    last = events - 4000
    moment = last - int(last * np.random.default_rng(draw).uniform() ** 3)
    killed_at(moment, tmp_path / "out", compiled, compiled=True)


def test_a_run_that_is_killed_twice_resumes_to_the_same_weights(
    whole: Path, tmp_path: Path
) -> None:
    events, out = int((whole / "events").read_text()), tmp_path / "out"
    assert run(out, events // 3).returncode == -signal.SIGKILL
    killed_at(events // 3, out, whole)


def test_a_full_disk_keeps_the_snapshots_of_before(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    size = max(path.stat().st_size for path in whole.glob("snapshot_iter_*"))
    events = int((whole / "events").read_text())
    assert run(out, events // 2).returncode == -signal.SIGKILL
    before = {path.name: path.read_bytes() for path in out.glob("snapshot_iter_*")}
    assert before
    full = run(out, largest=size // 2)
    assert full.returncode != 0
    assert "File too large" in full.stderr
    assert "in extension '_Snapshot' at iteration" in full.stderr
    assert {path.name: path.read_bytes() for path in out.glob("snapshot_iter_*")} == before
    assert sorted(name for name in os.listdir(out) if name.startswith("tmp")) == []
    again = run(out)
    assert again.returncode == 0, again.stderr
    the_same(out, whole)


def test_a_process_is_not_asked_to_write_snapshots_that_it_cannot_be_sent(tmp_path: Path) -> None:
    writer = extensions.snapshot_writers.ProcessQueueWriter()
    writer.add_cleanup_hook(lambda: None)
    with pytest.raises(InvalidArgument, match="ProcessQueueWriter: .*use ThreadQueueWriter"):
        writer("snapshot", str(tmp_path), {"x": np.zeros(2)})
    writer.finalize()
    assert not [*tmp_path.iterdir()]
