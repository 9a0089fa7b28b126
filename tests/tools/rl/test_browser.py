"""The page in a real browser, where one is installed (Chromium and the package ``playwright``)."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import AGENTS, serving

SNAPSHOTS = Path(__file__).parents[3] / "examples" / "rl" / "agents"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("needs Chromium")
    with api.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


def until(page: Any, condition: str, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(100)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_agents_are_rolled_out_compared_explained_and_exported(
    chromium: Any, theme: str, tmp_path: Path
) -> None:
    agents = [str(SNAPSHOTS / name) for name in ("dqn-bricks.onnx", "dqn-bricks-early.onnx")]
    said: list[str] = []
    with serving(tmp_path, *agents) as served:
        page = chromium.new_page(viewport={"width": 1300, "height": 900}, color_scheme=theme)
        page.on("console", lambda m: said.append(m.text) if m.type in ("error", "warning") else 0)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda r: said.append(r.url) if served.base not in r.url else 0)
        page.goto(served.address)
        until(page, "document.getElementById('agent').options.length === 2")
        page.fill("#seed", "4")
        page.fill("#step-count", "60")
        page.click("#compare")
        until(page, "document.querySelectorAll('.view').length === 2")
        until(page, "document.getElementById('step-total').textContent === 'of 60'")
        until(page, "document.querySelectorAll('#jobs progress').length === 0")
        page.locator("#scrub").focus()
        for _ in range(12):
            page.keyboard.press("ArrowRight")
        until(page, "document.getElementById('step-number').value === '12'")
        until(page, "document.querySelector('.view dd').textContent === '12'")
        page.select_option("#method", "greydanus")
        page.fill("#explain-from", "11")
        page.fill("#explain-to", "13")
        page.click("#explain-form button.main")
        page.wait_for_selector("#explanation details", timeout=90_000)
        assert "Sanity checks" in page.inner_text("#explanation")
        page.fill("#where", "reward > 0")
        page.click("#search-form button")
        page.wait_for_selector("#found p")
        page.click("#export-form button")
        page.wait_for_selector("#exported a", timeout=90_000)
        page.set_viewport_size({"width": 380, "height": 800})
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        page.close()
    assert said == []


def test_a_long_log_is_scrubbed(chromium: Any, tmp_path: Path) -> None:
    from .test_logs import line, written

    folder = tmp_path / "rollouts" / "20200101T000000.000000"
    folder.mkdir(parents=True)
    written(folder, *(line(i, action_values=[i % 7, i % 5]) for i in range(100_000)))
    with serving(tmp_path, str(SNAPSHOTS / "dqn-cartpole.onnx")) as served:
        page = chromium.new_page()
        page.goto(served.address)
        until(page, "document.getElementById('step-total').textContent === 'of 100000'")
        page.fill("#step-number", "77777")
        page.keyboard.press("Tab")
        until(page, "document.querySelector('.view dd').textContent === '77777'")
        until(page, "document.getElementById('panes').textContent.includes('Values of actions')")
        page.close()


def test_there_is_a_pane_for_every_kind_of_output(chromium: Any, tmp_path: Path) -> None:
    with serving(tmp_path, f"{AGENTS}:Everything", "--env", "CartPole-v1") as served:
        made = served.roll_out(5)
        served.finished(made["job"])
        page = chromium.new_page()
        page.goto(served.address)
        until(page, "document.querySelectorAll('#panes .card').length === 11")
        assert "cannot be drawn" not in page.inner_text("#panes")
        assert "0.1 ± 1, took 1" in page.inner_text("#panes")
        page.close()


def test_an_agent_that_shows_nothing_is_said_to(chromium: Any, tmp_path: Path) -> None:
    with serving(tmp_path, f"{AGENTS}:in_line") as served:
        made = served.roll_out(5)
        served.finished(made["job"])
        page = chromium.new_page()
        page.goto(served.address)
        until(page, "document.getElementById('panes').textContent.includes('shows nothing')")
        assert "No picture of this step." in page.inner_text("#stage")
        page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(chromium: Any, theme: str, tmp_path: Path) -> None:
    axe = os.environ.get("HAGANE_AXE")
    if not axe:
        pytest.skip("needs axe-core: HAGANE_AXE=.../axe.min.js")
    agents = [str(SNAPSHOTS / name) for name in ("dqn-bricks.onnx", "dqn-bricks-early.onnx")]
    with serving(tmp_path, *agents) as served:
        # Its script is no part of the page, whose policy would refuse it.
        context = chromium.new_context(color_scheme=theme, bypass_csp=True)
        page = context.new_page()
        page.goto(served.address)
        until(page, "document.getElementById('agent').options.length === 2")
        page.fill("#step-count", "30")
        page.click("#compare")
        until(page, "document.querySelectorAll('.view').length === 2")
        until(page, "document.querySelectorAll('#jobs progress').length === 0")
        page.click("#explain-form button.main")
        page.wait_for_selector("#explanation details", timeout=90_000)
        assert "dqn-bricks.onnx" in page.inner_text(".view:first-child h3")
        assert "dqn-bricks-early.onnx" in page.inner_text(".view:last-child h3")
        assert "stay" in page.inner_text("#charts")
        page.evaluate("source => (0, eval)(source)", Path(axe).read_text(encoding="utf-8"))
        for width in (1300, 380):
            page.set_viewport_size({"width": width, "height": 900})
            found = page.evaluate("axe.run()")
            assert len(found["passes"]) > 30
            assert [(fault["id"], fault["nodes"]) for fault in found["violations"]] == []
        context.close()
