"""The known parameters of embeddings, ranking and scoring, and how they are treated.

The names are those of OpenAI, Cohere, Jina, OVMS and vLLM; docs/parameters.md documents them for
callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ovchat_server.domain.parameters import Parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ovchat_server.domain.json_value import JsonValue

# Nothing of a request is kept for another one, so a salt keeps nothing apart.
_ACCEPTED = frozenset({"user", "request_id", "cache_salt"})

_REFUSED: Mapping[str, tuple[JsonValue, ...]] = {
    # Texts are padded to each other, which no answer shows.
    "padding": ("do_not_pad",),
    "mm_processor_kwargs": ({},),
}

EMBEDDINGS = Parameters(
    served=frozenset(
        {
            "model",
            "input",
            "encoding_format",
            "dimensions",
            "truncate_prompt_tokens",
            "truncation_side",
            "add_special_tokens",
            "normalize",
            "use_activation",
            "prompt_name",
            "input_type",
            "priority",
        }
    ),
    accepted=_ACCEPTED,
    refused={
        **_REFUSED,
        # The form of the numbers
        "embed_dtype": ("float32",),
        "endianness": ("little", "native"),
        # A conversation as the input (vLLM)
        "messages": (),
        "add_generation_prompt": (False,),
        "continue_final_message": (False,),
        "chat_template": ("",),
        "chat_template_kwargs": ({},),
        "media_io_kwargs": ({},),
        # What Jina, Voyage and Cohere call the form of vectors, and what texts are for
        "normalized": (True,),
        "embedding_type": ("float",),
        "embedding_types": (["float"],),
        "output_dimension": (),
        "output_dtype": ("float",),
        "task": (),
        "instruction": (),
        "late_chunking": (False,),
        # Where inputs that are too long are cut (NVIDIA); `truncate_prompt_tokens` does that.
        "truncate": ("NONE", False),
    },
)

_PAIRS_REFUSED: Mapping[str, tuple[JsonValue, ...]] = {
    **_REFUSED,
    "truncation_side": ("right",),
    # Whether scores are probabilities, by all the names that vLLM has had for it
    "use_activation": (True,),
    "activation": (True,),
    "softmax": (True,),
}

RERANK = Parameters(
    served=frozenset(
        {
            "model",
            "query",
            "documents",
            "top_n",
            "return_documents",
            "max_tokens_per_doc",
            "truncate_prompt_tokens",
            "priority",
        }
    ),
    accepted=_ACCEPTED,
    refused={
        **_PAIRS_REFUSED,
        "rank_fields": (["text"],),
        "max_chunks_per_doc": (1,),
        # The prompt of a reranker is its own; logits instead of scores (text-embeddings-inference).
        "instruction": (),
        "raw_scores": (False,),
    },
)

SCORE = Parameters(
    served=frozenset(
        {
            "model",
            "queries",
            "documents",
            "items",
            "text_1",
            "text_2",
            "data_1",
            "data_2",
            "truncate_prompt_tokens",
            "priority",
        }
    ),
    accepted=_ACCEPTED,
    refused=_PAIRS_REFUSED,
)
