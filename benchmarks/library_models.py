"""Small models of transformers, timm, torchvision and diffusers, as their packages ship them.

Each is made without weights from the network; its inputs are types with named sizes.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from library_transformers import TRANSFORMERS


@dataclass(frozen=True)
class Case:
    """A model and its inputs.

    Attributes:
        library: The package.
        name: The model's name, unique in its package.
        make: Makes the model.
        inputs: Types of its arguments by name; integers are drawn below ``limit``.
        limit: One more than the largest integer input.
        sizes: Values of the named sizes, three of each.
        asks: Finds the inputs once the model is made.
    """

    library: str
    name: str
    make: Callable[[], Any]
    inputs: Mapping[str, Any]
    limit: int = 50
    sizes: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    asks: Callable[[Any], Mapping[str, Any]] | None = None


SIZES = {"batch": (2, 3, 5), "seq": (7, 12, 5), "target": (4, 6, 9), "past": (3, 5, 8)}
SIZES |= {"height": (64, 96, 128), "width": (96, 64, 128), "frames": (400, 640, 480)}

# Name: width of the pictures.
TIMM = {
    "resnet18": 32, "resnet50d": 32, "resnetv2_50": 32, "seresnet18": 32, "ecaresnet26t": 32,
    "resnest14d": 32, "res2net50_26w_4s": 32, "skresnet18": 32, "dpn48b": 32, "vgg11_bn": 32,
    "efficientnet_b0": 32, "tf_efficientnetv2_b0": 32, "mobilenetv3_small_100": 32,
    "mobilenetv2_050": 32, "mobilenetv4_conv_small": 32, "mnasnet_100": 32, "lcnet_050": 32,
    "convnext_atto": 32, "convnextv2_atto": 32, "vit_tiny_patch16_224": 224,
    "deit_tiny_patch16_224": 224, "deit3_small_patch16_224": 224, "beit_base_patch16_224": 224,
    "swin_tiny_patch4_window7_224": 224, "mixer_s32_224": 224, "resmlp_12_224": 224,
    "gmlp_s16_224": 224, "poolformer_s12": 64, "regnety_002": 32, "regnetx_002": 32,
    "densenet121": 32, "ghostnet_050": 32, "hrnet_w18_small": 64, "levit_128s": 224,
    "xcit_nano_12_p16_224": 224, "cait_xxs24_224": 224, "coat_tiny": 224, "crossvit_tiny_240": 240,
    "edgenext_xx_small": 64, "efficientformer_l1": 224, "fastvit_t8": 64, "repvgg_a0": 32,
    "pvt_v2_b0": 64, "mobilevit_xxs": 64, "inception_v4": 96, "xception41": 64,
}  # fmt: skip

CLASSIFIERS = {
    "alexnet": 64, "vgg11": 32, "vgg13_bn": 32, "resnet18": 32, "resnet50": 32,
    "resnext50_32x4d": 32, "wide_resnet50_2": 32, "squeezenet1_1": 64, "densenet121": 32,
    "googlenet": 64, "inception_v3": 80, "mobilenet_v2": 32, "mobilenet_v3_small": 32,
    "mnasnet0_5": 32, "shufflenet_v2_x0_5": 32, "efficientnet_b0": 32, "efficientnet_v2_s": 32,
    "regnet_x_400mf": 32, "regnet_y_400mf": 32, "convnext_tiny": 32, "vit_b_32": 224, "swin_t": 32,
    "swin_v2_t": 64, "maxvit_t": 224,
}  # fmt: skip
TORCHVISION = {
    **CLASSIFIERS, "fcn_resnet50": 64, "deeplabv3_mobilenet_v3_large": 64,
    "lraspp_mobilenet_v3_large": 64, "r3d_18": 32,
}  # fmt: skip
DETECTORS = (
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "retinanet_resnet50_fpn",
    "ssdlite320_mobilenet_v3_large",
    "fcos_resnet50_fpn",
    "maskrcnn_resnet50_fpn",
)

_LATENT = {"sample": "float32[batch, 4, 16, 16]", "timestep": "int64[batch]"}
_SOUGHT = {**_LATENT, "encoder_hidden_states": "float32[batch, seq, 16]"}
_UNET = {
    "sample_size": 16,
    "in_channels": 4,
    "out_channels": 4,
    "layers_per_block": 1,
    "block_out_channels": (16, 32),
    "norm_num_groups": 8,
}
_DIT = {"num_attention_heads": 2, "attention_head_dim": 8, "num_layers": 2}
DIFFUSERS: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "unet_2d": (
        "UNet2DModel",
        {
            **_UNET,
            "down_block_types": ("DownBlock2D", "AttnDownBlock2D"),
            "up_block_types": ("AttnUpBlock2D", "UpBlock2D"),
            "attention_head_dim": 8,
        },
        _LATENT,
    ),
    "unet_2d_condition": (
        "UNet2DConditionModel",
        {
            **_UNET,
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
            "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
            "cross_attention_dim": 16,
            "attention_head_dim": 8,
        },
        _SOUGHT,
    ),
    "autoencoder_kl": (
        "AutoencoderKL",
        {
            "block_out_channels": (16, 32),
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "norm_num_groups": 8,
        },
        {"sample": "float32[batch, 3, 16, 16]"},
    ),
    "autoencoder_tiny": (
        "AutoencoderTiny",
        {
            "encoder_block_out_channels": (8, 8),
            "decoder_block_out_channels": (8, 8),
            "num_encoder_blocks": (1, 1),
            "num_decoder_blocks": (1, 1),
        },
        {"sample": "float32[batch, 3, 16, 16]"},
    ),
    "vq_model": (
        "VQModel",
        {
            "block_out_channels": (16, 32),
            "down_block_types": ("DownEncoderBlock2D",) * 2,
            "up_block_types": ("UpDecoderBlock2D",) * 2,
            "norm_num_groups": 8,
            "latent_channels": 3,
            "num_vq_embeddings": 16,
        },
        {"sample": "float32[batch, 3, 16, 16]"},
    ),
    "dit": (
        "DiTTransformer2DModel",
        {
            **_DIT,
            "in_channels": 4,
            "out_channels": 4,
            "sample_size": 16,
            "patch_size": 2,
            "num_embeds_ada_norm": 50,
            "norm_num_groups": 4,
        },
        {
            "hidden_states": "float32[batch, 4, 16, 16]",
            "timestep": "int64[batch]",
            "class_labels": "int64[batch]",
        },
    ),
    "pixart": (
        "PixArtTransformer2DModel",
        {
            **_DIT,
            "in_channels": 4,
            "out_channels": 8,
            "sample_size": 16,
            "cross_attention_dim": 16,
            "caption_channels": 16,
            "norm_num_groups": 4,
            "use_additional_conditions": False,
        },
        {
            "hidden_states": "float32[batch, 4, 16, 16]",
            "encoder_hidden_states": "float32[batch, seq, 16]",
            "timestep": "int64[batch]",
            "added_cond_kwargs": {"resolution": None, "aspect_ratio": None},
        },
    ),
    "sd3": (
        "SD3Transformer2DModel",
        {
            **_DIT,
            "sample_size": 16,
            "in_channels": 4,
            "out_channels": 4,
            "joint_attention_dim": 16,
            "caption_projection_dim": 16,
            "pooled_projection_dim": 16,
            "pos_embed_max_size": 16,
        },
        {
            "hidden_states": "float32[batch, 4, 16, 16]",
            "encoder_hidden_states": "float32[batch, seq, 16]",
            "pooled_projections": "float32[batch, 16]",
            "timestep": "int64[batch]",
        },
    ),
    "flux": (
        "FluxTransformer2DModel",
        {
            **_DIT,
            "num_single_layers": 2,
            "in_channels": 4,
            "joint_attention_dim": 16,
            "pooled_projection_dim": 16,
            "axes_dims_rope": (2, 2, 4),
            "guidance_embeds": False,
        },
        {
            "hidden_states": "float32[batch, seq, 4]",
            "encoder_hidden_states": "float32[batch, target, 16]",
            "pooled_projections": "float32[batch, 16]",
            "timestep": "float32[batch]",
            "img_ids": "float32[seq, 3]",
            "txt_ids": "float32[target, 3]",
        },
    ),
    "prior": (
        "PriorTransformer",
        {**_DIT, "embedding_dim": 16, "num_embeddings": 7, "additional_embeddings": 4},
        {
            "hidden_states": "float32[batch, 16]",
            "timestep": "int64[batch]",
            "proj_embedding": "float32[batch, 16]",
            "encoder_hidden_states": "float32[batch, 7, 16]",
        },
    ),
    "controlnet": (
        "ControlNetModel",
        {
            "in_channels": 4,
            "layers_per_block": 1,
            "block_out_channels": (16, 32),
            "norm_num_groups": 8,
            "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
            "cross_attention_dim": 16,
            "attention_head_dim": 8,
            "conditioning_embedding_out_channels": (8, 16),
        },
        {**_SOUGHT, "controlnet_cond": "float32[batch, 3, 32, 32]"},
    ),
    "unet_1d": (
        "UNet1DModel",
        {
            "block_out_channels": (16, 32),
            "in_channels": 4,
            "out_channels": 4,
            "down_block_types": ("DownResnetBlock1D", "DownResnetBlock1D"),
            "up_block_types": ("UpResnetBlock1D", "UpResnetBlock1D"),
            "mid_block_type": "MidResTemporalBlock1D",
            "out_block_type": "OutConv1DBlock",
            "layers_per_block": 1,
            "use_timestep_embedding": True,
            "time_embedding_type": "positional",
            "act_fn": "swish",
            "norm_num_groups": 8,
        },
        {"sample": "float32[batch, 4, 32]", "timestep": "int64[batch]"},
    ),
}


def import_torchvision() -> None:
    """Import torchvision, also where its compiled operators are for another PyTorch."""
    with contextlib.suppress(RuntimeError):
        importlib.import_module("torchvision")
        if importlib.import_module("torchvision.extension")._has_ops():
            return
    for name in ("nms", "qnms"):
        _OPERATORS.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for name in [n for n in sys.modules if n.startswith("torchvision")]:
        del sys.modules[name]
    importlib.import_module("torchvision")
    _OPERATORS.impl("nms", suppressed, "CPU")
    boxes: Any = importlib.import_module("torchvision.ops.boxes")
    boxes._assert_has_ops = _there
    # Its Python source of the other operator, which it would compile.
    regions: Any = importlib.import_module("torchvision.ops.roi_align")
    _OPERATORS.define(
        "roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, "
        "SymInt pooled_width, int sampling_ratio, bool aligned) -> Tensor"
    )
    _OPERATORS.impl("roi_align", regions._roi_align.__wrapped__, "CPU")
    regions._bilinear_interpolate = _none_outside(regions._bilinear_interpolate)
    regions._has_ops, regions._assert_has_ops = _are_there, _there


def _none_outside(blend: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return the blending of samples with 0 outside of the image, as compiled operators have it.

    The source in Python takes the nearest pixel there:
    https://github.com/pytorch/vision/blob/main/torchvision/csrc/ops/cpu/roi_align_common.h
    """

    def blended(image: Any, places: Any, y: Any, x: Any, *masks: Any) -> torch.Tensor:
        rows, columns = (
            ((at >= -1) & (at <= size)).to(image.dtype)
            for at, size in zip((y, x), image.shape[-2:], strict=True)
        )
        inside = rows[:, None, :, None, :, None] * columns[:, None, None, :, None, :]
        return blend(image, places, y, x, *masks) * inside

    return blended


