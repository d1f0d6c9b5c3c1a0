"""The parameters of the Messages API: Anthropic's, and what vLLM takes of a single answer."""

from __future__ import annotations

from ovchat_server.domain.parameters import ANSWER_PARAMETERS, Parameters

# It has a name of its own for stop strings.
GENERATION = ANSWER_PARAMETERS - {"stop"} | {"max_tokens"}

MESSAGES = Parameters(
    served=GENERATION
    | {
        "model",
        "system",
        "messages",
        "stop_sequences",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "output_format",
        "chat_template_kwargs",
        "stream",
    },
    accepted=frozenset(
        {
            "metadata",
            "user_profile_id",
            "workspace_id",
            "service_tier",
            "inference_geo",
            "speed",
            "billing_policy",
            "cache_control",
            # What the service drops of long conversations; here they have to fit.
            "context_management",
            "diagnostics",
            # Where hosted tools run, which are never called.
            "container",
            # Who answers what a model declines to.
            "fallbacks",
            "fallback_credit_token",
            # In the body as some clouds and gateways take it.
            "betas",
            "anthropic_beta",
            "anthropic_version",
        }
    ),
    refused={
        "mcp_servers": ([],),
        # Conversations are not kept, nor summarized.
        "thread": (),
        "compaction": (),
        # vLLM's
        "kv_transfer_params": ({},),
    },
)
