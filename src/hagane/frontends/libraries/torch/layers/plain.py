"""Layers of ``torch.nn``: their attributes, and the functions that they apply."""

from __future__ import annotations

from hagane.frontends.libraries.table import View
from hagane.frontends.libraries.torch.functions.arrays.shaping import flatten, unflatten
from hagane.frontends.libraries.torch.functions.networks import embedding
from hagane.frontends.libraries.torch.functions.numbers.products import linear
from hagane.frontends.libraries.torch.layers.layer import layer, made_as, weight
from hagane.frontends.libraries.torch.operands import (
    need_tensor,
    shape_of,
)
from hagane.frontends.libraries.torch.table import TORCH
from hagane.frontends.python.interpret.core import Core
from hagane.frontends.python.values.values import Value


@layer("Linear")
class Linear:
    """``input @ weight.T + bias``."""

    @staticmethod
    def init(
        t: Core, in_features: Value, out_features: Value, bias: Value = True,
        device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made = {"dtype": dtype, "device": device}
        return {
            "in_features": in_features, "out_features": out_features,
            "weight": weight(t, out_features, in_features, **made),
            "bias": weight(t, out_features, **made) if bias else None,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return linear(t, input, self.weight, self.bias)


@layer("LazyLinear")
class LazyLinear:
    """A linear layer whose input features are those of the first input."""

    @staticmethod
    def init(
        t: Core, out_features: Value, bias: Value = True, device: Value = None, dtype: Value = None
    ) -> dict[str, Value]:
        """Return the attributes."""
        made = {"dtype": dtype, "device": device}
        return {
            "in_features": 0, "out_features": out_features, "weight": weight(t, 0, **made),
            "bias": weight(t, out_features, **made) if bias else None,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        if self.in_features == 0:
            self.in_features = found = shape_of(t, input)[-1]
            self.weight = weight(t, self.out_features, found, **made_as(self.weight))
        return linear(t, input, self.weight, self.bias)


@layer("Bilinear")
class Bilinear:
    """``x1 A x2 + b``."""

    @staticmethod
    def init(
        t: Core, in1_features: Value, in2_features: Value, out_features: Value, bias: Value = True,
        device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        made = {"dtype": dtype, "device": device}
        return {
            "in1_features": in1_features, "in2_features": in2_features,
            "out_features": out_features,
            "weight": weight(t, out_features, in1_features, in2_features, **made),
            "bias": weight(t, out_features, **made) if bias else None,
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input1: Value, input2: Value) -> Value:
        """Apply the layer."""
        given = [input1, input2, self.weight, self.bias]
        return t.call_library("torch.nn.functional.bilinear", given)


@layer("PReLU")
class PReLU:
    """max(0, x) + weight * min(0, x)."""

    @staticmethod
    def init(
        t: Core, num_parameters: Value = 1, init: Value = 0.25, device: Value = None,
        dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        own = weight(t, num_parameters, dtype=dtype, device=device)
        return {"num_parameters": num_parameters, "init": init, "weight": own}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return t.call_library("torch.nn.functional.prelu", [input, self.weight])


@layer("Identity")
class Identity:
    """Returns its input."""

    @staticmethod
    def init(t: Core, *_: Value, **__: Value) -> dict[str, Value]:
        """Return no attributes."""
        return {}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Return the input."""
        return t.wrap(input)


@layer("Flatten")
class Flatten:
    """Joins axes."""

    @staticmethod
    def init(t: Core, start_dim: Value = 1, end_dim: Value = -1) -> dict[str, Value]:
        """Return the attributes."""
        return {"start_dim": start_dim, "end_dim": end_dim}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return flatten(t, input, self.start_dim, self.end_dim)


@layer("Unflatten")
class Unflatten:
    """Splits an axis."""

    @staticmethod
    def init(t: Core, dim: Value, unflattened_size: Value) -> dict[str, Value]:
        """Return the attributes."""
        return {"dim": dim, "unflattened_size": unflattened_size}

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return unflatten(t, input, self.dim, self.unflattened_size)


@layer("Embedding")
class Embedding:
    """Rows of a table."""

    @staticmethod
    def init(t: Core, num_embeddings: Value, embedding_dim: Value, padding_idx: Value = None,
             max_norm: Value = None, norm_type: Value = 2.0, scale_grad_by_freq: Value = False,
             sparse: Value = False, _weight: Value = None, _freeze: Value = False,
             device: Value = None, dtype: Value = None) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {
            "num_embeddings": num_embeddings, "embedding_dim": embedding_dim,
            "padding_idx": padding_idx, "max_norm": max_norm, "norm_type": norm_type,
            "scale_grad_by_freq": scale_grad_by_freq, "sparse": sparse,
            "weight": weight(t, num_embeddings, embedding_dim, dtype=dtype, device=device),
        }  # fmt: skip

    @staticmethod
    def forward(t: Core, self: View, input: Value) -> Value:
        """Apply the layer."""
        return embedding.embedding(
            t, input, self.weight, self.get("padding_idx", None), self.get("max_norm", None),
            scale_grad_by_freq=self.get("scale_grad_by_freq", False),
        )  # fmt: skip


@TORCH.function("nn.EmbeddingBag.from_pretrained")
def bags_from_pretrained(
    t: Core, embeddings: Value, freeze: Value = True, max_norm: Value = None,
    norm_type: Value = 2.0, scale_grad_by_freq: Value = False, mode: Value = "mean",
    sparse: Value = False, include_last_offset: Value = False, padding_idx: Value = None,
) -> Value:  # fmt: skip
    """Return a layer of sums or means with given rows."""
    table = need_tensor(t, embeddings, "embeddings")
    rows, features = shape_of(t, table, 2, "embeddings")
    settings = {"mode": mode, "include_last_offset": include_last_offset,
                "padding_idx": padding_idx}  # fmt: skip
    made = t.call_library("torch.nn.EmbeddingBag", [rows, features, max_norm], settings)
    table.parameter = True
    t.heap[made]["weight"] = table
    return made


@TORCH.function("nn.Embedding.from_pretrained")
def from_pretrained(
    t: Core, embeddings: Value, freeze: Value = True, padding_idx: Value = None,
    max_norm: Value = None, norm_type: Value = 2.0, scale_grad_by_freq: Value = False,
    sparse: Value = False,
) -> Value:  # fmt: skip
    """Return an embedding with given rows."""
    table = need_tensor(t, embeddings, "embeddings")
    rows, features = shape_of(t, table, 2, "embeddings")
    made = t.call_library("torch.nn.Embedding", [rows, features, padding_idx])
    table.parameter = True
    t.heap[made]["weight"] = table
    return made


@layer("EmbeddingBag")
class EmbeddingBag:
    """Sums or means of rows of a table."""

    @staticmethod
    def init(
        t: Core, num_embeddings: Value, embedding_dim: Value, max_norm: Value = None,
        norm_type: Value = 2.0, scale_grad_by_freq: Value = False, mode: Value = "mean",
        sparse: Value = False, _weight: Value = None, include_last_offset: Value = False,
        padding_idx: Value = None, device: Value = None, dtype: Value = None,
    ) -> dict[str, Value]:  # fmt: skip
        """Return the attributes."""
        return {
            "num_embeddings": num_embeddings, "embedding_dim": embedding_dim,
            "weight": weight(t, num_embeddings, embedding_dim, dtype=dtype, device=device),
            "max_norm": max_norm, "norm_type": norm_type, "sparse": sparse,
            "scale_grad_by_freq": scale_grad_by_freq,
            "mode": mode, "include_last_offset": include_last_offset, "padding_idx": padding_idx,
        }  # fmt: skip

    @staticmethod
    def forward(
        t: Core, self: View, input: Value, offsets: Value = None, per_sample_weights: Value = None
    ) -> Value:
        """Apply the layer."""
        return embedding.embedding_bag(
            t, input, self.weight, offsets, self.max_norm, mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=self.include_last_offset, padding_idx=self.padding_idx,
        )  # fmt: skip
