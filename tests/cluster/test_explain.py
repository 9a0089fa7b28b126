from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hagane.cli import main
from hagane.tools.cluster.link.serve import ExtenderService, serve_extender
from tests.cluster.manifests import node, pod
from tests.cluster.servers import answering

RESOURCES = {"cpu": "3000m", "memory": "5000"}


def explain(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    pods: object,
    *cluster: object,
    profile: object = None,
    version: str = "1.34",
) -> dict:
    words = [*written(tmp_path, pods, *cluster, profile=profile), "--kube-version", version]
    with pytest.raises(SystemExit) as end:
        main([*words, "--json"])
    assert end.value.code in (0, None)
    return json.loads(capsys.readouterr().out)


def written(tmp_path: Path, pods: object, *cluster: object, profile: object = None) -> list[str]:
    """Write the files and return the command line that explains them."""
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(cluster))
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pods))
    words = ["cluster", "explain", "--cluster", str(tmp_path / "cluster.yaml")]
    words += ["--pod", str(tmp_path / "pod.yaml")]
    if profile is not None:
        (tmp_path / "profile.yaml").write_text(yaml.safe_dump(profile))
        words += ["--profile", str(tmp_path / "profile.yaml")]
    return words


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


def extended(**verbs: str) -> dict:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"nodeCacheCapable": True, "weight": 2, **verbs}],
    }


def test_extenders_are_asked_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {
        "filter": {"NodeNames": ["a", "c"], "FailedNodes": {"b": "no licence"}},
        "prioritize": [{"Host": "a", "Score": 1}, {"Host": "c", "Score": 7}],
    }
    with answering(answers) as (url, asked):
        profile = extended(urlPrefix=url, filterVerb="filter", prioritizeVerb="prioritize")
        out = explain(tmp_path, capsys, pod("p"), node("a"), node("b"), node("c"), profile=profile)
    name = f"extender {url}"
    assert out["nodes"]["b"] == {"filters": {name: "no licence"}, "scores": {}}
    assert out["nodes"]["a"]["scores"][name] == {"raw": 1, "normalised": 10}
    assert out["nodes"]["c"]["scores"][name] == {"raw": 7, "normalised": 70}
    assert out["chosen"] == "c"
    assert [verb for verb, _ in asked] == ["filter", "prioritize"]
    assert asked[1][1]["NodeNames"] == ["a", "c"]


def test_an_extender_may_veto_preemption(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = node("n", has={"cpu": 2, "memory": "1Gi"}), pod("low", {"cpu": 2}, nodeName="n")
    wanted = pod("p", {"cpu": 2}, priority=10)
    with answering({"preempt": {"NodeNameToMetaVictims": {}}}) as (url, _):
        profile = extended(urlPrefix=url, preemptVerb="preempt")
        vetoed = explain(tmp_path, capsys, wanted, *cluster, profile=profile)
    assert vetoed["preemption"] == {"node": None, "victims": []}
    free = explain(tmp_path, capsys, wanted, *cluster)
    assert free["preemption"] == {"node": "n", "victims": ["low"]}


def test_a_served_profile_explains_itself_through_its_own_extender(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_extender(ExtenderService()) as server:
        url = server.url
        profile = {
            **extended(),
            "extenders": [{"urlPrefix": url, "filterVerb": "filter"}],
            "profiles": [{"plugins": {"filter": {"disabled": [{"name": "*"}]}}}],
        }
        out = explain(
            tmp_path,
            capsys,
            pod("p", {"cpu": 2}),
            node("small", has={"cpu": 1, "memory": "1Gi"}),
            node("large"),
            profile=profile,
        )
    assert out["nodes"]["small"]["filters"] == {f"extender {url}": "Insufficient cpu"}
    assert out["chosen"] == "large"


def test_the_table_fits_a_terminal_of_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    full = [node(f"full-{i}", has={"cpu": 1, "memory": "1Gi"}) for i in range(5)]
    roomy = [node(f"roomy-node-number-{i}", has={"cpu": 8 + i, "memory": "9Gi"}) for i in range(2)]
    words = written(tmp_path, pod("p", {"cpu": 2}), *full, *roomy, node("shut", unschedulable=True))
    with pytest.raises(SystemExit):
        main(words)
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) <= 80
    flowing = " ".join(text.replace("│", " ").split())
    # The best comes first, and nothing is cut.
    assert flowing.index("roomy-node-number-1 *") < flowing.index("roomy-node-number-0")
    for plugin in ("NodeResourcesFit 87", "TaintToleration 0 → 100"):
        assert plugin in flowing
    assert "ImageLocality" not in flowing
    assert "5: full-0, full-1, full-2, …" in flowing
    assert "NodeResourcesFit: Insufficient cpu" in flowing
    assert "NodeUnschedulable: node(s) were unschedulable" in flowing
    assert "chosen: roomy-node-number-1" in flowing
