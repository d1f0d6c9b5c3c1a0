"""Reasoning between two tags, before the answer: what nearly all families write."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ovchat_server.chat.dialects.base import Output, ReasoningDialect
from ovchat_server.chat.dialects.source import SPACE, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class Tags:
    """How a family marks its reasoning.

    Attributes:
        opening: Before the reasoning.
        closing: Behind it.
        answer: Before and behind the answer, where that has tags, too.
        space: The white space that the models write before the closing tag.
    """

    opening: str
    closing: str
    answer: tuple[str, str] | None = None
    space: str = ""


class ThinkParser:
    """Separates the text between the tags at the beginning of an answer from the rest.

    The tags, and the white space around the reasoning, belong to neither. If the answer ends inside
    the reasoning, its text is reasoning.
    """

    def __init__(self, tags: Tags, *, opened_by_prompt: bool) -> None:
        """Parse one answer, which begins inside the reasoning if `opened_by_prompt`."""
        self.reasoning = opened_by_prompt
        self._tags = tags
        self._source = Source()
        self._reasoned: list[str] = []
        self._answered: list[str] = []
        self._gap: list[str] = []
        self._steps = self._run()

    def feed(self, text: str) -> Output:
        """Add text and return what can be parsed of the text so far."""
        self._source.push(text)
        next(self._steps)
        return self._take()

    def flush(self, *, cut: bool = False) -> Output:  # noqa: ARG002  it finds no calls
        """End the answer and return what was held back."""
        self._source.ended = True
        for _ in self._steps:
            raise AssertionError("nobody waits for text that has ended")
        return self._take()

    def _take(self) -> Output:
        # Nothing of it is handed back later.
        self._source.forget()
        output = Output("".join(self._reasoned), "".join(self._answered))
        self._reasoned.clear()
        self._answered.clear()
        return output

    def _run(self) -> Iterator[None]:
        source, tags = self._source, self._tags
        space = yield from source.run(SPACE)
        # The models repeat a tag that the prompt ended with now and then.
        opened = yield from source.first_of(tags.opening)
        if opened or self.reasoning:
            self.reasoning = True
            yield from source.skip_space()
            write = partial(self._hold_space, self._reasoned)
            closed = yield from source.until(tags.closing, write=write)
            self.reasoning = closed is None
            self._gap.clear()
            yield from source.skip_space()
            if tags.answer and (yield from source.first_of(tags.answer[0])):
                yield from source.skip_space()
                write = partial(self._hold_space, self._answered)
                if (yield from source.until(tags.answer[1], write=write)) is None:
                    self._answered += self._gap
        else:
            self._answered.append(space)
        while not source.ended:
            self._pass_on()
            yield
        self._pass_on()

    def _pass_on(self) -> None:
        self._answered.append(self._source.text[self._source.at :])
        self._source.at = len(self._source.text)

    def _hold_space(self, pieces: list[str], text: str) -> None:
        """Hold back white space at the end, which may be the last before the closing tag."""
        kept = text.rstrip()
        if kept:
            pieces += [*self._gap, kept]
            self._gap.clear()
        self._gap.append(text[len(kept) :])


def think_dialect(
    name: str,
    tags: Tags,
    recognised: Callable[[str], bool],
    *,
    implied: bool = False,
    special_tokens: tuple[str, ...] | None = None,
) -> ReasoningDialect:
    """Create a dialect of reasoning between tags.

    Args:
        name: What operators call it.
        tags: How it is marked.
        recognised: Whether the source of a chat template speaks it.
        implied: Answers begin inside the reasoning even if the prompt does not open it, unless
            the prompt closed it.
        special_tokens: As ToolDialect's; None: the tags.
    """
    special = special_tokens or (tags.opening, tags.closing)

    def parser(opened: bool) -> ThinkParser:  # noqa: FBT001  ReasoningDialect's
        return ThinkParser(tags, opened_by_prompt=opened)

    def opened_by(prompt: str) -> bool:
        end = prompt.rstrip()
        return not end.endswith(tags.closing) if implied else end.endswith(tags.opening)

    def left_open(answer: str) -> bool:
        return answer.rfind(tags.opening) > answer.rfind(tags.closing)

    return ReasoningDialect(
        name,
        parser,
        recognised,
        opened_by,
        left_open,
        tags.opening,
        tags.closing,
        special,
        tags.space,
    )


_THINK = Tags("<think>", "</think>", space="\n")

QWEN3 = think_dialect(
    "qwen3", _THINK, lambda template: "<think>" in template or "</think>" in template
)
# The models' families that write the same have a name of their own for those who look for it.
PHI4 = think_dialect("phi4", _THINK, lambda _: False)
LFM2 = think_dialect("lfm2", _THINK, lambda _: False)
DEEPSEEK = think_dialect(
    "deepseek",
    _THINK,
    # R1's first templates leave the opening to the model, which may leave it out.
    lambda template: (
        "<｜Assistant｜>" in template and "</think>" in template and "<think>" not in template
    ),
    implied=True,
)
GRANITE = think_dialect(
    "granite",
    Tags("<think>", "</think>", ("<response>", "</response>")),
    lambda template: "<|start_of_role|>" in template and "<response>" in template,
)
MISTRAL = think_dialect(
    "mistral",
    Tags("[THINK]", "[/THINK]"),
    lambda template: "[THINK]" in template,
)
GEMMA = think_dialect(
    "gemma",
    Tags("<|channel>thought", "<channel|>"),
    lambda template: "<|channel>" in template,
    special_tokens=("<|channel>", "<channel|>"),
)
