"""The models, tiny and random, with tokenizers as their families have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from texts import CORPUS, QUERY_PROMPT
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    BertTokenizerFast,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2TokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3ForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForSequenceClassification,
    XLMRobertaModel,
    XLMRobertaTokenizerFast,
)

if TYPE_CHECKING:
    from collections.abc import Callable

HIDDEN_SIZE = 32
VOCABULARY = 400
# Wide, or one text would be as near as another.
DEVIATION = 0.25

SIZES = {"hidden_size": HIDDEN_SIZE, "intermediate_size": 64, "num_hidden_layers": 2}
QWEN_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# The roles of a chat and what was said: Qwen3-Reranker has Qwen3's template, which says the same.
CHAT_TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


@dataclass(frozen=True)
class Family:
    """A model with its tokenizer, what it is exported for, and files of sentence-transformers."""

    model: Callable[[PreTrainedTokenizerFast], PreTrainedModel]
    tokenizer: Callable[[], PreTrainedTokenizerFast]
    task: str
    longest: int
    # The architecture that config.json names, where it is not the one that is exported.
    architecture: str | None = None
    files: dict[str, Any] = field(default_factory=dict)


def bert_tokenizer(longest: int) -> PreTrainedTokenizerFast:
    """WordPiece, without case; cut and padded by itself, as MiniLM's file says."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(
        CORPUS, trainers.WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=special)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    # To be undone by who reads it, as sentence-transformers does.
    tokenizer.enable_truncation(longest // 2)
    tokenizer.enable_padding(length=longest // 2)
    return BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest)


def xlm_r_tokenizer(longest: int) -> PreTrainedTokenizerFast:
    """Unigram; NFKC stands for SentencePiece's own table, which is 300 kB."""
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=VOCABULARY, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return XLMRobertaTokenizerFast(tokenizer_object=tokenizer, model_max_length=longest)


def qwen3_tokenizer(longest: int, *, embeds: bool) -> PreTrainedTokenizerFast:
    """BPE over bytes; with the token behind a text that Qwen3-Embedding reads it from."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY + 80, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken(token, normalized=False) for token in ("<think>", "</think>")])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if embeds:
        end = "<|endoftext|>"
        template = processors.TemplateProcessing(
            single=f"$A {end}",
            pair=f"$A {end} $B {end}",
            special_tokens=[(end, tokenizer.token_to_id(end))],
        )
        tokenizer.post_processor = processors.Sequence([tokenizer.post_processor, template])
    return Qwen2TokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        padding_side="left",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        chat_template=CHAT_TEMPLATE,
    )


def random_weights(
    architecture: type[PreTrainedModel], config: PretrainedConfig
) -> PreTrainedModel:
    """The model; norms and biases differ from what they are before training."""
    torch.manual_seed(0)
    model = architecture(config).eval()
    for name, weights in model.named_parameters():
        centre = 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0
        torch.nn.init.normal_(weights, mean=centre, std=DEVIATION)
    return model


def bert(
    architecture: type[PreTrainedModel], positions: int, **more: Any
) -> Callable[[PreTrainedTokenizerFast], PreTrainedModel]:
    """BERT of that architecture."""

    def make(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
        config = BertConfig(
            **SIZES,
            vocab_size=len(tokenizer),
            num_attention_heads=2,
            max_position_embeddings=positions,
            **more,
        )
        return random_weights(architecture, config)

    return make


def xlm_r(
    architecture: type[PreTrainedModel], longest: int, **more: Any
) -> Callable[[PreTrainedTokenizerFast], PreTrainedModel]:
    """XLM-RoBERTa of that architecture: positions count from behind the padding token's id."""

    def make(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
        config = XLMRobertaConfig(
            **SIZES,
            vocab_size=len(tokenizer),
            num_attention_heads=2,
            max_position_embeddings=longest + tokenizer.pad_token_id + 1,
            type_vocab_size=1,
            layer_norm_eps=1e-5,
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            **more,
        )
        return random_weights(architecture, config)

    return make


def qwen3(
    architecture: type[PreTrainedModel], longest: int, **more: Any
) -> Callable[[PreTrainedTokenizerFast], PreTrainedModel]:
    """Qwen3 of that architecture."""

    def make(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
        config = Qwen3Config(
            **SIZES,
            vocab_size=len(tokenizer),
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=16,
            max_position_embeddings=longest,
            max_window_layers=SIZES["num_hidden_layers"],
            rope_theta=1000000,
            tie_word_embeddings=True,
            bos_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            **more,
        )
        return random_weights(architecture, config)

    return make


def sentence_transformers_files(
    pooling: dict[str, bool], max_seq_length: int | None, **more: Any
) -> dict[str, Any]:
    """The files that say how vectors of tokens become one of the text."""
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": f"{index}_{kind}" if index else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for index, kind in enumerate(kinds)
    ]
    versions = {"sentence_transformers": "2.7.0", "transformers": "4.51.3", "pytorch": "2.5.1"}
    files = {
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": HIDDEN_SIZE, **pooling},
        "config_sentence_transformers.json": {"__version__": versions, **more},
    }
    if max_seq_length:
        limit = {"max_seq_length": max_seq_length, "do_lower_case": False}
        files["sentence_bert_config.json"] = limit
    return files


def pooling_modes(chosen: str, *others: str) -> dict[str, bool]:
    """The flags of 1_Pooling/config.json, of which one is set."""
    modes = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens", *others]
    return {f"pooling_mode_{mode}": mode == chosen for mode in modes}


FAMILIES = {
    # sentence-transformers/all-MiniLM-L6-v2
    "bert": Family(
        model=bert(BertModel, positions=64),
        tokenizer=lambda: bert_tokenizer(64),
        task="feature-extraction",
        longest=48,
        files=sentence_transformers_files(pooling_modes("mean_tokens"), max_seq_length=48),
    ),
    # BAAI/bge-m3
    "xlm-r": Family(
        model=xlm_r(XLMRobertaModel, longest=64),
        tokenizer=lambda: xlm_r_tokenizer(64),
        task="feature-extraction",
        longest=64,
        files=sentence_transformers_files(pooling_modes("cls_token"), max_seq_length=64),
    ),
    # Qwen/Qwen3-Embedding-0.6B
    "qwen3-embedding": Family(
        model=qwen3(Qwen3ForCausalLM, longest=256),
        tokenizer=lambda: qwen3_tokenizer(256, embeds=True),
        task="feature-extraction",
        longest=256,
        files=sentence_transformers_files(
            {
                **pooling_modes("lasttoken", "weightedmean_tokens", "lasttoken"),
                "include_prompt": True,
            },
            max_seq_length=None,
            prompts={"query": QUERY_PROMPT, "document": ""},
            default_prompt_name=None,
            similarity_fn_name="cosine",
        ),
    ),
    # cross-encoder/ms-marco-MiniLM-L6-v2
    "bert-rerank": Family(
        model=bert(
            BertForSequenceClassification,
            positions=128,
            num_labels=1,
            sentence_transformers={
                "activation_fn": "torch.nn.modules.linear.Identity",
                "version": "4.1.0.dev0",
            },
        ),
        tokenizer=lambda: bert_tokenizer(128),
        task="text-classification",
        longest=128,
    ),
    # BAAI/bge-reranker-v2-m3
    "xlm-r-rerank": Family(
        model=xlm_r(XLMRobertaForSequenceClassification, longest=128, num_labels=1),
        tokenizer=lambda: xlm_r_tokenizer(128),
        task="text-classification",
        longest=128,
    ),
    # Qwen/Qwen3-Reranker-0.6B
    "qwen3-rerank": Family(
        model=qwen3(Qwen3ForCausalLM, longest=1024),
        tokenizer=lambda: qwen3_tokenizer(1024, embeds=False),
        task="text-generation-with-past",
        longest=1024,
    ),
    # tomaarsen/Qwen3-Reranker-0.6B-seq-cls
    "qwen3-seq-cls": Family(
        model=qwen3(Qwen3ForSequenceClassification, longest=1024, num_labels=1),
        tokenizer=lambda: qwen3_tokenizer(1024, embeds=False),
        task="text-classification",
        longest=1024,
    ),
}
