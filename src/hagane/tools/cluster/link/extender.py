"""The client side of scheduler extenders: kube-scheduler asks them over HTTP.

Source: ``pkg/scheduler/extender.go`` and ``k8s.io/kube-scheduler/extender/v1``. The structs carry
no JSON tags, so fields have their Go names (``Pod``, ``NodeNames``); an extender's scores from 0
to 10 count times its weight times 10.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hagane.tools.cluster.errors import ExtenderFault
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.preemption import Candidate
from hagane.tools.cluster.kube.profile import ExtenderConfig, Profile
from hagane.tools.cluster.kube.scheduler import KubeScheduler
from hagane.tools.cluster.link.wire import node_object, pod_object
from hagane.tools.cluster.model.objects import Pod
from hagane.tools.cluster.state import Cluster, Ints

MAX_EXTENDER_SCORE = 10
_SCALE = 100 // MAX_EXTENDER_SCORE


@dataclass(slots=True)
class Extender:
    """One extender, reached over HTTP."""

    config: ExtenderConfig

    @property
    def name(self) -> str:
        """The name in explanations."""
        return f"extender {self.config.url}"

    @property
    def weight(self) -> int:
        """The factor of its scores."""
        return self.config.weight

    def wants(self, pod: Pod) -> bool:
        """Return whether a pod requests something the extender manages, or it manages all."""
        return not self.config.resources or any(r in pod.requests for r in self.config.resources)

    def filter(self, cycle: Cycle, rows: Ints) -> tuple[Ints, dict[str, str]]:
        """Return the rows that the extender leaves, and its reasons by node.

        Raises:
            ExtenderFault: if it fails and is not ignorable.
        """
        config = self.config
        if not config.filter_verb or not self.wants(cycle.pod):
            return rows, {}
        try:
            answer = self._send(config.filter_verb, self._args(cycle, rows))
            if not isinstance(answer, dict):
                raise ExtenderFault(f"{self._name('filter')}: expected an object, got {answer!r}")
            if answer.get("Error"):
                raise ExtenderFault(f"{self._name('filter')}: {answer['Error']}")
            kept = self._names(answer)
        except ExtenderFault:
            if config.ignorable:
                return rows, {}
            raise
        known = {cycle.cluster.records[r].node.name: r for r in rows.tolist()}
        for name in kept:
            if name not in known:
                raise ExtenderFault(
                    f"{self._name('filter')}: claims a filtered node {name!r} which is not found "
                    "in the input node list"
                )
        reasons = {
            str(node): str(reason)
            for field in ("FailedNodes", "FailedAndUnresolvableNodes")
            for node, reason in (answer.get(field) or {}).items()
        }
        kept_set = set(kept)
        keep = [r for name, r in known.items() if name in kept_set]
        return np.array(keep, dtype=np.int64), reasons

    def prioritize(self, cycle: Cycle, rows: Ints, totals: Ints) -> Ints:
        """Return the totals with the extender's scores added; its failure adds nothing."""
        scores = self.scores(cycle, rows)
        return totals if scores is None else totals + scores * self.config.weight * _SCALE

    def scores(self, cycle: Cycle, rows: Ints) -> Ints | None:
        """Return the extender's scores of rows, from 0 to 10; None if it gives none or fails."""
        config = self.config
        if not config.prioritize_verb or not self.wants(cycle.pod):
            return None
        try:
            answer = self._send(config.prioritize_verb, self._args(cycle, rows))
            scores = {str(e["Host"]): int(e["Score"]) for e in answer or ()}
        except (ExtenderFault, KeyError, TypeError, ValueError):
            # kube-scheduler logs it and goes on without.
            return None
        found = [scores.get(cycle.cluster.records[r].node.name, 0) for r in rows.tolist()]
        return np.array(found, dtype=np.int64)

    def preempt(
        self, pod: Pod, candidates: Sequence[Candidate], cluster: Cluster
    ) -> list[Candidate]:
        """Return the candidates that the extender leaves, victims as it wants them.

        Raises:
            ExtenderFault: if it fails and is not ignorable.
        """
        config = self.config
        if not config.preempt_verb or not self.wants(pod):
            return list(candidates)
        args: dict[str, Any] = {"Pod": pod_object(pod)}
        if config.names_only:
            args["NodeNameToMetaVictims"] = {
                c.node: {
                    "Pods": [{"UID": v.uid or v.key} for v in c.victims],
                    "NumPDBViolations": c.violations,
                }
                for c in candidates
            }
        else:
            args["NodeNameToVictims"] = {
                c.node: {
                    "Pods": [pod_object(v) for v in c.victims],
                    "NumPDBViolations": c.violations,
                }
                for c in candidates
            }
        try:
            answer = self._send(config.preempt_verb, args)
            left = answer["NodeNameToMetaVictims"] or {}
            out = []
            for name, victims in left.items():
                on_node = cluster.record(name).pods.values()
                by_uid = {p.uid or p.key: p for p in on_node}
                chosen = tuple(by_uid[str(v["UID"])] for v in victims.get("Pods") or ())
                out.append(Candidate(name, chosen, int(victims.get("NumPDBViolations") or 0)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if config.ignorable:
                return list(candidates)
            raise ExtenderFault(f"{self._name('preempt')}: unusable answer: {error!r}") from None
        except ExtenderFault:
            if config.ignorable:
                return list(candidates)
            raise
        return [c for c in out if c.victims]

    def bind(self, pod: Pod, node: str) -> bool:
        """Let the extender bind; return whether it is one that does.

        Raises:
            ExtenderFault: if it refuses.
        """
        if not self.config.bind_verb or not self.wants(pod):
            return False
        args = {
            "PodName": pod.name,
            "PodNamespace": pod.namespace,
            "PodUID": pod.uid or pod.key,
            "Node": node,
        }
        answer = self._send(self.config.bind_verb, args)
        if isinstance(answer, dict) and answer.get("Error"):
            raise ExtenderFault(f"{self._name('bind')}: {answer['Error']}")
        return True

    def _args(self, cycle: Cycle, rows: Ints) -> dict[str, Any]:
        nodes = [cycle.cluster.records[r].node for r in rows.tolist()]
        args: dict[str, Any] = {"Pod": pod_object(cycle.pod), "Nodes": None, "NodeNames": None}
        if self.config.names_only:
            args["NodeNames"] = [n.name for n in nodes]
        else:
            args["Nodes"] = {
                "kind": "NodeList",
                "apiVersion": "v1",
                "metadata": {},
                "items": [node_object(n) for n in nodes],
            }
        return args

    def _names(self, answer: dict[str, Any]) -> list[str]:
        if self.config.names_only and answer.get("NodeNames") is not None:
            return [str(n) for n in answer["NodeNames"]]
        nodes = answer.get("Nodes")
        if nodes is None:
            raise ExtenderFault(
                f"{self._name('filter')}: the answer has neither NodeNames nor Nodes"
            )
        items = nodes.get("items", nodes.get("Items")) or []
        return [str(item["metadata"]["name"]) for item in items]

    def _name(self, verb: str) -> str:
        return f"extender {self.config.url} ({verb})"

    def _send(self, verb: str, args: dict[str, Any]) -> Any:
        url = f"{self.config.url.rstrip('/')}/{verb}"
        if not url.startswith(("http://", "https://")):
            raise ExtenderFault(f"extender {url}: expected http:// or https://")
        request = urllib.request.Request(
            url, json.dumps(args).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=self.config.timeout) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
            raise ExtenderFault(f"extender {url}: answered with code {error.code}") from None
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "reason", error)
            raise ExtenderFault(
                f"extender {url}: no answer within {self.config.timeout:g} s: {reason}"
            ) from None
        except ValueError:
            raise ExtenderFault(f"extender {url}: the answer is not JSON") from None


class ExtendedScheduler(KubeScheduler):
    """kube-scheduler with the extenders of its profile."""

    def __init__(self, profile: Profile, seed: int = 0):
        self.extenders = [Extender(config) for config in profile.extenders]
        super().__init__(
            profile,
            seed,
            tuple(lambda c, rows, e=e: e.filter(c, rows)[0] for e in self.extenders),  # type: ignore[misc]
            tuple(e.prioritize for e in self.extenders),
        )

    def choose_candidate(self, cycle: Cycle, candidates: list[Candidate]) -> list[Candidate]:
        """Let the extenders look through the candidates for preemption."""
        for extender in self.extenders:
            candidates = extender.preempt(cycle.pod, candidates, cycle.cluster)
        return candidates

    def binding(self, pod: Pod, node: str) -> None:
        """Let the first extender that binds do so."""
        any(extender.bind(pod, node) for extender in self.extenders)


def extended_scheduler(profile: Profile, seed: int = 0) -> ExtendedScheduler:
    """Return kube-scheduler with the extenders of its profile."""
    return ExtendedScheduler(profile, seed)
