"""What somebody sees who gets the command line or a file wrong: what, where, and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from hagane.cli import main

NODE = "kind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 1, memory: 1Gi}}\n"
POD = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)
CONFIG = "cluster: [{metadata: {name: n}, status: {allocatable: {cpu: 1}}}]\n"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Run the command, which must fail with 2 and one line, and return the line."""
    with pytest.raises(SystemExit) as end:
        main(["cluster", *words])
    error = capsys.readouterr().err.strip()
    assert end.value.code == 2
    assert error.startswith("hagane: error: ")
    assert "\n" not in error
    return error.removeprefix("hagane: error: ")


# (the cluster's file, what is said after its name)
CLUSTERS = [
    ("kind: Node\nmetadata: {name: a\n", ":3:1: not YAML: did not find expected ',' or '}'"),
    (
        NODE.replace("allocatable", "allocatble"),
        ":3:10: status.allocatble: unknown field 'allocatble' of NodeStatus; did you mean "
        "'allocatable'?",
    ),
    (
        NODE.replace("cpu: 1", "cpu: -1"),
        ":3:24: status.allocatable.cpu: quantity -1 of 'cpu' is negative: must be at least 0",
    ),
    (
        NODE.replace("cpu: 1", "cpu: 1x"),
        ":3:24: status.allocatable.cpu: quantity '1x' is malformed: expected a number with one of "
        "the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent, like "
        "'100m' or '2Gi'",
    ),
    (
        NODE + "---\n" + NODE,
        ":6:12: metadata.name: duplicate Node 'a': first at {path}:1:1",
    ),
    ("", ": expected at least one Node, got none to place a pod on"),
    (None, ": cannot be read: No such file or directory"),
]


@pytest.mark.parametrize(("text", "words"), CLUSTERS)
def test_a_wrong_cluster_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, words: str
) -> None:
    cluster, pod = tmp_path / "cluster.yaml", tmp_path / "pod.yaml"
    pod.write_text(POD)
    if text is not None:
        cluster.write_text(text)
    error = said(capsys, "explain", "--cluster", str(cluster), "--pod", str(pod))
    assert error == f"{cluster}" + words.replace("{path}", str(cluster))


def test_a_file_without_a_pod_says_what_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(NODE)
    assert said(capsys, "explain", "--cluster", str(path), "--pod", str(path)) == (
        f"{path}: expected one Pod, got 0 in a file of Node: put the pod to place into a file of "
        "its own"
    )


PROFILES = [
    (
        "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesFitt}]}}}]",
        ":2:42: profiles[0].plugins.score.enabled[0].name: unknown plugin 'NodeResourcesFitt'; "
        "did you mean 'NodeResourcesFit'?",
    ),
    (
        "apiVersion: kubescheduler.config.k8s.io/v2",
        ":2:1: apiVersion: unsupported value 'kubescheduler.config.k8s.io/v2': expected one of "
        "kubescheduler.config.k8s.io/v1beta1, kubescheduler.config.k8s.io/v1beta2, "
        "kubescheduler.config.k8s.io/v1beta3, kubescheduler.config.k8s.io/v1; did you mean "
        "'kubescheduler.config.k8s.io/v1'?",
    ),
]


@pytest.mark.parametrize(("text", "words"), PROFILES)
def test_a_wrong_profile_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    cluster, pod, profile = (tmp_path / f"{n}.yaml" for n in ("cluster", "pod", "profile"))
    cluster.write_text(NODE)
    pod.write_text(POD)
    profile.write_text(f"kind: KubeSchedulerConfiguration\n{text}\n")
    files = ["--cluster", str(cluster), "--pod", str(pod), "--profile", str(profile)]
    assert said(capsys, "explain", *files) == f"{profile}{words}"


CONFIGS = [
    ("", ": the configuration is empty"),
    (
        "cluster: []\n",
        ":1:1: cluster: expected at least one node, got none: list nodes here, or name files with "
        "some under 'objects' or a trace under 'trace'",
    ),
    (
        CONFIG + "submitters: [{kind: poison, rate: 1}]\n",
        ":2:15: submitters[0].kind: unsupported value 'poison': expected one of uniform, "
        "binomial, poisson, diurnal, bursty, users, backlog, replay, pods, rpc, python; did you "
        "mean 'poisson'?",
    ),
    (
        CONFIG + "until: soon\n",
        ":2:1: until: expected seconds or a duration like 5s, 100ms or 1h30m, got 'soon'",
    ),
]


@pytest.mark.parametrize(("text", "words"), CONFIGS)
def test_a_wrong_configuration_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert said(capsys, "run", str(path)) == f"{path}{words}"


def test_an_empty_trace_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES + "n,1000,1024,0,\n")
    pods.write_text(PODS)
    error = said(capsys, "run", "--nodes", str(nodes), "--pods", str(pods))
    assert error == f"{pods}: expected a line for every pod after the header, got none"
    nodes.write_text(NODES)
    error = said(capsys, "run", "--nodes", str(nodes), "--pods", str(pods))
    assert error == f"{nodes}: expected a line for every node after the header, got none"


def test_nothing_to_run_says_what_to_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "run") == "give either CONFIG.yaml, or both --nodes and --pods"


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["cluster", "--help"])
    assert end.value.code in (0, None)
    text = capsys.readouterr().out
    for command in ("explain", "run", "compare", "serve-extender", "serve-api"):
        assert command in text
