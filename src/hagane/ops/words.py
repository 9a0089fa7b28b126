"""Words that attributes may be: another one would be taken for none of them, or for the default."""

from __future__ import annotations

from collections.abc import Mapping

from hagane.ops.context import InferContext

_PADDING = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
_LOSS = ("mean", "sum", "none")
_ORDER = ("DCR", "CRD")
_AFTER = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
_KERNEL = ("LINEAR", "POLY", "RBF", "SIGMOID")
_ROUNDING = ("up", "down", "nearest")

_COORDINATES = (
    "half_pixel",
    "half_pixel_symmetric",
    "pytorch_half_pixel",
    "align_corners",
    "asymmetric",
    "tf_half_pixel_for_nn",
    "tf_crop_and_resize",
)

# Attributes that have the same words wherever they are.
_ANYWHERE = {"auto_pad": _PADDING, "post_transform": _AFTER}

# Operator -> attribute -> the words that it may be. Some type rules look at others themselves.
_OF: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "BitShift": {"direction": ("LEFT", "RIGHT")},
    "Cast": {"round_mode": _ROUNDING},
    "CastLike": {"round_mode": _ROUNDING},
    "CastMap": {
        "cast_to": ("TO_FLOAT", "TO_STRING", "TO_INT64"),
        "map_form": ("DENSE", "SPARSE"),
    },
    "CausalConvWithState": {"activation": ("none", "silu", "swish")},
    "DepthToSpace": {"mode": _ORDER},
    "GridSample": {
        "mode": ("linear", "bilinear", "nearest", "cubic", "bicubic"),
        "padding_mode": ("zeros", "border", "reflection"),
    },
    "ImageDecoder": {"pixel_format": ("RGB", "BGR", "Grayscale")},
    "LinearAttention": {"update_rule": ("linear", "gated", "delta", "gated_delta")},
    "NegativeLogLikelihoodLoss": {"reduction": _LOSS},
    "Normalizer": {"norm": ("MAX", "L1", "L2")},
    "Resize": {
        "coordinate_transformation_mode": _COORDINATES,
        "keep_aspect_ratio_policy": ("stretch", "not_larger", "not_smaller"),
        "mode": ("nearest", "linear", "cubic"),
        "nearest_mode": ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    },
    "RoiAlign": {
        "coordinate_transformation_mode": ("half_pixel", "output_half_pixel"),
        "mode": ("avg", "max"),
    },
    "SVMClassifier": {"kernel_type": _KERNEL},
    "SVMRegressor": {"kernel_type": _KERNEL},
    "SoftmaxCrossEntropyLoss": {"reduction": _LOSS},
    "SpaceToDepth": {"mode": _ORDER},
    "StringNormalizer": {"case_change_action": ("NONE", "LOWER", "UPPER")},
    "TensorScatter": {"mode": ("linear", "circular")},
    "TfIdfVectorizer": {"mode": ("TF", "IDF", "TFIDF")},
    "TreeEnsembleRegressor": {"aggregate_function": ("SUM", "AVERAGE", "MIN", "MAX")},
}


def check_words(ctx: InferContext) -> None:
    """Refuse attributes that are none of the words that their operator knows.

    Raises:
        TypeInferenceError: One of them, with those words.
    """
    own = _OF.get(ctx.op.name, {})
    for name, value in ctx.attributes.items():
        words = own.get(name) or _ANYWHERE.get(name)
        if words is not None and isinstance(value, str) and value not in words:
            ctx.fail(f"expected {name} to be {', '.join(words)}, got '{value}'")
