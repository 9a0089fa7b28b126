from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hagane.cli import main
from hagane.errors import InvalidArgument
from hagane.rl import launch_visualizer, serve_agents
from hagane.tools.rl.launch import may_use
from hagane.tools.rl.server.page import modules, parts

from .agents import Balancer, Line
from .conftest import AGENTS, Served

ROOT = Path(__file__).parents[3]


def test_a_program_launches_the_visualizer_with_objects_of_its_own(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.tools.rl.launching", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    line = process.stdout.readline()
    served = Served(process, re.search(r"http\S+", line)[0], tmp_path)
    try:
        made = served.roll_out(12)
        job = served.finished(made["job"])
        assert job["status"] == "done", job
        assert job["result"]["episodes"] > 1
        assert len(served.lines(made["rollout_id"])) == 12
        assert served.get("/api/agent_profile")["action_meanings"] == {"0": "left", "1": "right"}
    finally:
        served.client.close()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 0, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("meanings", "words"),
    [
        ("left", "to be dictionary entries such as {0: 'left', 1: 'right'}, got str"),
        ({0: "a", 2: "b"}, r"expected the keys 0 to 1, got \[0, 2\]"),
    ],
)
def test_action_meanings_that_dont_fit_are_named(meanings: object, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        launch_visualizer(Balancer(), Line(), meanings)


@pytest.mark.parametrize(("reply", "used"), [("y", True), (" Y ", True), ("n", False), ("", False)])
def test_a_folder_of_other_things_is_asked_for_at_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str, used: bool
) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return reply

    assert may_use(tmp_path / "new", ask)
    (tmp_path / "logs" / "rollouts").mkdir(parents=True)
    assert may_use(tmp_path / "logs", ask)
    assert may_use(tmp_path, None)
    assert asked == []
    assert may_use(tmp_path, ask) is used
    assert asked == [f"{tmp_path} exists and holds no logs. Write logs to it? (y/n) "]
    if not used:
        monkeypatch.setattr("hagane.tools.rl.launch._terminal", lambda: ask)
        launch_visualizer(Balancer(), Line(), {}, log_dir=tmp_path)
        assert not (tmp_path / "rollouts").exists()


def test_ports_and_limits_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidArgument, match="cannot be listened on: .*--port 0 takes one"):
            serve_agents([f"{AGENTS}:Mute"], port=port, log_dir=tmp_path)
    for wrong, words in (
        ({"port": 70_000}, "from 0 to 65535, got 70000"),
        ({"patience": 0}, "--patience above 0"),
        ({"agents": []}, "expected at least one, such as agent.py:make"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            serve_agents(**{"agents": ["a.py:b"], "log_dir": tmp_path, **wrong})


def test_the_command_line_reports_errors_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    words = ["rl", "serve", "a.py:b", "--port", "0", "--logdir", str(tmp_path / "file")]
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "cannot be made" in capsys.readouterr().err


def test_an_interrupt_ends_the_server_while_a_job_hangs(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "hagane", "rl", "serve", f"{AGENTS}:Hangs"),
            *("--env", "CartPole-v1", "--port", "0", "--logdir", str(tmp_path)),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    served = Served(process, re.search(r"http\S+", process.stdout.readline())[0], tmp_path)
    served.roll_out(5)
    while served.get("/api/jobs")["jobs"][0]["status"] == "waiting":
        time.sleep(0.05)
    served.client.close()
    started = time.monotonic()
    for _ in range(2):  # in a hurry
        process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=10)
    assert time.monotonic() - started < 10
    assert process.returncode == 0
    assert "Traceback" not in said


def test_an_agent_that_cannot_be_made_is_named_at_the_terminal(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "hagane", "rl", "serve", "none.py:make"),
            *("--env", "CartPole-v1", "--port", "0", "--logdir", str(tmp_path)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "default"},
    )
    words = "the agent could not be asked: agent: there is no file none.py\n"
    assert words in process.stderr  # lines are read until it comes
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0


def test_the_page_names_all_its_parts_and_no_other_host(balancing: Served) -> None:
    page = balancing.client.get("/").text
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    for name in parts():
        text = balancing.client.get(f"/page/{name}").text
        hosts = set(re.findall(r"(?:https?|wss?):\/\/[^\s\"'`]*", text))
        assert hosts <= {"ws://${location.host}/api/live?token=${encodeURIComponent(token)}"} | (
            {"http://www.w3.org/2000/svg"} if name.endswith(".svg") else set()
        )
        for wanted in re.findall(r'from "rl/(\w+)"', text):
            assert f"{wanted}.js" in modules()
    assert not re.search(r'(?:src|href)="(?!/page/|#)', page)
    assert " style=" not in page
    assert " on" not in re.sub(r">[^<]*<", "><", page).replace(" one", "")


def test_every_control_of_the_page_has_a_name(balancing: Served) -> None:
    page = balancing.client.get("/").text
    for tag in re.findall(r"<(?:input|select)[^>]*>", page):
        inside = page[: page.index(tag)].rfind("<label")
        closed = page[: page.index(tag)].rfind("</label>")
        assert inside > closed or "aria-label" in tag, tag
    for element in re.findall(r"\$\(\"([\w-]+)\"\)", balancing.client.get("/page/app.js").text):
        assert f'id="{element}"' in page, element
