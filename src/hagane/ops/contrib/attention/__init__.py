"""Attention, MultiHeadAttention, GroupQueryAttention, RotaryEmbedding."""

from hagane.ops.contrib.attention import group_query, multi_head, packed, rotary

_MODULES = (packed, group_query, multi_head, rotary)

OPERATORS = tuple(op for module in _MODULES for op in module.OPERATORS)
SCHEMAS = {key: schema for module in _MODULES for key, schema in module.SCHEMAS.items()}
