"""Small models of transformers: their classes, settings and inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TEXT = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 37, "max_position_embeddings": 64,
}  # fmt: skip
_LLAMA = {**_TEXT, "num_key_value_heads": 2, "pad_token_id": 0}
_PICTURE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
_SPEECH = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37,
    "vocab_size": 32, "conv_dim": (16, 16), "conv_kernel": (5, 3), "conv_stride": (5, 2),
    "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2, "num_feat_extract_layers": 2,
}  # fmt: skip
_BART = {
    "vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37, "max_position_embeddings": 64,
}  # fmt: skip
_T5 = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 37, "num_layers": 2, "num_heads": 4}
_IDS = {"input_ids": "int64[batch, seq]"}
_MASKED = {**_IDS, "attention_mask": "int64[batch, seq]"}
_PAIR = {**_IDS, "decoder_input_ids": "int64[batch, target]"}
_STEP = {**_IDS, "use_cache": False}
_PIXELS = {"pixel_values": "float32[batch, 3, 32, 32]"}
_WAVE = {"input_values": "float32[batch, frames]"}

# Name: the prefix of configuration and model, the model's class, settings, inputs.
TRANSFORMERS: dict[str, tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = {
    # encoders
    "bert": ("Bert", "BertModel", _TEXT, _MASKED),
    "bert_classifier": ("Bert", "BertForSequenceClassification", _TEXT, _IDS),
    "roberta": ("Roberta", "RobertaForMaskedLM", {**_TEXT, "max_position_embeddings": 80}, _MASKED),
    "distilbert": (
        "DistilBert",
        "DistilBertModel",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37},
        _MASKED,
    ),
    "albert": ("Albert", "AlbertModel", {**_TEXT, "embedding_size": 16}, _MASKED),
    "electra": ("Electra", "ElectraModel", {**_TEXT, "embedding_size": 16}, _MASKED),
    "deberta_v2": (
        "DebertaV2",
        "DebertaV2Model",
        {
            **_TEXT,
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_buckets": 16,
            "norm_rel_ebd": "layer_norm",
            "share_att_key": True,
        },
        _IDS,
    ),
    "mpnet": ("MPNet", "MPNetModel", _TEXT, _MASKED),
    "mobilebert": (
        "MobileBert",
        "MobileBertModel",
        {**_TEXT, "embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
        _IDS,
    ),
    "squeezebert": (
        "SqueezeBert",
        "SqueezeBertModel",
        {**_TEXT, "embedding_size": 32, "intermediate_size": 64},
        _IDS,
    ),
    "fnet": ("FNet", "FNetModel", _TEXT, _IDS),
    "modernbert": ("ModernBert", "ModernBertModel", {**_TEXT, "pad_token_id": 0}, _MASKED),
    "xlm_roberta": (
        "XLMRoberta",
        "XLMRobertaForTokenClassification",
        {**_TEXT, "max_position_embeddings": 80},
        _IDS,
    ),
    "camembert_qa": (
        "Camembert",
        "CamembertForQuestionAnswering",
        {**_TEXT, "max_position_embeddings": 80},
        _IDS,
    ),
    # decoders; the cache is among the results unless it is switched off
    "gpt2": (
        "GPT2",
        "GPT2LMHeadModel",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        _IDS,
    ),
    "gpt2_no_cache": (
        "GPT2",
        "GPT2LMHeadModel",
        {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
        _STEP,
    ),
    "gpt_neo": (
        "GPTNeo",
        "GPTNeoForCausalLM",
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "max_position_embeddings": 64,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
        },
        _IDS,
    ),
    "gpt_neox": ("GPTNeoX", "GPTNeoXForCausalLM", _TEXT, _IDS),
    "gptj": (
        "GPTJ",
        "GPTJForCausalLM",
        {
            "vocab_size": 99,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "rotary_dim": 4,
        },
        _IDS,
    ),
    "opt": (
        "OPT",
        "OPTForCausalLM",
        {
            "vocab_size": 99,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 37,
            "max_position_embeddings": 64,
            "word_embed_proj_dim": 32,
        },
        _MASKED,
    ),
    "bloom": (
        "Bloom",
        "BloomForCausalLM",
        {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4},
        _IDS,
    ),
    "llama": ("Llama", "LlamaForCausalLM", _LLAMA, _IDS),
    "llama_masked": ("Llama", "LlamaForCausalLM", _LLAMA, {**_MASKED, "use_cache": False}),
    "mistral": ("Mistral", "MistralForCausalLM", {**_LLAMA, "sliding_window": 4}, _IDS),
    "qwen2": ("Qwen2", "Qwen2ForCausalLM", _LLAMA, _IDS),
    "qwen3": ("Qwen3", "Qwen3ForCausalLM", {**_LLAMA, "head_dim": 8}, _IDS),
    "gemma": ("Gemma", "GemmaForCausalLM", {**_LLAMA, "head_dim": 8}, _IDS),
    "gemma2": ("Gemma2", "Gemma2ForCausalLM", {**_LLAMA, "head_dim": 8, "sliding_window": 4}, _IDS),
    "phi": ("Phi", "PhiForCausalLM", _LLAMA, _IDS),
    "stablelm": ("StableLm", "StableLmForCausalLM", _LLAMA, _IDS),
    "falcon": (
        "Falcon",
        "FalconForCausalLM",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
        _IDS,
    ),
    "mixtral": (
        "Mixtral",
        "MixtralForCausalLM",
        {**_LLAMA, "intermediate_size": 48, "num_local_experts": 4},
        _STEP,
    ),
    "olmo": ("Olmo", "OlmoForCausalLM", _LLAMA, _IDS),
    "mamba": (
        "Mamba",
        "MambaForCausalLM",
        {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
        _STEP,
    ),
    # encoders with decoders
    "t5": ("T5", "T5ForConditionalGeneration", _T5, _PAIR),
    "mt5": ("MT5", "MT5Model", _T5, _PAIR),
    "bart": ("Bart", "BartModel", _BART, _PAIR),
    "marian": (
        "Marian",
        "MarianMTModel",
        {**_BART, "pad_token_id": 0, "decoder_start_token_id": 0},
        _PAIR,
    ),
    **{
        prefix.lower(): (prefix, f"{prefix}ForConditionalGeneration", _BART, _PAIR)
        for prefix in ("MBart", "Pegasus", "Blenderbot")
    },
    # vision
    "vit": ("ViT", "ViTModel", _PICTURE, _PIXELS),
    "deit": ("DeiT", "DeiTForImageClassification", _PICTURE, _PIXELS),
    "beit": ("Beit", "BeitModel", _PICTURE, _PIXELS),
    "dinov2": ("Dinov2", "Dinov2Model", _PICTURE, _PIXELS),
    "swin": (
        "Swin",
        "SwinModel",
        {
            "image_size": 32,
            "patch_size": 2,
            "embed_dim": 16,
            "depths": [1, 2],
            "num_heads": [2, 2],
            "window_size": 2,
        },
        _PIXELS,
    ),
    "convnext": (
        "ConvNext",
        "ConvNextForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
        _PIXELS,
    ),
    "resnet": (
        "ResNet",
        "ResNetForImageClassification",
        {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]},
        _PIXELS,
    ),
    "segformer": (
        "Segformer",
        "SegformerForSemanticSegmentation",
        {
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [8, 16, 24, 32],
            "num_attention_heads": [1, 1, 2, 2],
            "decoder_hidden_size": 16,
        },
        {"pixel_values": "float32[batch, 3, 64, 64]"},
    ),
    "clip_vision": ("CLIPVision", "CLIPVisionModel", _PICTURE, _PIXELS),
    "clip": (
        "CLIP",
        "CLIPModel",
        {
            "text_config": {**_TEXT, "eos_token_id": 2},
            "vision_config": _PICTURE,
            "projection_dim": 16,
        },
        {**_IDS, **_PIXELS},
    ),
    "siglip_vision": ("SiglipVision", "SiglipVisionModel", _PICTURE, _PIXELS),
    # speech
    "wav2vec2": ("Wav2Vec2", "Wav2Vec2Model", _SPEECH, _WAVE),
    "hubert": ("Hubert", "HubertForCTC", _SPEECH, _WAVE),
    "wavlm": ("WavLM", "WavLMModel", _SPEECH, _WAVE),
    "whisper": (
        "Whisper",
        "WhisperForConditionalGeneration",
        {
            **_BART,
            "num_mel_bins": 8,
            "max_source_positions": 30,
            "max_target_positions": 40,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
        {"input_features": "float32[batch, 8, 60]", "decoder_input_ids": "int64[batch, target]"},
    ),
    "ast": (
        "AST",
        "ASTModel",
        {
            **{k: v for k, v in _PICTURE.items() if k != "image_size"},
            "patch_size": 2,
            "frequency_stride": 2,
            "time_stride": 2,
            "max_length": 24,
            "num_mel_bins": 16,
        },
        {"input_values": "float32[batch, 24, 16]"},
    ),
}
