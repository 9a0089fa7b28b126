from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hagane.cli import main
from tests.cluster.manifests import node, pod

RESOURCES = {"cpu": "3000m", "memory": "5000"}


def explain(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pods: object,
    *cluster: object,
    profile: object = None,
    version: str = "1.34",
) -> dict:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(cluster))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pods))
    words = ["cluster", "explain", "--cluster", str(tmp_path / "cluster.yaml")]
    words += ["--pod", str(tmp_path / "pod.yaml"), "--kube-version", version, "--json"]
    if profile is not None:
        (tmp_path / "profile.yaml").write_text(yaml.safe_dump(profile))
        words += ["--profile", str(tmp_path / "profile.yaml")]
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code in (0, None)
    return json.loads(capsys.readouterr().out)


def test_the_scores_of_the_differently_sized_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = explain(
        tmp_path,
        capsys,
        pod("p", RESOURCES),
        node("small", has={"cpu": "4", "memory": "10000"}),
        node("large", has={"cpu": "6", "memory": "10000"}),
    )
    assert set(out) == {"nodes", "chosen", "preemption"}
    scores = {n: out["nodes"][n]["scores"]["NodeResourcesFit"] for n in out["nodes"]}
    assert scores == {
        "small": {"raw": 37, "normalised": 37},
        "large": {"raw": 50, "normalised": 50},
    }
    assert out["chosen"] == "large"
    assert out["preemption"] == {"node": None, "victims": []}


def test_every_filter_that_fails_is_named_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = explain(
        tmp_path,
        capsys,
        pod("p", {"cpu": 9, "memory": "64Gi"}, nodeSelector={"disk": "ssd"}),
        node(
            "n", unschedulable=True, taints=[{"key": "gpu", "value": "a", "effect": "NoSchedule"}]
        ),
    )
    assert out["nodes"]["n"] == {
        "filters": {
            "NodeUnschedulable": "node(s) were unschedulable",
            "TaintToleration": "node(s) had untolerated taint {gpu: a}",
            "NodeAffinity": "node(s) didn't match Pod's node affinity/selector",
            "NodeResourcesFit": "Insufficient cpu, Insufficient memory",
        },
        "scores": {},
    }
    assert out["chosen"] is None


def test_preemption_names_the_node_and_the_fewest_victims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = explain(
        tmp_path,
        capsys,
        pod("p", {"cpu": 4}, priority=10),
        node("n", has={"cpu": 4, "memory": "1Gi"}),
        node("m", has={"cpu": 4, "memory": "1Gi"}),
        pod("low", {"cpu": 2}, priority=1, nodeName="n"),
        pod("mid", {"cpu": 2}, priority=5, nodeName="n"),
        pod("other", {"cpu": 4}, priority=1, nodeName="m"),
    )
    assert out["chosen"] is None
    assert out["preemption"] == {"node": "m", "victims": ["other"]}
