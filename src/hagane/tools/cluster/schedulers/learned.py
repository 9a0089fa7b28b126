"""A placement policy read from an ONNX model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from hagane.runtime import InferenceSession
from hagane.tools.cluster.errors import InvalidManifest
from hagane.tools.cluster.kube.framework import Cycle
from hagane.tools.cluster.kube.profile import Profile
from hagane.tools.cluster.schedulers.greedy import Greedy
from hagane.tools.cluster.state import CPU, MEMORY, Cluster, Ints

FEATURES = (
    "cpu_free",
    "memory_free",
    "gpu_free",
    "cpu_requested",
    "memory_requested",
    "gpu_requested",
    "pods",
    "largest_device",
)


class Learned(Greedy):
    """Asks a model for the best node: features (nodes, 8) float32 in, one score a node out.

    All features are shares of the node's resources, and ``pods`` is the count over 100.

    Args:
        model: path of the ONNX model.
        profile: the filters.
        seed: unused; ties go to the first row.

    Raises:
        InvalidManifest: if the model's input does not take the features.
    """

    name = "onnx"

    def __init__(self, model: Path, profile: Profile | None = None, seed: int = 0):
        super().__init__(profile, seed)
        self.session = InferenceSession(model)
        inputs = self.session.get_inputs()
        shape = list(inputs[0].shape) if len(inputs) == 1 else []
        if len(shape) != 2 or shape[1] != len(FEATURES):
            raise InvalidManifest(
                f"{model}: expected one input of shape [nodes, {len(FEATURES)}] "
                f"({', '.join(FEATURES)}), got {[i.shape for i in inputs]}"
            )
        self.input = inputs[0].name

    def pick(self, cycle: Cycle, rows: Ints) -> tuple[int, tuple[int, ...] | None]:
        """Return the row that the model scores highest."""
        values = features(cycle.cluster, cycle, rows)
        scores = np.asarray(self.session.run(None, {self.input: values})[0]).reshape(-1)
        return int(rows[int(scores.argmax())]), None


def features(cluster: Cluster, cycle: Cycle, rows: Ints) -> npt.NDArray[np.float32]:
    """Return the features of rows for a pod, (rows, 8) float32, in the order of FEATURES."""
    out = np.zeros((rows.size, len(FEATURES)), dtype=np.float32)
    offered = np.maximum(cluster.allocatable[:, rows], 1)
    free = cluster.allocatable[:, rows] - cluster.requested[:, rows]
    gpu = next(
        (
            cluster.resources[name]
            for name in ("nvidia.com/gpu", "alibabacloud.com/gpu-milli")
            if name in cluster.resources
        ),
        None,
    )
    for place, index in ((0, CPU), (1, MEMORY), (2, gpu)):
        if index is None:
            continue
        name = next(n for n, i in cluster.resources.items() if i == index)
        out[:, place] = free[index] / offered[index]
        out[:, place + 3] = cycle.pod.requests.get(name, 0) / offered[index]
    out[:, 6] = cluster.counts[rows] / 100
    if cluster.gpu_free.shape[1]:
        out[:, 7] = np.maximum(cluster.gpu_free[rows], 0).max(axis=1) / 1000
    return out
