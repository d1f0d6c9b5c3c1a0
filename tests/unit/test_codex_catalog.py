"""Models as Codex CLI lists them: it drops a catalog of which one entry lacks something."""

from __future__ import annotations

from ovchat_server.domain.models import Capability, ModelState, ModelStatus
from ovchat_server.rest.openai.codex import catalog_model

# What Codex CLI 0.171 does not do without.
REQUIRED = {
    "slug",
    "display_name",
    "supported_reasoning_levels",
    "shell_type",
    "visibility",
    "supported_in_api",
    "priority",
    "support_verbosity",
    "truncation_policy",
    "experimental_supported_tools",
    "base_instructions",
}


def status(context_length: int) -> ModelStatus:
    return ModelStatus("demo", 1, context_length, (Capability.CHAT,), ModelState.READY)


def test_an_entry_has_what_codex_needs() -> None:
    entry = catalog_model(status(8192))
    assert set(entry) >= REQUIRED
    assert (entry["slug"], entry["context_window"]) == ("demo", 8192)


def test_a_tools_output_does_not_fill_the_context() -> None:
    for length, most in ((8192, 2048), (0, 10_000), (1 << 20, 10_000)):
        assert catalog_model(status(length))["truncation_policy"] == {
            "mode": "tokens",
            "limit": most,
        }
