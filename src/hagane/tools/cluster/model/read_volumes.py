"""Volumes that pods claim, as the nodes from which they can be reached.

A claim that is bound restricts a pod to the nodes of its volume (``nodeAffinity``, or the labels of
its zone and region). One that waits for its first consumer restricts it to the topologies of its
class, in which the volume is made. Source: kube-scheduler 1.34, plugins VolumeBinding and
VolumeZone. Capacities, access modes and the number of volumes of a node are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from hagane.tools.cluster.model.documents import Place
from hagane.tools.cluster.model.objects import NodeAffinity, Pod
from hagane.tools.cluster.model.read_pod import read_node_terms
from hagane.tools.cluster.model.reader import Reader
from hagane.tools.cluster.model.schema import check_fields
from hagane.tools.cluster.model.selectors import NodeTerm, Requirement

KINDS = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass")
_ZONES = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)
_DEFAULT = "storageclass.kubernetes.io/is-default-class"

# Alternatives, of which a node meets one; None admits all nodes.
_Terms = tuple[NodeTerm, ...] | None


@dataclass(frozen=True, slots=True)
class Volumes:
    """The volumes, claims and classes of manifests, by kind and name."""

    found: Mapping[tuple[str, str], Reader] = field(default_factory=dict)

    @staticmethod
    def of(documents: Iterable[tuple[str, Any, Place]]) -> Volumes:
        """Return those among manifests, each with its kind.

        Raises:
            InvalidManifest: for a field that is wrong.
        """
        found = {}
        for kind, value, place in documents:
            if kind in KINDS:
                check_fields(value, kind, place)
                reader = Reader(value, place)
                name = reader.at("metadata").required("name")
                if kind == "PersistentVolumeClaim":
                    name = f"{reader.at('metadata').text('namespace') or 'default'}/{name}"
                found[kind, name] = reader
        return Volumes(found)

    def with_more(self, other: Volumes) -> Volumes:
        """Return these and others."""
        return Volumes({**self.found, **other.found})

    def placed(self, pod: Pod, spec: Reader, templates: Iterable[Reader] = ()) -> Pod:
        """Return a pod that goes only where its volumes can be reached; a bound one as it is.

        Args:
            pod: The pod.
            spec: The manifest's ``spec``.
            templates: The ``volumeClaimTemplates`` of its set.

        Raises:
            InvalidManifest: for a claim that is not there, or that nobody has bound.
        """
        if pod.node_name:
            return pod
        made = {each.at("metadata").text("name"): each.at("spec") for each in templates}
        required = pod.node_affinity.required
        for volume in spec.items("volumes"):
            if volume.has("persistentVolumeClaim"):
                claim = volume.at("persistentVolumeClaim")
                required = _both(required, self._claim(pod.namespace, claim, made))
            elif volume.has("ephemeral"):
                inner = volume.at("ephemeral").at("volumeClaimTemplate").at("spec")
                required = _both(required, self._made(inner))
        for claimed in made.values():
            required = _both(required, self._made(claimed))
        if required == pod.node_affinity.required:
            return pod
        return replace(pod, node_affinity=NodeAffinity(required, pod.node_affinity.preferred))

    def _claim(self, namespace: str, use: Reader, made: Mapping[str, Reader]) -> _Terms:
        name = use.required("claimName")
        if name in made:
            return None
        claim = self.found.get(("PersistentVolumeClaim", f"{namespace}/{name}"))
        if claim is None:
            raise (use.place / "claimName").error(
                f"there is no PersistentVolumeClaim '{namespace}/{name}': add it to the manifests, "
                "with its volume or class, so that the pod goes where the volume is, or take the "
                "volume out of the pod"
            )
        spec = claim.at("spec")
        volume = spec.text("volumeName")
        if not volume:
            return self._made(spec)
        bound = self.found.get(("PersistentVolume", volume))
        if bound is None:
            raise (spec.place / "volumeName").error(
                f"there is no PersistentVolume {volume!r}: add it to the manifests"
            )
        return _reach(bound)

    def _made(self, spec: Reader) -> _Terms:
        """Return where a volume can be made for a claim that has none."""
        name = spec.text("storageClassName") if spec.has("storageClassName") else self._default()
        storage = self.found.get(("StorageClass", name))
        if storage is None:
            known = ", ".join(key for kind, key in self.found if kind == "StorageClass") or "none"
            which = f"StorageClass {name!r}" if name else "default StorageClass"
            raise (spec.place / "storageClassName").error(
                f"the claim has no volumeName, and there is no {which} (classes: {known}): add "
                "the class, or bind the claim by volumeName"
            )
        if storage.text("volumeBindingMode", "Immediate") != "WaitForFirstConsumer":
            raise (spec.place / "volumeName").error(
                f"the claim is not bound, and its class {name!r} binds claims before pods are "
                "placed, which is not simulated: bind it by volumeName, or give the class "
                "volumeBindingMode: WaitForFirstConsumer"
            )
        if storage.text("provisioner") == "kubernetes.io/no-provisioner":
            raise (spec.place / "volumeName").error(
                f"the choice among the volumes of class {name!r}, which makes none, is not "
                "simulated: bind the claim by volumeName"
            )
        terms = tuple(
            NodeTerm(
                tuple(
                    Requirement(each.required("key"), "In", each.texts("values"))
                    for each in topology.items("matchLabelExpressions")
                )
            )
            for topology in storage.items("allowedTopologies")
        )
        return terms or None

    def _default(self) -> str:
        for (kind, name), reader in self.found.items():
            annotations = reader.at("metadata").at("annotations").value
            if kind == "StorageClass" and str(annotations.get(_DEFAULT)).lower() == "true":
                return name
        return ""


def _reach(volume: Reader) -> _Terms:
    """Return the nodes from which a volume can be reached."""
    terms = read_node_terms(volume.at("spec").at("nodeAffinity").at("required"))
    labels = volume.at("metadata").labels("labels")
    zones = tuple(
        Requirement(key, "In", tuple(labels[key].split("__"))) for key in _ZONES if key in labels
    )
    return _both(terms or None, (NodeTerm(zones),) if zones else None)


def _both(first: _Terms, second: _Terms) -> _Terms:
    """Return the alternatives that meet one of each."""
    if first is None or second is None:
        return second if first is None else first
    return tuple(
        NodeTerm((*a.expressions, *b.expressions), (*a.fields, *b.fields))
        for a, b in product(first, second)
        # A term without any requirement matches no node, and so does what it is part of.
        if (a.expressions or a.fields) and (b.expressions or b.fields)
    )
