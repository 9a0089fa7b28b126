"""Configurations, manifests and everything that can be wrong with them; what runs leave behind."""

from __future__ import annotations

import csv
import json
import random
import statistics
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from hagane.cli import main
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.configuration import load_profile
from hagane.tools.cluster.kube.profile import parse_version
from hagane.tools.cluster.model import parse_objects
from hagane.tools.cluster.model.documents import parse_documents
from hagane.tools.cluster.model.quantity import amount, format_amount
from hagane.tools.cluster.model.read_objects import collect
from hagane.tools.cluster.report.compare import paired, student_quantile
from hagane.tools.cluster.submitters import arrivals
from hagane.tools.cluster.submitters.jobs import openb_jobs, philly_jobs
from tests.cluster.manifests import node, objects, pod

ORIGINAL = """
logLevel: debug
tick: 10
startClock: 2019-01-01T00:00:00+09:00
metricsTick: 60
metricsLogger:
- dest: stdout
  formatter: table
- dest: FOLDER/kubesim.log
  formatter: JSON
- dest: FOLDER/kubesim-hr.log
  formatter: humanReadable
cluster:
- metadata:
    name: node-0
    labels:
      beta.kubernetes.io/os: simulated
    annotations:
      foo: bar
  spec:
    unschedulable: false
  status:
    allocatable:
      cpu: 4
      memory: 8Gi
      nvidia.com/gpu: 1
      pods: 2
- metadata:
    name: node-1
  status:
    allocatable:
      cpu: 8
      memory: 16Gi
      nvidia.com/gpu: 2
      pods: 4
"""


