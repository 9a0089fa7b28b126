"""Agents that go wrong: each job ends with its reason, and the next one runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hagane.tools.rl.agents.protocol import Watched
from hagane.tools.rl.environments import make_world
from hagane.tools.rl.jobs.pool import Job, Pool, TooManyJobs
from hagane.tools.rl.jobs.setting import Live, Setting
from hagane.tools.rl.jobs.start import Forked, Fresh
from hagane.tools.rl.jobs.worker import Channel, profile, serve_job
from hagane.tools.rl.logs.folder import LOG_NAME

from . import agents
from .conftest import AGENTS

LIMIT = 1 << 30


def pooled(name: str, patience: float = 200.0, waiting: int = 16, env: str = "CartPole-v1") -> Pool:
    setting = Setting((f"{AGENTS}:{name}",), env)
    return Pool(Fresh(setting, LIMIT), [AGENTS], 1, waiting, patience, LIMIT)


def run(pool: Pool, folder: Path, steps: int = 5) -> Job:
    (folder / "images").mkdir(exist_ok=True)
    request = {"rollout_dir": str(folder), "step_count": steps, "seed": 0}
    job = pool.submit("rollout", request)
    assert job.over.wait(300)
    return job


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Raises", "ValueError: the third wheel came off"),
        ("Exits", "the worker process ended with status 7"),
        ("Quits", "the agent called exit(3)"),
        ("Eats", "out of memory"),
        ("Aborts", "ended by SIGABRT"),
        ("Counts", "'action_values': expected 1 dimension(s), got shape [2, 1, 1]"),
        ("fails", "failed: RuntimeError: no weights here"),
        ("needs_two", "expected make() or make(env), it takes (env, weights)"),
        ("Nobody", "has no 'Nobody'"),
    ],
)
def test_a_job_of_a_broken_agent_says_why(name: str, words: str, tmp_path: Path) -> None:
    pool = pooled(name)
    try:
        job = run(pool, tmp_path)
        assert job.status == "failed"
        assert words in job.message
    finally:
        pool.close()


@pytest.mark.long
def test_an_agent_that_hangs_is_ended_and_the_next_job_runs(tmp_path: Path) -> None:
    pool = pooled("Hangs", patience=3.0)
    try:
        for _ in range(2):
            job = run(pool, tmp_path)
            assert job.status == "failed"
            assert "stuck: the agent or environment did not answer for 3 s" in job.message
    finally:
        pool.close()


def test_lines_before_an_error_are_kept(tmp_path: Path) -> None:
    pool = pooled("Counts")
    try:
        run(pool, tmp_path, 10)
        assert len((tmp_path / LOG_NAME).read_text().splitlines()) == 3
    finally:
        pool.close()


def test_a_job_is_cancelled_and_leaves_no_process(tmp_path: Path) -> None:
    pool = pooled("Hangs")
    try:
        (tmp_path / "images").mkdir()
        request = {"rollout_dir": str(tmp_path), "step_count": 5, "seed": 0}
        first, second = pool.submit("rollout", request), pool.submit("rollout", request)
        pool.cancel(second.id)
        assert second.status == "cancelled"
        while first.status == "waiting":
            time.sleep(0.01)
        pool.cancel(first.id)
        assert first.over.wait(10)
        assert first.status == "cancelled"
        assert pool.cancel(99) is None
    finally:
        pool.close()
    with pytest.raises(TooManyJobs, match="the server is ending"):
        pool.submit("rollout", request)


def test_too_many_waiting_jobs_are_refused(tmp_path: Path) -> None:
    pool = pooled("Hangs", waiting=1)
    try:
        pool.submit("rollout", {})
        while pool.jobs()[0].status == "waiting":
            time.sleep(0.01)
        pool.submit("rollout", {})
        with pytest.raises(TooManyJobs, match="1 jobs are waiting already"):
            pool.submit("rollout", {})
    finally:
        pool.close()


def test_an_environment_of_ones_own_needs_no_pictures(tmp_path: Path) -> None:
    pool = pooled("in_line", env="")
    try:
        job = run(pool, tmp_path, 7)
        assert job.status == "done", job.message
        assert job.result["episodes"] == 3
        assert "it has no render()" in job.result["warnings"][0]
    finally:
        pool.close()


def test_names_that_dont_fit_the_actions_are_noted_and_the_rest_works() -> None:
    world = make_world("CartPole-v1")
    watched = Watched(agents.Balancer(), "Balancer")
    for names in ({"0": "left"}, {"0": "left", "1": "right", "2": "up"}):
        found = profile(watched, world, names)
        assert found["action_meanings"] == names
        (note,) = found["notes"]
        assert note.startswith(f"action meanings: {len(names)} names for 2 actions; ")
        assert found["keys"] == ["action_probs", "state_value"]
    assert profile(watched, world, {})["notes"] == []
    world.close()


def test_an_agent_without_environment_names_the_option(tmp_path: Path) -> None:
    pool = pooled("Mute", env="")
    try:
        assert "name one with --env" in run(pool, tmp_path).message
    finally:
        pool.close()


def test_an_unknown_environment_is_named(tmp_path: Path) -> None:
    pool = pooled("Mute", env="CartPole-v77")
    try:
        assert "environment 'CartPole-v77'" in run(pool, tmp_path).message
    finally:
        pool.close()


@pytest.fixture
def forked() -> Iterator[Pool]:
    live = Live(Watched(agents.Balancer()), make_world("CartPole-v1"), {})
    starter = Forked(lambda r, w: serve_job(live, Channel(r, w), 0))
    pool = Pool(starter, [], patience=20)
    yield pool
    pool.close()


def test_objects_of_a_program_run_in_forks_of_it(forked: Pool, tmp_path: Path) -> None:
    busy = threading.Event()
    thread = threading.Thread(target=busy.wait)
    thread.start()
    try:
        job = run(forked, tmp_path, 10)
        assert job.status == "done", job.message
        assert len((tmp_path / LOG_NAME).read_text().splitlines()) == 10
    finally:
        busy.set()
        thread.join()


def test_forks_that_die_are_noticed(tmp_path: Path) -> None:
    live = Live(Watched(agents.Exits()), make_world("CartPole-v1"), {})
    pool = Pool(Forked(lambda r, w: serve_job(live, Channel(r, w), 0)), [], patience=20)
    try:
        assert "ended with status 7" in run(pool, tmp_path).message
    finally:
        pool.close()
