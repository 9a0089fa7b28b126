"""Links of Chainer that normalise."""

from __future__ import annotations

from functools import partial

from hagane.frontends.libraries.chainer import normalising
from hagane.frontends.libraries.chainer.configuration import settings
from hagane.frontends.libraries.chainer.links import layer
from hagane.frontends.libraries.chainer.operands import (
    FLOAT,
    axes,
    computed,
    computed_parts,
    dtype_of,
    is_lazy,
    lazy_parameter,
    made,
    shape_of,
    sizes,
    variable,
)
from hagane.frontends.libraries.chainer.operands import parameter as weight
from hagane.frontends.libraries.memory.writing import renew
from hagane.frontends.libraries.numpy.operands import new
from hagane.frontends.libraries.table import View
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.report.findings import CheckError
from hagane.frontends.python.values.values import Tensor, Value
from hagane.ops.functions.chainer.normalizing import unbiased_moments
from hagane.ops.functions.sums.normalizing import moved
from hagane.ops.functions.tensors.shapes import filled_like
from hagane.symbolic import Dim, product


@layer("BatchNormalization")
class BatchNormalization:
    """Normalises by the statistics of the batch, or by those kept."""

    @staticmethod
    def init(
        t: Core,
        size: Value = None,
        decay: Value = 0.9,
        eps: Value = 2e-5,
        dtype: Value = None,
        use_gamma: Value = True,
        use_beta: Value = True,
        initial_gamma: Value = None,
        initial_beta: Value = None,
        axis: Value = None,
        initial_avg_mean: Value = None,
        initial_avg_var: Value = None,
    ) -> dict[str, Value]:
        """Return the attributes."""
        if size is None and axis is None:
            t.fail("value", "RuntimeError: size or axis is required")
        found = {"axis": axis, "decay": decay, "eps": eps, "N": 0, "use_gamma": bool(use_gamma),
                 "use_beta": bool(use_beta), "dtype": dtype}  # fmt: skip
        shape = None if size is None else sizes(t, size)
        return {**found, **BatchNormalization.parameters(t, found, shape)}

    @staticmethod
    def parameters(t: Core, found: dict[str, Value], shape: list[Dim] | None) -> dict[str, Value]:
        """Return the parameters and statistics for a shape."""
        dtype = dtype_of(t, found["dtype"], FLOAT)
        made_: dict[str, Value] = {}
        for name, used in (("gamma", "use_gamma"), ("beta", "use_beta")):
            fresh = lazy_parameter(t) if shape is None else weight(t, *shape, dtype=dtype)
            made_[name] = fresh if found[used] else None
        for name in ("avg_mean", "avg_var"):
            made_[name] = None if shape is None else new(t, dtype, shape)
        return made_

    @staticmethod
    def forward(t: Core, self: View, x: Value, finetune: Value = False, **_: Value) -> Value:
        """Apply the layer."""
        found = variable(t, x)
        if self.get("avg_mean", None) is None:
            gone = axes(t, self.axis, len(shape_of(t, found)), found)
            rest = [n for i, n in enumerate(shape_of(t, found)) if i not in gone]
            names = {k: getattr(self, k) for k in ("use_gamma", "use_beta", "dtype")}
            for name, value in BatchNormalization.parameters(t, names, rest).items():
                setattr(self, name, value)
        mean, var = (variable(t, getattr(self, name), name) for name in ("avg_mean", "avg_var"))
        scale, shift = self.get("gamma", None), self.get("beta", None)
        scale = computed(t, mean, filled_like, mean, 1) if scale is None else scale
        shift = computed(t, mean, filled_like, mean, 0) if shift is None else shift
        if not settings(t)["train"]:
            return normalising.normalised_by(t, found, scale, shift, mean, var, self.axis, self.eps)
        y = normalising.normalised(t, found, scale, shift, self.axis, self.eps)
        if t.emit.builds:
            BatchNormalization.move(t, self, found, scale, finetune)
        return y

    @staticmethod
    def move(t: Core, self: View, x: Tensor, gamma: Value, finetune: Value) -> None:
        """Note how the running mean and variance change."""
        if finetune:
            raise CheckError("capture", "finetune=True is not captured: it counts its calls")
        gone = normalising.checked(t, x, gamma, gamma, self.axis)[3]
        share = 1 - self.decay
        found = computed_parts(
            t, [self.avg_mean, self.avg_mean], unbiased_moments, x, gone, self.avg_mean.dtype
        )
        for name, new_ in zip(("avg_mean", "avg_var"), found, strict=True):
            renew(t, getattr(self, name), partial(moved, new=new_, share=share))


@layer("BatchRenormalization")
class BatchRenormalization:
    """Normalises by the statistics of the batch, corrected towards those kept."""

    @staticmethod
    def init(t: Core, size: Value, rmax: Value = 1, dmax: Value = 0, decay: Value = 0.9,
             eps: Value = 2e-5, dtype: Value = None, use_gamma: Value = True,
             use_beta: Value = True, *_: Value, **__: Value) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return BatchNormalization.init(t, size, decay, eps, dtype, use_gamma, use_beta)

    @staticmethod
    def forward(t: Core, self: View, x: Value, finetune: Value = False, **_: Value) -> Value:
        """Apply the layer."""
        if not settings(t)["train"]:
            return BatchNormalization.forward(t, self, x)
        found, scale = variable(t, x), variable(t, self.avg_mean)
        normalising.checked(t, found, scale, scale, self.get("axis", None))
        return made(t, "BatchRenormalization", [found], found.dtype, found.shape)


@layer("DecorrelatedBatchNormalization")
class DecorrelatedBatchNormalization:
    """Whitens the batch."""

    @staticmethod
    def init(t: Core, size: Value, groups: Value = 16, *_: Value, **__: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"size": size, "groups": groups}

    @staticmethod
    def forward(t: Core, self: View, x: Value, **_: Value) -> Value:
        """Apply the layer."""
        return normalising.decorrelated(t, x)


@layer("LayerNormalization")
class LayerNormalization:
    """Normalises each sample of (batch, features)."""

    @staticmethod
    def init(t: Core, size: Value = None, eps: Value = 1e-6, initial_gamma: Value = None,
             initial_beta: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        pair = [lazy_parameter(t) if size is None else weight(t, size) for _ in range(2)]
        return {"eps": eps, "gamma": pair[0], "beta": pair[1]}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        if is_lazy(self.gamma):
            count = product(shape_of(t, variable(t, x))[1:])
            self.gamma, self.beta = weight(t, count), weight(t, count)
        return normalising.layer_normalization(t, x, self.gamma, self.beta, self.eps)


@layer("GroupNormalization")
class GroupNormalization:
    """Normalises over groups of channels."""

    @staticmethod
    def init(
        t: Core, groups: Value, size: Value = None, eps: Value = 1e-5, initial_gamma: Value = None,
        initial_beta: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        pair = [lazy_parameter(t) if size is None else weight(t, size) for _ in range(2)]
        return {"groups": groups, "eps": eps, "gamma": pair[0], "beta": pair[1]}

    @staticmethod
    def forward(t: Core, self: View, x: Value) -> Value:
        """Apply the layer."""
        shape = shape_of(t, variable(t, x))
        if is_lazy(self.gamma) and len(shape) > 1:
            self.gamma, self.beta = weight(t, shape[1]), weight(t, shape[1])
        given = (self.groups, self.gamma, self.beta, self.eps)
        return normalising.group_normalization(t, x, *given)
