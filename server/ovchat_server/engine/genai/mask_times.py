"""How long it takes to find out which tokens a grammar allows: its masks.

genai finds the masks of all sequences within a step (2026.4.1), so a step that is slow does not say
which of them made it so. Here one answer is followed alone, token by token.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING

from ovchat_server.engine.genai.configs import greedy_config
from ovchat_server.engine.genai.grammar_compiler import structured
from ovchat_server.engine.genai.grammar_followers import FollowerPipelines, GrammarFollower

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    import openvino_genai as genai

# Tokens whose mean counts: some take longer than others, as the first ones do.
WINDOW = 16


class MaskTimes:
    """Follows one grammar at a time, and measures how long that takes."""

    def __init__(
        self, tokenizer: genai.Tokenizer, vocabulary_size: int, context_length: int
    ) -> None:
        """Load a pipeline; see FollowerPipelines.load."""
        # With one thread: others would wait for work, which takes processor time, too.
        self._pipelines = FollowerPipelines.load(
            tokenizer, vocabulary_size, context_length, count=1, INFERENCE_NUM_THREADS=1
        )
        # How long tokens took without a grammar: other work slows all down, now and then.
        self._plain_times: deque[float] = deque(maxlen=WINDOW)
        # The first steps prepare.
        sum(self._each((0,)))

    def exceed(self, seconds: float, grammar: str, tokens: Sequence[int]) -> bool:
        """Return whether a grammar takes longer for some tokens of an answer.

        A token that it does not allow ends the answer.

        Args:
            seconds: What each of WINDOW tokens may take, on average, of processor time: others may
                keep the processors busy.
            grammar: That of the answer.
            tokens: Those of the answer.
        """
        plain, again = 0.0, self._plain()
        while again > plain:
            plain = again
            if not self._exceed(plain + WINDOW * seconds, grammar, tokens):
                return False
            # If other work slows it down more than before, once more.
            again = self._plain()
        return True

    def _exceed(self, seconds: float, grammar: str, tokens: Sequence[int]) -> bool:
        """Return whether any WINDOW tokens take longer, with all that is not the grammar's."""
        last: deque[float] = deque(maxlen=WINDOW)
        with contextlib.closing(self._each(tokens, grammar)) as each:
            for taken in each:
                last.append(taken)
                if sum(last) > seconds:
                    return True
        return False

    def _plain(self) -> float:
        """Return the processor time of WINDOW tokens without a grammar: the longest lately."""
        self._plain_times.append(sum(self._each((0,) * WINDOW)))
        return max(self._plain_times)

    def _each(self, tokens: Sequence[int], grammar: str = "") -> Generator[float, None, None]:
        """Yield the processor time of each token, with all that is not the grammar's."""
        config = greedy_config(len(tokens) + 1)
        if grammar:
            config.structured_output_config = structured(grammar)
        follower = GrammarFollower(self._pipelines, config)
        try:
            for token in tokens:
                begun = time.process_time()
                follower.replay([token])
                yield time.process_time() - begun
        except RuntimeError:
            return
        finally:
            follower.close()
