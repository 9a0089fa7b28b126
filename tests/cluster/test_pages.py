"""The pages that a run and a comparison leave behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from hagane.cli import main
from hagane.tools.cluster.report.compare import paired, readable
from hagane.tools.cluster.report.page import MAX_NODES, page
from hagane.tools.cluster.report.plots import plot
from hagane.tools.cluster.sim.config import load_config
from hagane.tools.cluster.sim.setup import prepare


def test_numbers_are_readable() -> None:
    assert [readable(v) for v in (0.98765, 1e-6, 999.94, 240_500.4, -1234.0)] == [
        *("0.9877", "1e-06", "999.9", "240,500", "-1,234")
    ]
    assert readable(0.5, "+") == "+0.5"
    assert readable(5000.0, "+") == "+5,000"


def test_a_comparisons_page_labels_means_and_keeps_all_text_inside() -> None:
    found = [
        paired("waiting_seconds.mean", [(240_500.0, 202_200.0), (230_000.0, 190_000.0)]),
        paired("preempted", [(0.0, 0.0), (0.0, 0.0)]),
    ]
    text = plot(found, "a<b.yaml", "b.yaml", 0.9)
    assert "a&lt;b.yaml" in text
    assert "90% confidence interval" in text
    assert "mean of\n  2 seeds" in text
    assert ">235,250</text>" in text
    assert "no difference" in text
    assert "{{" not in text
    # Eleven units a letter of 11 px hold the labels beside the lines.
    for x, anchor, label in re.findall(
        r'<text x="(\d+)" (text-anchor="end" )?y="[^"]+">([^<]+)<', text
    ):
        width = 7 * len(label)
        assert int(x) - width >= 0 if anchor else int(x) + width <= 280
    heights = [float(y) for y in re.findall(r'y[12]="([\d.]+)"', text)]
    assert all(0 <= y <= 110 for y in heights)


def test_a_reports_page_needs_nothing_else_and_shows_every_node(tmp_path: Path) -> None:
    nodes = [
        {"metadata": {"name": f"n{i}"}, "status": {"allocatable": {"cpu": 4, "memory": "8Gi"}}}
        for i in range(MAX_NODES + 5)
    ]
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(
            {
                "cluster": nodes,
                "submitters": [
                    {"kind": "uniform", "low": 1, "high": 2, "count": 20}
                    | {"job": {"kind": "philly"}}
                ],
                "until": 100,
                "output": {"directory": "out", "formats": ["csv"], "every": 20, "html": True},
            }
        )
    )
    prepare(load_config(tmp_path / "config.yaml")).run()
    text = (tmp_path / "out" / "report.html").read_text()
    assert "{{" not in text
    assert '"each":2' in text
    assert '"n0 to n1"' in text
    assert '"n604"' in text
    assert "605 nodes" in text
    assert "Reasons for waiting" in text
    for outside in ("http://", "https://", "src=", "<link"):
        assert outside not in text


def test_a_reports_page_says_why_pods_wait_and_waited(tmp_path: Path) -> None:
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": {"hagane.dev/duration-seconds": "50"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
        }
        for name, cpu in (("first", 3), ("second", 3), ("huge", 9))
    ]
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    nodes = [{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 4, "memory": "8Gi"}}}]
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(
            {
                "cluster": nodes,
                "objects": ["pods.yaml"],
                "until": 200,
                "output": {"directory": "out", "formats": ["csv"], "html": True},
            }
        )
    )
    prepare(load_config(tmp_path / "config.yaml")).run()
    text = (tmp_path / "out" / "report.html").read_text()
    assert "<td>NodeResourcesFit</td><td>1</td><td>1</td><td>50</td>" in text


def test_text_cannot_leave_the_pages_script() -> None:
    text = page({"scheduler": "</script><b>"}, [], ["</script>"], [])
    assert text.count("</script>") == 1


def test_a_comparisons_table_fits_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    config = {
        "cluster": [
            {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": 8, "memory": "64Gi"}}}
        ],
        "submitters": [
            {"kind": "poisson", "rate": 0.01, "count": 20, "job": {"kind": "openb"}},
        ],
        "until": 5000,
    }
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump(config))
    page = tmp_path / "plot.html"
    words = [str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml"), "--seeds", "2"]
    with pytest.raises(SystemExit):
        main(["cluster", "compare", *words, "--plot", str(page)])
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "queue_length.mean" in text
    assert "dominant_share.max" in text
    assert "no difference" in page.read_text()