def hagane(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        main([*words])
    return int(end.value.code or 0)  # type: ignore[arg-type]


def test_the_originals_example_runs_and_writes_its_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(ORIGINAL.replace("FOLDER", str(tmp_path)))
    # The original is given its configuration without the ending.
    assert hagane("cluster", "run", str(tmp_path / "config"), "--json") == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["submitted"] == 1025
    assert "Node             Pods   Termi- Failed Capa-  cpu" in out.err
    lines = [json.loads(t) for t in (tmp_path / "kubesim.log").read_text().splitlines()]
    assert lines[0]["Clock"] == "2019-01-01T00:01:00+09:00"
    for line in lines:
        assert set(line) == {"Clock", "Nodes", "Pods", "Queue"}
        assert set(line["Queue"]) == {"PendingPodsNum"}
        for held in line["Nodes"].values():
            assert set(held) == {
                "Allocatable",
                "RunningPodsNum",
                "TerminatingPodsNum",
                "FailedPodsNum",
                "TotalResourceRequest",
                "TotalResourceUsage",
            }
        for held in line["Pods"].values():
            assert set(held) == {
                "ResourceRequest",
                "ResourceLimit",
                "ResourceUsage",
                "BoundAt",
                "Node",
                "ExecutedSeconds",
                "Priority",
                "Status",
            }
    assert any(line["Pods"] for line in lines)
    text = (tmp_path / "kubesim-hr.log").read_text()
    assert text.startswith("Metrics 2019-01-01T00:01:00+09:00\n  Nodes\n    node-0: Pods ")


def written(tmp_path: Path, name: str = "c.yaml", **fields: Any) -> Path:
    nodes = [
        {
            "metadata": {"name": f"n{i}"},
            "status": {
                "allocatable": {"cpu": 64, "memory": "512Gi", "nvidia.com/gpu": 8, "pods": 20}
            },
        }
        for i in range(2)
    ]
    path = tmp_path / name
    path.write_text(yaml.safe_dump({"cluster": nodes, **fields}))
    return path


POISSON = {"kind": "poisson", "rate": 0.001, "count": 30, "job": {"kind": "philly"}}


def test_tables_in_three_formats_and_a_page_are_left_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'cluster'")
    output = {"directory": "out", "formats": ["csv", "parquet", "gnuplot"], "every": "1h"}
    path = written(tmp_path, submitters=[POISSON], output=output)
    assert hagane("cluster", "run", str(path), "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    out = tmp_path / "out"
    pods = list(csv.DictReader((out / "pods.csv").read_text().splitlines()))
    assert len(pods) == summary["succeeded"] == 30
    assert {p["outcome"] for p in pods} == {"succeeded"}
    table = parquet.read_table(out / "pods.parquet")
    assert table.num_rows == 30
    assert table.column("waiting").to_pylist() == [float(p["waiting"]) for p in pods]
    series = list(csv.DictReader((out / "metrics.csv").read_text().splitlines()))
    columns = (out / "metrics.dat").read_text().splitlines()
    assert columns[0].startswith("# time queue_length running gpu_allocated")
    assert len(columns) - 1 == len(series) > 10
    page = (out / "report.html").read_text()
    assert "{{" not in page
    assert "src=" not in page
    data = page[page.index("const data = ") + 13 :].split(";\n", 1)[0]
    assert len(json.loads(data)["frames"]) > 10
    events = [json.loads(t) for t in (out / "events.jsonl").read_text().splitlines()]
    assert sum(e["kind"] == "bind" for e in events) == 30


def test_compare_pairs_by_seed_and_gives_intervals(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = {**POISSON, "rate": 0.01}
    a = written(tmp_path, "a.yaml", submitters=[crowd], scheduler={"kind": "fifo"})
    b = written(tmp_path, "b.yaml", submitters=[crowd], scheduler={"kind": "shortest-remaining"})
    plots = tmp_path / "plots.html"
    assert (
        hagane("cluster", "compare", str(a), str(b), "--seeds", "4", "--json", "--plot", str(plots))
        == 0
    )
    out = json.loads(capsys.readouterr().out)
    waiting = out["metrics"]["waiting_seconds.mean"]
    assert len(waiting["pairs"]) == 4
    assert waiting["difference"] == pytest.approx(
        statistics.mean(y - x for x, y in waiting["pairs"])
    )
    assert waiting["low"] < waiting["difference"] < waiting["high"]
    assert waiting["difference"] < 0
    assert "waiting seconds: mean" in plots.read_text()
    assert hagane("cluster", "compare", str(a), str(a), "--seeds", "2", "--json") == 0
    same = json.loads(capsys.readouterr().out)["metrics"]["slowdown.mean"]
    assert same["difference"] == same["low"] == same["high"] == 0


def test_students_quantiles_are_those_of_the_tables() -> None:
    # Abramowitz and Stegun, table 26.10.
    for freedom, value in ((1, 12.706), (2, 4.303), (9, 2.262), (19, 2.093), (30, 2.042)):
        assert student_quantile(0.975, freedom) == pytest.approx(value, abs=5e-4)
    item = paired("m", [(1, 2), (1, 3), (1, 4)])
    assert (item.difference, item.significant) == (2, False)
    assert item.high - item.difference == pytest.approx(4.303 / 3**0.5, abs=1e-3)


QUANTITIES = [
    ("cpu", "100m", 100),
    ("cpu", 1, 1000),
    ("cpu", 0.5, 500),
    ("cpu", "1.5", 1500),
    ("cpu", "1e3", 1_000_000),
    ("cpu", "0.0001", 1),
    ("memory", "1Gi", 1 << 30),
    ("memory", "128974848", 128974848),
    ("memory", "129e6", 129_000_000),
    ("memory", "129M", 129_000_000),
    ("memory", "123Mi", 123 << 20),
    ("memory", "1.5k", 1500),
    ("memory", ".5Ki", 512),
    ("memory", "100m", 1),
    ("memory", "2E", 2 * 10**18),
    ("nvidia.com/gpu", 3, 3),
    ("pods", "+5", 5),
]


@pytest.mark.parametrize(("resource", "text", "value"), QUANTITIES)
def test_quantities_count_as_kubernetes_counts(resource: str, text: object, value: int) -> None:
    assert amount(resource, text) == value
    assert amount(resource, format_amount(resource, value)) == value


@pytest.mark.parametrize("text", ["", "1GiB", "ten", "1 Gi", "1e", "--1", "0x10", "1Kk", "1e99"])
def test_malformed_quantities_are_refused(text: str) -> None:
    with pytest.raises(InvalidManifest, match="quantity"):
        amount("memory", text)


def test_negative_and_huge_quantities_are_refused() -> None:
    with pytest.raises(InvalidManifest, match=r"'-1' of 'cpu' is negative: must be at least 0"):
        amount("cpu", "-1")
    with pytest.raises(InvalidManifest, match="exceeds 64 bits"):
        amount("memory", "16E")


BAD = [
    (
        pod("p", containers=[{"name": "c", "imagePolicy": "x"}]),
        r"t.yaml:1:\d+: spec.containers\[0\].imagePolicy: unknown field 'imagePolicy' of "
        r"Container; did you mean 'imagePullPolicy'\?",
    ),
    (pod("p", {"cpu": "-2"}), r"resources.requests.cpu: quantity '-2' of 'cpu' is negative"),
    (pod("p", {"memory": "12XB"}), r"requests.memory: quantity '12XB' is malformed"),
    (pod("p", restartPolicy="Sometimes"), r"spec.restartPolicy: unsupported value 'Sometimes'"),
    (pod("p", priorityClassName="gold"), r"no PriorityClass named 'gold': known are system-"),
    (pod("p", terminationGracePeriodSeconds=-1), r"-1 is out of range: expected at least 0"),
    (pod("p", tolerations=[{"key": "a", "operator": "Sure"}]), r"unsupported value 'Sure'"),
    (pod("p", annotations={"simSpec": "- seconds: 1"}), r"simSpec\[0\].resourceUsage: required"),
    (pod("p", annotations={"simSpec": "- seconds: [1"}), r"simSpec: simSpec:2:\d+: not YAML"),
    (pod("p", annotations={"hagane.dev/duration-seconds": "long"}), r"expected seconds"),
    (node("n", taints=[{"key": "a"}]), r"spec.taints\[0\].effect: required value is missing"),
    ({"kind": "Widget", "metadata": {"name": "w"}}, r"kind: unsupported kind 'Widget'"),
    ({"metadata": {"name": "w"}}, r"kind: required value is missing"),
    ({"kind": "Pod", "metadata": {}, "spec": {}}, r"metadata.name: required value is missing"),
]


@pytest.mark.parametrize("operator", ["In", "NotIn"])
def test_values_that_no_label_can_have_are_refused_in_selectors(operator: str) -> None:
    """Upstream: node_affinity_test.go, a pod with an invalid value in its affinity term."""
    rule = {"key": "zone", "operator": operator, "values": ["a", "@#$%^"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    with pytest.raises(
        InvalidManifest, match=r"values\[1\]: expected a label's value .* '@#\$%\^'"
    ):
        objects(pod(affinity=affinity))


@pytest.mark.parametrize(("manifest", "message"), BAD)
def test_what_is_wrong_with_a_manifest_is_named(manifest: Any, message: str) -> None:
    with pytest.raises(InvalidManifest, match=message):
        parse_objects(json.dumps(manifest), "t.yaml")


def test_places_are_those_in_the_file() -> None:
    text = (
        "kind: Node\nmetadata: {name: n}\n---\nkind: Pod\nmetadata:\n  name: p\nspec:\n  oops: 1\n"
    )
    with pytest.raises(InvalidManifest, match=r"^f.yaml:8:3: spec.oops: unknown field 'oops'"):
        parse_objects(text, "f.yaml")
    with pytest.raises(InvalidManifest, match=r"^f.yaml:2:\d+: not YAML"):
        parse_objects("a: b\n c: d\n", "f.yaml")


def test_duplicate_names_are_named_with_the_first_place() -> None:
    with pytest.raises(InvalidManifest, match=r"duplicate Node 'n': first at test.yaml:1:"):
        objects(node("n"), node("n"))
    with pytest.raises(InvalidManifest, match=r"duplicate Pod 'default/p'"):
        objects(pod("p"), pod("p"))
    assert len(objects(pod("p"), pod("p", namespace="other")).pods) == 2


def test_priority_classes_resolve_wherever_they_stand() -> None:
    gold = {
        "kind": "PriorityClass",
        "metadata": {"name": "gold"},
        "value": 7,
        "preemptionPolicy": "Never",
    }
    default = {
        "kind": "PriorityClass",
        "metadata": {"name": "d"},
        "value": 3,
        "globalDefault": True,
    }
    known = objects(pod("p", priorityClassName="gold"), pod("q"), gold, default)
    assert [(p.priority, p.preemption_policy) for p in known.pods] == [
        (7, "Never"),
        (3, "PreemptLowerPriority"),
    ]
    beside = parse_documents(json.dumps(pod("r", priorityClassName="gold")), "beside")
    assert collect(beside, known).pods[0].priority == 7


WRONG = [
    ({"tick": 0}, r"tick: 0 is out of range: expected at least 1"),
    ({"startClock": "yesterday"}, r"startClock: expected an RFC 3339 time"),
    ({"metricsLogger": [{"dest": "x", "formatter": "XML"}]}, r"formatter: unsupported value 'XML'"),
    ({"tics": 1}, r"tics: unknown field 'tics'; did you mean 'tick'\?"),
    ({"logLevel": "loud"}, r"log level 'loud' is not supported"),
    ({"scheduler": {"kind": "magic"}}, r"scheduler.kind: unsupported value 'magic'"),
    ({"scheduler": {"kind": "fifo", "quotas": []}}, r"unknown field 'quotas' of scheduler kind"),
    ({"scheduler": {"kind": "python", "class": "nope:X"}}, r"class: expected module:Class"),
    ({"submitters": [{"kind": "poisson", "rate": -1, "count": 1}]}, r"rate: -1 is out of range"),
    ({"submitters": [{"kind": "poisson", "rate": 1}]}, r"an endless submitter: give count or"),
    ({"submitters": [{"kind": "poison"}]}, r"submitters\[0\].kind: unsupported value 'poison'"),
    ({"events": [{"at": 1, "action": "explode", "node": "n0"}]}, r"unsupported value 'explode'"),
    ({"output": {"formats": ["xls"]}}, r"formats\[0\]: unsupported value 'xls'"),
    ({"cluster": [{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]}, "duplicate node 'a'"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_what_is_wrong_with_a_configuration_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], message: str
) -> None:
    import re

    path = written(tmp_path, **fields)
    assert hagane("cluster", "run", str(path)) == 2
    error = capsys.readouterr().err
    assert "Traceback" not in error
    assert re.search(message, error), error
    assert str(path) in error


def profiled(tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "profile.yaml"
    top = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(yaml.safe_dump({**top, **fields}))
    return path


def with_args(name: str, args: dict[str, Any]) -> dict[str, Any]:
    return {"profiles": [{"pluginConfig": [{"name": name, "args": args}]}]}


def with_resources(*pairs: tuple[str, int]) -> dict[str, Any]:
    resources = [{"name": n, "weight": w} for n, w in pairs]
    return with_args("NodeResourcesFit", {"scoringStrategy": {"resources": resources}})


def shaped(*points: tuple[int, int]) -> dict[str, Any]:
    shape = [{"utilization": u, "score": s} for u, s in points]
    return with_args(
        "NodeResourcesFit",
        {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "requestedToCapacityRatio": {"shape": shape},
            }
        },
    )


PROFILES = [
    (with_resources(("memory", -1), ("cpu", 1)), r"scoringStrategy.resources\[0\].weight"),
    (with_resources(("memory", 1), ("cpu", 0)), r"scoringStrategy.resources\[1\].weight"),
    (with_resources(("memory", 1), ("cpu", 101)), r"weight of cpu is 101: not in valid range"),
    (shaped(), r"at least one point must be specified"),
    (shaped((50, 1), (40, 2)), r"utilization values must be sorted: 40 follows 50"),
    (shaped((0, 11)), r"score: 11 is out of range"),
    (with_args("NodeResourcesFit", {"scoringStrategie": {}}), r"did you mean 'scoringStrategy'"),
    (with_args("NodeResourceFit", {}), r"unknown plugin 'NodeResourceFit'; did you mean 'Node"),
    ({"profiles": [{"plugins": {"score": {"enabled": [{"name": "Magic"}]}}}]}, "unknown plugin"),
    ({"percentageOfNodesToScore": 101}, r"101 is out of range"),
    ({"podInitialBackoffSeconds": 20}, r"podMaxBackoffSeconds: 10 is out of range"),
    ({"profiles": [{"schedulerName": "a"}, {"schedulerName": "a"}]}, "duplicate profile 'a'"),
    ({"kind": "Pod"}, "expected KubeSchedulerConfiguration, got 'Pod'"),
    (
        {"extenders": [{"urlPrefix": "http://x", "httpTimeout": "soon"}]},
        "expected seconds or a duration",
    ),
]


@pytest.mark.parametrize(("fields", "message"), PROFILES)
def test_what_is_wrong_with_a_profile_is_named(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidManifest, match=message):
        load_profile(profiled(tmp_path, **fields))


def test_a_profile_enables_disables_and_weighs(tmp_path: Path) -> None:
    score = {
        "disabled": [{"name": "ImageLocality"}, {"name": "NodeResourcesFit"}],
        "enabled": [{"name": "NodeResourcesFit", "weight": 5}],
    }
    plugins = {
        "score": score,
        "filter": {"disabled": [{"name": "NodePorts"}]},
        "postFilter": {"disabled": [{"name": "*"}]},
    }
    extender = {
        "urlPrefix": "http://x",
        "filterVerb": "f",
        "httpTimeout": "100ms",
        "managedResources": [{"name": "a.b/c", "ignoredByScheduler": True}],
    }
    found = load_profile(profiled(tmp_path, profiles=[{"plugins": plugins}], extenders=[extender]))
    weights = {plugin.name: weight for plugin, weight in found.scores}
    assert weights == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "NodeResourcesFit": 5,
    }
    assert "NodePorts" not in [f.name for f in found.filters]
    assert not found.preemption
    assert found.extenders[0].timeout == 0.1
    everything = {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeAffinity"}]}}
    found = load_profile(profiled(tmp_path, profiles=[{"plugins": everything}]))
    assert [(p.name, w) for p, w in found.scores] == [("NodeAffinity", 1)]


def test_versions_are_read_and_refused() -> None:
    assert parse_version("v1.29.3") == (1, 29)
    for text in ("2.0", "1", "latest"):
        with pytest.raises(InvalidManifest, match=r"expected one like 1\.34"):
            parse_version(text)


def test_arrival_processes_have_their_rates() -> None:
    def rate(times: Any, count: int = 20000) -> float:
        found = list(islice(times, count))
        assert found == sorted(found)
        return count / found[-1]

    chance = random.Random(1)
    assert rate(arrivals.poisson(chance, 2.0)) == pytest.approx(2, rel=0.03)
    assert rate(arrivals.uniform(chance, 0, 1)) == pytest.approx(2, rel=0.03)
    assert rate(arrivals.binomial(chance, 10, 0.4, 2.0)) == pytest.approx(2, rel=0.03)
    assert rate(arrivals.diurnal(chance, 2.0, 0.9, 100.0)) == pytest.approx(2, rel=0.03)
    bursts = arrivals.bursty(chance, (0.5, 5.0), (200, 100))
    assert rate(bursts) == pytest.approx((0.5 * 200 + 5 * 100) / 300, rel=0.1)


def test_generators_follow_the_published_shares() -> None:
    make = openb_jobs(random.Random(1))
    pods = [make(str(i)) for i in range(30000)]
    whole = [p.gpu.count if p.gpu else 0 for p in pods]
    for count, share in ((1, 85.7), (0, 13.4), (2, 0.2), (4, 0.18), (8, 0.54)):
        assert 100 * whole.count(count) / len(pods) == pytest.approx(share, abs=0.7)
    shared = sum(p.gpu is not None and p.gpu.milli < 1000 for p in pods)
    assert 100 * shared / len(pods) == pytest.approx(37.8, abs=1)
    import math

    logs = [math.log(max(p.duration or 0, 1e-3)) for p in pods]
    assert statistics.mean(logs) == pytest.approx(6.56, abs=0.05)
    assert statistics.stdev(logs) == pytest.approx(1.88, abs=0.05)
    philly = [philly_jobs(random.Random(2))(str(i)) for i in range(3)]
    assert all(p.requests["nvidia.com/gpu"] in (1, 2, 4, 8) for p in philly)


@pytest.mark.parametrize("kind", ["uniform", "binomial", "poisson", "diurnal", "bursty", "users"])
def test_every_ready_submitter_runs_from_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    template = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}}
    job = {"template": template, "duration": {"law": "exponential", "a": 30}}
    path = written(tmp_path, submitters=[{"kind": kind, "count": 25, "job": job}])
    assert hagane("cluster", "run", str(path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["succeeded"] == 25
