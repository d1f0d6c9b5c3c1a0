"""What a sequence for which tokens are proposed needs of the pipeline in which it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.genai.grammar_followers import GrammarFollower, GrammarFollowers
    from ovchat_server.engine.genai.handles import GenaiHandle
    from ovchat_server.engine.genai.proposal_check import ProposalCheck
    from ovchat_server.engine.genai.sequence_logits import SequenceLogits
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores
    from ovchat_server.engine.scheduling.proposer import Proposer


class SequencePipeline(Protocol):
    """What sequences run in."""

    @property
    def block_size(self) -> int:
        """How many tokens a KV block holds."""
        ...

    def stops(self, request: GenerationRequest) -> Collection[int]:
        """Return the tokens that end an answer."""
        ...

    def proposer(self, request: GenerationRequest) -> Proposer:
        """Return what proposes tokens of an answer."""
        ...

    def answer_salt(self) -> int:
        """Return a salt for an answer's blocks, which none has that runs."""
        ...

    @property
    def followers(self) -> GrammarFollowers:
        """What follows grammars."""
        ...

    @property
    def grammars_cleared(self) -> int:
        """How often all compiled grammars were forgotten."""
        ...

    def follow(self, request: GenerationRequest, tokens: Sequence[int]) -> GrammarFollower:
        """Follow the grammar of an answer that began with these tokens."""
        ...

    def sequence_logits(self, request: GenerationRequest, answered: int) -> SequenceLogits:
        """Return what is to be done with the logits of a sequence."""
        ...

    def add_sequence(
        self,
        request: GenerationRequest,
        logits: SequenceLogits | None,
        scores: PromptScores | None = None,
        check: ProposalCheck | None = None,
    ) -> GenaiHandle:
        """Add a sequence; it runs from the next step on."""
        ...