_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")


def _are_there() -> bool:
    return True


def _there() -> None:
    """Say that the operators are there."""


def suppressed(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Return the boxes that non-maximum suppression keeps, the best first."""
    kept: list[int] = []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for place in scores.argsort(descending=True, stable=True).tolist():
        low = torch.maximum(boxes[place, :2], boxes[kept, :2])
        high = torch.minimum(boxes[place, 2:], boxes[kept, 2:])
        shared = (high - low).clamp(min=0).prod(1)
        if not (shared / (area[place] + area[kept] - shared) > threshold).any():
            kept.append(place)
    return torch.tensor(kept, dtype=torch.int64)


def _transformer(prefix: str, model: str, settings: Mapping[str, Any]) -> Callable[[], Any]:
    def make() -> Any:
        import transformers

        return getattr(transformers, model)(getattr(transformers, f"{prefix}Config")(**settings))

    return make


def _timm(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import timm

        return timm.create_model(name, pretrained=False)

    return make


def _torchvision(name: str, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        import torchvision

        own: dict[str, Any] = (
            {"init_weights": True} if "inception" in name or "google" in name else {}
        )
        own |= (
            {"weights_backbone": None} if "fcn" in name or "lab" in name or "aspp" in name else {}
        )
        model = torchvision.models.get_model(name, weights=None, **own, **settings)
        if name.startswith("ssdlite"):
            _normalise(model)
        return model

    return make


def _normalise(model: Any) -> None:
    """Give batch normalisations the statistics of a picture of noise.

    As they are made, values vanish on the way and all scores of boxes are one number: the result
    is then the order in which a library sorts equal numbers.
    """
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = None
    model.train()
    with torch.no_grad():
        model.head([*model.backbone(torch.randn(4, 3, 320, 320)).values()])
    model.eval()


def _diffuser(name: str, settings: Mapping[str, Any]) -> Callable[[], Any]:
    def make() -> Any:
        import diffusers

        return getattr(diffusers, name)(**settings)

    return make


def cases() -> list[Case]:
    """Return all models."""
    found = [
        Case("transformers", name, _transformer(prefix, model, settings), inputs)
        for name, (prefix, model, settings, inputs) in TRANSFORMERS.items()
    ]
    for name, width in TIMM.items():
        found.append(Case("timm", name, _timm(name), {"x": f"float32[batch, 3, {width}, {width}]"}))
    for name, width in TORCHVISION.items():
        shape = "batch, 3, 4, " if name == "r3d_18" else "batch, 3, "
        argument = "input" if "lraspp" in name else "x"
        text = f"float32[{shape}{width}, {width}]"
        found.append(Case("torchvision", name, _torchvision(name), {argument: text}))
    for name in DETECTORS:
        made = _torchvision(
            name,
            weights_backbone=None,
            **({} if "ssd" in name else {"min_size": 64, "max_size": 128}),
        )
        inputs = {"images": ["float32[3, height, width]", "float32[3, width, height]"]}
        found.append(Case("torchvision", name, made, inputs))
    for name, (cls, settings, inputs) in DIFFUSERS.items():
        found.append(Case("diffusers", name, _diffuser(cls, settings), inputs))
    return found
