"""Pods whose volumes can be reached from some nodes only."""

from __future__ import annotations

import pytest

from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.model.documents import parse_documents
from hagane.tools.cluster.model.objects import Objects, Pod
from hagane.tools.cluster.model.read_objects import collect, parse_objects

DISK = """
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk, labels: {topology.kubernetes.io/zone: west__east}}
spec:
  capacity: {storage: 10Gi}
  nodeAffinity:
    required:
      nodeSelectorTerms:
      - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [west]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], volumeName: disk, resources: {requests: {storage: 10Gi}}}
"""
WAITING = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
allowedTopologies:
- matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [east]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce]}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers: [{name: c}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
"""


def zones(pod: Pod) -> set[str]:
    required = pod.node_affinity.required
    names = ("east", "west")
    return {
        zone
        for zone in names
        if required is None
        or any(term.matches(zone, {"topology.kubernetes.io/zone": zone}) for term in required)
    }


def only(text: str, known: Objects | None = None) -> Pod:
    (pod,) = collect(parse_documents(text, "pod.yaml"), known).pods
    return pod


def test_a_bound_claim_keeps_a_pod_at_its_volume() -> None:
    assert zones(only(f"{DISK}\n---{POD}")) == {"west"}
    assert zones(only(POD, parse_objects(DISK))) == {"west"}


def test_a_claim_that_waits_keeps_a_pod_in_the_topologies_of_its_class() -> None:
    assert zones(only(f"{WAITING}\n---{POD}")) == {"east"}
    free = WAITING.partition("allowedTopologies")[0] + "---" + WAITING.partition("---")[2]
    assert zones(only(f"{free}\n---{POD}")) == {"east", "west"}


def test_what_the_pod_and_all_of_its_volumes_need_holds_at_once() -> None:
    both = POD.replace(
        "volumes: [", "volumes: [{name: w, persistentVolumeClaim: {claimName: other}}, "
    )
    other = WAITING.replace("name: data", "name: other")
    assert zones(only(f"{DISK}\n---{other}\n---{both}")) == set()
    near = POD.replace("spec:", "spec:\n  nodeSelector: {disk: fast}")
    assert only(f"{DISK}\n---{near}").node_selector == (("disk", "fast"),)


def test_templates_of_sets_and_ephemeral_volumes_claim_too() -> None:
    parts = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: s}
spec:
  replicas: 2
  selector: {matchLabels: {app: s}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: fast}}]
  template:
    metadata: {labels: {app: s}}
    spec:
      containers: [{name: c}]
      volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
"""
    (workload,) = parse_objects(f"{WAITING}\n---{parts}").workloads
    assert zones(workload.template) == {"east"}
    own = "ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}"
    pod = POD.replace("persistentVolumeClaim: {claimName: data}", own)
    assert zones(only(f"{WAITING}\n---{pod}")) == {"east"}


def test_a_pod_that_runs_needs_no_claim() -> None:
    assert only(POD.replace("spec:", "spec:\n  nodeName: n")).node_name == "n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POD, "there is no PersistentVolumeClaim 'default/data': add it to the manifests"),
        (DISK.partition("---")[2] + "\n---" + POD, "there is no PersistentVolume 'disk'"),
        (
            WAITING.partition("---")[2] + "\n---" + POD,
            r"there is no default StorageClass \(classes: none\): add the class",
        ),
        (
            WAITING.replace("WaitForFirstConsumer", "Immediate") + "\n---" + POD,
            "its class 'fast' binds claims before pods are placed, which is not simulated",
        ),
        (
            WAITING.replace("csi.example.com", "kubernetes.io/no-provisioner") + "\n---" + POD,
            "the choice among the volumes of class 'fast', which makes none, is not simulated",
        ),
        (DISK.replace("nodeAffinity", "nodeAffinty"), "did you mean 'nodeAffinity'"),
        (DISK + "\n---" + DISK, "duplicate PersistentVolume 'disk'"),
    ],
)
def test_volumes_that_are_not_simulated_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidManifest, match=message):
        parse_objects(text)


def test_claims_of_devices_and_quotas_are_refused_by_name_and_place() -> None:
    claims = POD.replace(
        "volumes: [{", "resourceClaims: [{name: gpu, resourceClaimName: one}]\n  volumes: [{"
    )
    with pytest.raises(InvalidManifest, match=r"spec\.resourceClaims: .*"):
        parse_objects(DISK + "---" + claims)
    quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {hard: {pods: 4}}\n"
    told = "unsupported kind 'ResourceQuota': quotas refuse pods .*scheduler 'drf'.*leave it out"
    with pytest.raises(InvalidManifest, match=told):
        parse_objects(quota)
    devices = "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\n"
    with pytest.raises(
        InvalidManifest, match=r":2:1: .*'ResourceSlice': devices .*example.com/gpu"
    ):
        parse_objects(devices)
