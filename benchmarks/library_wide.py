"""Every model of transformers and every family of timm, made small by the names of its settings.

``benchmarks/capture_libraries.py --wide transformers:337:400`` and ``--wide timm:0:50`` run these.
Nobody chose the models: the settings of each configuration are cut to a size of the same kind
(widths, depths, heads, experts), in its parts too. A model that cannot be made or called this way
is counted apart, as broken. Parameters are drawn anew, since fresh ones often are 0 or 1.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

Chosen = tuple[str, str, Callable[[], Any], Callable[[Any], dict[str, Any]]]

# The last part of a setting's name that fits decides.
_SIZES: tuple[tuple[str, int], ...] = (
    (r"vocab_size|codebook_size|num_embeddings", 99),
    (r"max_position_embeddings|n_positions|max_source_positions|max_target_positions", 64),
    (r"(hidden|embed|embedding|model|bottleneck|proj|projection)_(size|dim|dims)$", 32),
    (r"^(d_model|n_embd|dim|width|emb_dim|n_embed|hidden_dim|out_hidden_size)$", 32),
    (r"(intermediate|ffn|inner|feedforward|mlp|expert)\w*_(size|dim)$|^(d_ff|n_inner)$", 48),
    (r"num_experts_per_tok|top_k$|num_experts_per_token", 2),
    (r"(num|n)_?\w*experts$", 4),
    (r"(key_value_heads|kv_heads|num_kv_groups|query_groups)$", 2),
    (r"heads$|n_head$", 4),
    (r"head_dim$|^d_kv$|qk_rope_head_dim|v_head_dim|qk_nope_head_dim", 8),
    (r"(q|kv)_lora_rank$", 8),
    (r"layers$|n_layer$|^depth$|num_blocks$|decoder_depth$", 2),
    (r"^(image_size|img_size)$", 32),
    (r"^patch_size$", 8),
    (r"num_queries$|num_latents$", 6),
    (r"window_size$|^window$", 4),
)
_INPUTS = {
    "input_ids": "int64[batch, seq]",
    "decoder_input_ids": "int64[batch, target]",
    "pixel_values": "float32[batch, 3, {image}, {image}]",
    "input_values": "float32[batch, frames]",
    "input_features": "float32[batch, {mels}, 128]",
    "pixel_values_videos": "float32[batch, {frames}, 3, {image}, {image}]",
    "past_values": "float32[batch, {context}, {channels}]",
    "bbox": "int64[batch, seq, 4]",
    "hidden_states": "float32[batch, seq, 32]",
}


def _smaller(value: int, name: str) -> int:
    for pattern, size in _SIZES:
        if re.search(pattern, name):
            return min(value, size)
    return value


def shrink(config: Any) -> None:
    """Cut the settings of a configuration and of its parts, in place."""
    from transformers import PretrainedConfig

    for name, value in list(vars(config).items()):
        if isinstance(value, PretrainedConfig):
            shrink(value)
            continue
        kept: Any = value
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int):
            kept = _smaller(value, name)
            if name.endswith(("token_id", "token_index")):
                kept = value % 90
        elif isinstance(value, list | tuple) and value and all(type(x) is int for x in value):
            if name in ("depths", "layers"):
                kept = type(value)(min(x, 1) for x in value)
            elif "size" in name or "dim" in name or "channels" in name:
                kept = type(value)(max(8, min(x, 16 * 2**i)) for i, x in enumerate(value))
        elif name == "layer_types" and isinstance(value, list):
            kept = value[:2]
        if kept is not value:
            try:
                setattr(config, name, kept)
            except Exception:  # a property that no one may set
                continue


def _noise(model: nn.Module) -> nn.Module:
    torch.manual_seed(1)
    for parameter in model.parameters():
        if parameter.is_floating_point():
            parameter.data += 0.02 * torch.randn_like(parameter)
    return model


def _transformer(kind: str) -> Callable[[], Any]:
    def make() -> Any:
        import transformers
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        config = transformers.CONFIG_MAPPING[kind]()
        shrink(config)
        found = MODEL_MAPPING_NAMES[kind]
        cls = getattr(transformers, found if isinstance(found, str) else found[0])
        with torch.device("meta"):
            weights = sum(p.numel() for p in cls(config).parameters())
        if weights > 60_000_000:
            raise MemoryError(f"{weights / 1e6:.0f} million weights")
        torch.manual_seed(0)
        return _noise(cls(config))

    return make


def inputs_of_model(model: Any) -> dict[str, Any]:
    """Return types of the arguments that a model's forward names, and no others."""
    config = model.config
    parts = [config, *(v for v in vars(config).values() if hasattr(v, "to_dict"))]

    def setting(default: int, *names: str) -> int:
        for part in parts:
            for name in names:
                found = getattr(part, name, None)
                found = found[0] if isinstance(found, list | tuple) and found else found
                if isinstance(found, int):
                    return found
        return default

    sizes = {
        "image": setting(32, "image_size", "img_size"),
        "mels": setting(80, "num_mel_bins", "feature_size", "num_mel_features"),
        "frames": setting(4, "num_frames"),
        "context": setting(16, "context_length", "context_len"),
        "channels": setting(1, "num_input_channels"),
    }
    named = inspect.signature(model.forward).parameters
    given: dict[str, Any] = {
        name: text.format(**sizes) for name, text in _INPUTS.items() if name in named
    }
    if "input_ids" in given and "hidden_states" in given:
        del given["hidden_states"]
    return given


def kinds(library: str) -> list[str]:
    """Return the names of all models of transformers, or one name of each family of timm."""
    if library == "transformers":
        from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

        return list(MODEL_MAPPING_NAMES)
    import timm

    found: dict[str, str] = {}
    for module in timm.list_modules():
        for name in timm.list_models(module=module):
            if any(word in name for word in ("giant", "gigantic", "huge", "large", "xl", "_l_")):
                continue
            found.setdefault(f"{module}/{re.split(r'[_0-9]', name)[0]}", name)
    return list(found.values())


def _timm(name: str) -> Callable[[], Any]:
    def make() -> Any:
        import timm

        with torch.device("meta"):
            weights = sum(p.numel() for p in timm.create_model(name).parameters())
        if weights > 60_000_000:
            raise MemoryError(f"{weights / 1e6:.0f} million weights")
        return _noise(timm.create_model(name, pretrained=False))

    return make


def wide(
    text: str,
) -> Iterator[tuple[str, str, Callable[[], Any], Callable[[Any], dict[str, Any]]]]:
    """Yield library, name, maker and a function from a model to its inputs, for ``LIBRARY:A:B``."""
    library, _, span = text.partition(":")
    first, _, last = span.partition(":")
    for name in kinds(library)[int(first or 0) : int(last) if last else None]:
        if library == "timm":
            yield library, name, _timm(name), _pictures
        else:
            yield library, name, _transformer(name), inputs_of_model


def _pictures(model: Any) -> dict[str, Any]:
    shape = model.default_cfg.get("input_size", (3, 224, 224))
    width = shape[-1] if model.default_cfg.get("fixed_input_size") else min(shape[-1], 96)
    return {"x": f"float32[batch, {shape[0]}, {width}, {width}]"}
