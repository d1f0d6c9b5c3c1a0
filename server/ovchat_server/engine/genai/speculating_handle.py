"""A sequence for which tokens are proposed.

Where genai proposes tokens itself, each sequence reads in every step as many as may ever be
proposed, found or not (2026.4.1). So a sequence that is to have tokens checked is added anew
instead: they are the end of its prompt, and the prefix cache has what is before.

    [ prompt and answer so far                                ][ proposed    ]
    [ full block ][ full block ][ found up to the last step   ]              |
                                [ read                        ][ read        ]

genai finds a partial block by the tokens that it held after the last step in which it generated, or
in which it got a new block. So tokens are proposed only within a block: those that are wrong then
never give a block its name, nothing needs another block, and little is read twice.

A prompt that is added writes into the partial block that it finds, though others may use it, too.
So the sequence gets blocks of its own before anything is proposed: it is added anew without, and
salted from the beginning of a block on. What is before, others find: the next turn of a
conversation need not read an answer again for which nothing was proposed.

A grammar would begin anew with each of these. So what is added has none: from the first proposal on
a GrammarFollower chooses its tokens.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from ovchat_server.engine.contract.messages import MISATTRIBUTED
from ovchat_server.engine.contract.prompt import SALTED_TOKENS
from ovchat_server.engine.genai.proposal_check import ProposalCheck

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.engine.contract.generation import GenerationRequest
    from ovchat_server.engine.genai.grammar_followers import GrammarFollower
    from ovchat_server.engine.genai.sequence_logits import SequenceLogits
    from ovchat_server.engine.genai.sequence_pipeline import SequencePipeline
    from ovchat_server.engine.scheduling.prompt_logprobs import PromptScores
    from ovchat_server.engine.scheduling.steps import Output


# An answer with a grammar is taken to have at least so many tokens still to come.
USUAL_TOKENS = 64


class SpeculatingHandle:
    """A sequence inside the pipeline which is added anew for each check of proposed tokens."""

    def __init__(
        self,
        pipeline: SequencePipeline,
        request: GenerationRequest,
        logits: SequenceLogits | None,
        scores: PromptScores | None,
    ) -> None:
        """Add a sequence.

        Args:
            pipeline: Runs it.
            request: What to generate.
            logits: What is to be done with its logits.
            scores: Collects the log probabilities of the prompt's tokens.
        """
        self._pipeline = pipeline
        self._request = request
        self._stops = () if request.ignore_eos else pipeline.stops(request)
        self._tokens: list[int] = []
        self.proposer = pipeline.proposer(request)
        # That of the tokens so far, and that of what runs, with proposed tokens.
        self._logits = self._running = logits
        self._handle = self._first = pipeline.add_sequence(request, logits, scores)
        self._follower: GrammarFollower | None = None
        # Its grammar is compiled as long as this is the same.
        self._grammars_cleared = pipeline.grammars_cleared
        # How many tokens are found if it is added anew; 0: not known.
        self._found = 0
        # Whether it must be: what runs has tokens that are wrong.
        self._wrong = False
        self._proposes = True
        # Where blocks begin that others have, too.
        self._repeats = len(request.prompt) + request.max_tokens
        self.shared: int | None = None
        self.ended = False

    @property
    def answered(self) -> int:
        """The number of tokens generated."""
        return len(self._tokens) or self._handle.answered

    @property
    def cached(self) -> int | None:
        """The number of tokens that the prefix cache had of the prompt; None: not known."""
        return self._first.cached

    @property
    def unread(self) -> int:
        """The number of tokens that the next step reads if none is proposed."""
        return self.known if self._wrong else 1

    @property
    def known(self) -> int:
        """The number of tokens that the next step reads before those proposed."""
        return self._length - (self._found if self.owns_blocks else self._place)

    @property
    def owns_blocks(self) -> bool:
        """Whether it has blocks of its own, so that what is proposed can be read."""
        return self.shared is not None

    @property
    def new_blocks(self) -> int:
        """How many KV blocks must be free for proposals, besides those it has and needs anyway.

        Those that it gets of its own, or the one after a block that it fills in one step.
        """
        size = self._pipeline.block_size
        return 1 if self.owns_blocks else self._length // size + 1 - self._place // size

    @property
    def once(self) -> int:
        """See speculator.Candidate: what it reads to get blocks of its own."""
        return 0 if self.owns_blocks else self.known - 1

    @property
    def preparation(self) -> float:
        """See speculator.Candidate: following its grammar, up to here and to its end."""
        if not self._request.grammar:
            return 0
        answered = len(self._tokens)
        rest = min(max(answered, USUAL_TOKENS), self._request.max_tokens - answered)
        return self._pipeline.followers.seconds(answered, rest)

    def chances(self) -> Sequence[float]:
        """See speculator.Candidate."""
        return self.proposer.chances(self._room) if self._room > 0 else ()

    def follow(self) -> None:
        """Have its grammar followed outside the pipeline, if it has one and that can be."""
        if not self._request.grammar or not self._can_follow:
            return
        try:
            self._follower = self._pipeline.follow(self._request, self._tokens)
        except Exception as error:  # noqa: BLE001  all that runs would be lost with it
            sys.stderr.write(f"a grammar cannot be followed: {error}\n")
            self._proposes = False
            return
        logits = self._logits or self._pipeline.sequence_logits(self._request, 0)
        self._logits = self._running = logits.chosen_by(self._follower)
        self._request = replace(self._request, grammar="", resumptions=())

    def prepare(self, count: int) -> int:
        """Propose so many tokens for the next step.

        At first it gets blocks of its own instead.

        Returns:
            How many tokens it reads.
        """
        # Where its grammar is not followed, it goes on as it is.
        gets_blocks = count > 0 and not (self.owns_blocks or self._request.grammar)
        proposed = self.proposer.proposal(count) if count and self.owns_blocks else ()
        if not (proposed or gets_blocks or self._wrong):
            return 1
        if gets_blocks:
            self._get_blocks()
        read = self.known + len(proposed)
        self._handle.cancel()
        check, logits = None, self._logits
        if proposed:
            processor = logits.processor if logits else None
            check = ProposalCheck(self._request, proposed, self._length, processor, self._follower)
            logits = logits.behind(proposed) if logits else None
        rest = self._request.followed_by([*self._tokens, *proposed])
        self._handle = self._pipeline.add_sequence(rest, logits, check=check)
        self._running = logits
        self._wrong = False
        return read

    def own_from(self, place: int) -> None:
        """See steps.Handle."""
        self._repeats = min(place, self._repeats)

    def take(self) -> list[Output]:
        """Return the tokens since the last call."""
        return [output for item in self._handle.take() if (output := self._took(item))]

    def dropped(self) -> bool:
        """Return whether genai dropped the sequence by itself."""
        if dropped := self._handle.dropped():
            self._end()
        return dropped

    def cancel(self) -> None:
        """Cancel it; its blocks are free after the next step."""
        self._end()
        self._handle.cancel()

    @property
    def _length(self) -> int:
        """How many tokens of prompt and answer there are."""
        return len(self._request.prompt) + len(self._tokens)

    @property
    def _place(self) -> int:
        """Where blocks of its own would begin; below 0: it is too short for a salt."""
        size = self._pipeline.block_size
        return min((self._length - SALTED_TOKENS) // size * size, self._repeats)

    @property
    def _room(self) -> int:
        """How many tokens may be proposed: fewer than are still asked for, and within a block."""
        size = self._pipeline.block_size
        read = self._found if self.owns_blocks else self._length - 1
        ready = read % size > 0 if self.owns_blocks else self._place >= 0
        # A sequence must not be cancelled before it is read to its end: see CancelledSequences.
        if not (self._proposes and self._handle.answered and ready and self._can_follow):
            return 0
        return min(
            (read // size + 1) * size - self._length,
            self._request.max_tokens - len(self._tokens) - 1,
            self._request.speculation.num_assistant_tokens,
        )

    @property
    def _can_follow(self) -> bool:
        """Whether its grammar can be followed, if it has one still."""
        compiled = self._grammars_cleared == self._pipeline.grammars_cleared
        return not self._request.grammar or (compiled and self._pipeline.followers.free)

    def _get_blocks(self) -> None:
        """Have it added with blocks of its own."""
        self.shared, self._found = self._length, self._place
        salt = self._pipeline.answer_salt()
        prompt = replace(self._request.prompt, answer_salt=salt, answer_place=self._found)
        self._request = replace(self._request, prompt=prompt)

    def _end(self) -> None:
        self.ended = True
        if self._follower:
            self._follower.close()

    def _took(self, output: Output) -> Output | None:
        if output.finish == MISATTRIBUTED:
            return output
        if not output.tokens:
            # An older answer to the same prompt had the same salt.
            self._wrong, self._proposes = True, False
            return None
        self._tokens += output.tokens
        for token in output.tokens:
            self.proposer.append(token)
        if self._handle.answered > 1:
            # It generated in this step, rather than read.
            self._found = self._length - 1
        if not output.rejected:
            self._logits = self._running
        else:
            self._wrong = True
            if self._logits:
                self._logits = self._logits.behind(output.tokens)
            if output.tokens[-1] in self._stops:
                output = replace(output, finish="stop", cut=True)
        if output.finish is not None:
            self._end()
        return output
