"""A tiny Llama as a GGUF file, so that llama.cpp can serve the same model as this process."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from tiny_models import sentence

CONTEXT = 512
SPACE, NEWLINE = "Ġ", "Ċ"
"""Space and newline in the alphabet of byte-level tokenizers."""

LAYERS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
REST = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


TEMPLATE = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[assistant]"


@cache
def ascii_tokenizer() -> Any:
    """Return a tokenizer of ASCII only, so that outputs contain no parts of characters."""
    source = random.Random(0)
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=220,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=[*map(chr, range(33, 127)), SPACE, NEWLINE],
        show_progress=False,
    )
    raw.train_from_iterator([sentence(source, 20) + ".\n" for _ in range(200)], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token="<s>", eos_token="</s>", chat_template=TEMPLATE
    )


@cache
def served_model() -> Any:
    """Return a tiny Llama with random weights for this tokenizer."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(ascii_tokenizer()),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=None,
    )
    return LlamaForCausalLM(config).eval()


def write_gguf(path: Path) -> Path:
    """Write this model with its tokenizer."""
    model = served_model()
    writer = gguf.GGUFWriter(path, "llama")
    _add_shape(writer, model.config)
    _add_tokenizer(writer)
    heads = {"q_proj": model.config.num_attention_heads, "k_proj": model.config.num_key_value_heads}
    for name, tensor in model.state_dict().items():
        values = tensor.float().numpy()
        part = name.split(".")[-2]
        writer.add_tensor(
            _name(name), _interleaved(values, heads[part]) if part in heads else values
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_shape(writer: Any, config: Any) -> None:
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(len(ascii_tokenizer()))


def _add_tokenizer(writer: Any) -> None:
    tokens = ascii_tokenizer().convert_ids_to_tokens(range(len(ascii_tokenizer())))
    special = set(ascii_tokenizer().all_special_tokens)
    kinds = [
        gguf.TokenType.CONTROL if each in special else gguf.TokenType.NORMAL for each in tokens
    ]
    merges = json.loads(ascii_tokenizer().backend_tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def _name(name: str) -> str:
    for ours, theirs in REST.items():
        if name == f"{ours}.weight":
            return f"{theirs}.weight"
    _, _, number, rest = name.split(".", 3)
    return f"blk.{number}.{LAYERS[rest.removesuffix('.weight')]}.weight"


def _interleaved(values: np.ndarray, heads: int) -> np.ndarray:
    """Reorder rows: llama.cpp rotates neighbours, transformers the halves of a head."""
    rows, width = values.shape
    return values.reshape(heads, 2, rows // heads // 2, width).swapaxes(1, 2).reshape(rows, width)
