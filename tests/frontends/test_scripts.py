"""Training scripts of many genres: clean as they are, and wrong at the right line with a fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hagane.checking import SCRIPT, Request, check_source
from tests.frontends.script_faults import FAULTS

SCRIPTS = Path(__file__).parent / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))
SLOW = {"char_rnn", "crf_tagger", "ddpm", "detection", "dueling_dqn", "glow", "guided_diffusion",
        "masked_autoencoder", "masked_lm", "message_passing", "mixture_of_experts",
        "momentum_contrast", "nanogpt", "reinforce", "sac", "schedules_checkpoints",
        "selective_scan", "tabular_transformer", "word2vec"}  # fmt: skip


def _marked(name: str, *rest: object, slow: bool = False) -> object:
    long = name in SLOW or slow
    return pytest.param(name, *rest, marks=[pytest.mark.long] if long else [])


@pytest.mark.parametrize("name", [_marked(name) for name in NAMES])
def test_a_training_script_is_clean(name: str) -> None:
    report = check_source(Request(SCRIPTS / f"{name}.py", SCRIPT))
    assert not report.errors, report.errors
    assert report.exit_code == 0, (report.unknown, report.notices)
    assert len(report.types) > 100


@pytest.mark.parametrize(
    ("name", "place"), [_marked(n, p, slow=p > 0) for n in NAMES for p in range(len(FAULTS[n]))]
)
def test_a_seeded_fault_is_found_at_its_line(name: str, place: int, tmp_path: Path) -> None:
    old, new, line = FAULTS[name][place]
    text = (SCRIPTS / f"{name}.py").read_text()
    assert old in text
    changed = text.replace(old, new)
    file = tmp_path / f"{name}.py"
    file.write_text(changed)
    report = check_source(Request(file, SCRIPT))
    assert report.exit_code == 1
    lines = changed.splitlines()
    found = [lines[e.place.line - 1] for e in report.errors]
    wanted = line or new.splitlines()[0]
    assert any(wanted in one for one in found), [(e.place.line, e.message) for e in report.errors]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_training_script_runs(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / f"{name}.py")], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
