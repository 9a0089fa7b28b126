"""BERT (Devlin et al., 2018): the encoder, its pooler and the two pre-training heads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class BertConfig:
    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1

    @property
    def head_size(self) -> int:
        return self.hidden_size // self.num_attention_heads


class BertEmbeddings(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)
        positions = torch.arange(config.max_position_embeddings).expand((1, -1))
        self.register_buffer("position_ids", positions, persistent=False)

    def forward(self, input_ids, token_type_ids=None):
        seq_length = input_ids.size(1)
        position_ids = self.position_ids[:, :seq_length]
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        words = self.word_embeddings(input_ids)
        positions = self.position_embeddings(position_ids)
        types = self.token_type_embeddings(token_type_ids)
        embeddings = words + positions + types
        return self.dropout(self.norm(embeddings))


class BertSelfAttention(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        if config.hidden_size % config.num_attention_heads != 0:
            raise ValueError(
                f"hidden size {config.hidden_size} is no multiple of the "
                f"number of heads {config.num_attention_heads}"
            )
        self.heads = config.num_attention_heads
        self.head_size = config.head_size
        self.query = nn.Linear(config.hidden_size, self.heads * self.head_size)
        self.key = nn.Linear(config.hidden_size, self.heads * self.head_size)
        self.value = nn.Linear(config.hidden_size, self.heads * self.head_size)
        self.dropout = nn.Dropout(config.dropout)

    def transpose_for_scores(self, x):
        new_shape = x.size()[:-1] + (self.heads, self.head_size)
        return x.view(new_shape).permute(0, 2, 1, 3)

    def forward(self, hidden, attention_mask=None):
        query = self.transpose_for_scores(self.query(hidden))
        key = self.transpose_for_scores(self.key(hidden))
        value = self.transpose_for_scores(self.value(hidden))
        scores = torch.matmul(query, key.transpose(-1, -2))
        scores = scores / math.sqrt(self.head_size)
        if attention_mask is not None:
            scores = scores + attention_mask
        weights = self.dropout(F.softmax(scores, dim=-1))
        context = torch.matmul(weights, value)
        context = context.permute(0, 2, 1, 3).contiguous()
        merged = context.size()[:-2] + (self.heads * self.head_size,)
        return context.view(*merged)


class BertLayer(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.attention = BertSelfAttention(config)
        self.attention_output = nn.Linear(config.hidden_size, config.hidden_size)
        self.attention_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.intermediate = nn.Linear(config.hidden_size, config.intermediate_size)
        self.output = nn.Linear(config.intermediate_size, config.hidden_size)
        self.output_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden, attention_mask=None):
        attended = self.attention_output(self.attention(hidden, attention_mask))
        hidden = self.attention_norm(hidden + self.dropout(attended))
        intermediate = F.gelu(self.intermediate(hidden))
        output = self.dropout(self.output(intermediate))
        return self.output_norm(output + hidden)


class BertPooler(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = nn.Tanh()

    def forward(self, hidden):
        first_token = hidden[:, 0]
        return self.activation(self.dense(first_token))


class BertModel(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.config = config
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.ModuleList([BertLayer(config) for _ in range(config.num_hidden_layers)])
        self.pooler = BertPooler(config)

    @staticmethod
    def extend_mask(mask, dtype):
        if mask.dim() == 2:
            extended = mask[:, None, None, :]
        elif mask.dim() == 3:
            extended = mask[:, None, :, :]
        else:
            raise ValueError(f"expected a mask of rank 2 or 3, got {tuple(mask.shape)}")
        return (1.0 - extended.to(dtype=dtype)) * torch.finfo(dtype).min

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: Optional[torch.Tensor] = None,
        token_type_ids: Optional[torch.Tensor] = None,
    ):
        if attention_mask is None:
            attention_mask = torch.ones(input_ids.shape, device=input_ids.device)
        hidden = self.embeddings(input_ids, token_type_ids)
        mask = self.extend_mask(attention_mask, hidden.dtype)
        all_hidden = (hidden,)
        for layer in self.layers:
            hidden = layer(hidden, mask)
            all_hidden = (*all_hidden, hidden)
        return hidden, self.pooler(hidden), all_hidden


class BertForPreTraining(nn.Module):
    def __init__(self, config: BertConfig):
        super().__init__()
        self.bert = BertModel(config)
        self.transform = nn.Sequential(
            nn.Linear(config.hidden_size, config.hidden_size),
            nn.GELU(),
            nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps),
        )
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.decoder.weight = self.bert.embeddings.word_embeddings.weight
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.seq_relationship = nn.Linear(config.hidden_size, 2)

    def forward(self, input_ids, attention_mask, labels=None, next_sentence_label=None):
        hidden, pooled, _ = self.bert(input_ids, attention_mask)
        scores = self.decoder(self.transform(hidden)) + self.bias
        relation = self.seq_relationship(pooled)
        outputs = {"prediction_logits": scores, "seq_relationship_logits": relation}
        if labels is not None:
            outputs["loss"] = F.cross_entropy(scores.view(-1, scores.size(-1)), labels.view(-1))
        if next_sentence_label is not None:
            loss = F.cross_entropy(relation, next_sentence_label)
            outputs["loss"] = outputs.get("loss", 0.0) + loss
        return outputs
