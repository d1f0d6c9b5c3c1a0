"""The parameters of the Responses API: OpenAI's, and what OVMS and vLLM take besides."""

from __future__ import annotations

from ovchat_server.domain.parameters import ANSWER_PARAMETERS, Parameters

GENERATION = ANSWER_PARAMETERS | {"max_output_tokens"}

RESPONSES = Parameters(
    served=GENERATION
    | {
        "model",
        "input",
        "instructions",
        "previous_response_id",
        "store",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "text",
        "reasoning",
        "thinking_token_budget",
        "chat_template_kwargs",
        "include",
        "top_logprobs",
        "truncation",
        "metadata",
        "stream",
        "stream_options",
    },
    accepted=frozenset(
        {
            "user",
            "safety_identifier",
            "prompt_cache_key",
            "prompt_cache_options",
            "prompt_cache_retention",
            "service_tier",
            "access_programs",
            "client_metadata",
            "request_id",
            "session_id",
            # Acts with beam search, which is refused.
            "length_penalty",
            # Acts on hosted tools, which are never called.
            "max_tool_calls",
            # Acts beside `background`.
            "background_options",
            # How images are compressed on their way to OpenAI's models.
            "image",
        }
    ),
    refused={
        "background": (False,),
        "conversation": (),
        "prompt": (),
        "moderation": (),
        "context_management": ([],),
        # OVMS's
        "response_format": (),
        "n": (1,),
        "best_of": (1,),
        "logprobs": (False,),
        # vLLM's
        "watermarking": (False,),
        "chat_template": ("",),
        "mm_processor_kwargs": ({},),
        "media_io_kwargs": ({},),
        "vllm_xargs": ({},),
        "kv_transfer_params": ({},),
        "ec_transfer_params": ({},),
        "previous_input_messages": ([],),
        "enable_response_messages": (False,),
        "include_reasoning": (True,),
    },
)
