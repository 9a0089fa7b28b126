"""Names of Chainer that only have types here, with the reason; capture refuses them by it."""

from __future__ import annotations

_REASONS = {
    "no operator of ONNX computes this function of numbers": (
        "polygamma", "zeta",
    ),
    "it draws random numbers": ("black_out", "gumbel_softmax", "negative_sampling"),
    "whitening needs eigenvectors, which no operator of ONNX computes": (
        "decorrelated_batch_normalization", "fixed_decorrelated_batch_normalization",
    ),
    "graphs know no strides": ("as_strided",),
    "its corrections follow from running moments that it changes; outside of training use "
    "fixed_batch_renormalization": ("batch_renormalization",),
    "it computes again in the backward pass, of which graphs have none": ("forget",),
}  # fmt: skip
UNCOMPUTED = {
    f"chainer.functions.{name}": reason for reason, names in _REASONS.items() for name in names
} | {
    "chainer.links.DecorrelatedBatchNormalization.forward": "whitening needs eigenvectors, which "
    "no operator of ONNX computes",
    "chainer.links.Parameter.forward": "use the parameter itself, as in self.parameter.W",
}
