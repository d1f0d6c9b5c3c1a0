"""Render: from requests to the tokens of their prompts. Synchronous, for worker threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ovchat_server.chat.prompt import Conversation
from ovchat_server.domain.chat import PromptEnding, ToolMode
from ovchat_server.domain.errors import ContextLengthExceededError, InvalidRequestError
from ovchat_server.domain.field_path import FieldPath
from ovchat_server.engine.contract.prompt import Prompt, PromptImage
from ovchat_server.serving.context import ContextWindow
from ovchat_server.serving.shortened import shortened, with_messages
from ovchat_server.serving.text_sizes import cutting
from ovchat_server.tokenizer.huggingface import NO_FRAME
from ovchat_server.tokenizer.long_texts import MAX_UNCUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ovchat_server.chat.prompt import TokenizedPrompt
    from ovchat_server.domain.chat import ChatRequest
    from ovchat_server.domain.text import TextPrompt, TextRequest
    from ovchat_server.engine.contract.image_encoder import EncodedImage
    from ovchat_server.serving.models import TextModel


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as the engine gets it.

    Attributes:
        field: What the caller named it.
        prompt: Truncated as the request asks; not checked yet.
        text: Of a chat's prompt, the whole text. Of a text completion's, the text to echo; ""
            where it is not echoed.
        inside_reasoning: It ends inside the model's reasoning, so the answer begins there.
        images: Its images, whose files are there as long as these are.
    """

    field: FieldPath
    prompt: Prompt
    text: str = ""
    inside_reasoning: bool = False
    images: tuple[EncodedImage, ...] = ()

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the prompt."""
        return self.prompt.tokens


def render_chat(
    model: TextModel, request: ChatRequest, images: Sequence[EncodedImage] = ()
) -> RenderedPrompt:
    """Render the messages of a chat, or those that there is room for if it asks for that.

    Args:
        model: Whose template and tokenizer to use.
        request: The chat.
        images: Those of its messages, in their order.

    Raises:
        ApiError: See render_messages.
    """
    if not request.drops_oldest:
        return render_messages(model, request, images)
    window = ContextWindow(model, request.generation)

    def rendered(
        chat: ChatRequest, seen: Sequence[EncodedImage], most: int
    ) -> RenderedPrompt | None:
        try:
            prompt = render_messages(model, chat, seen)
        except ContextLengthExceededError:
            return None
        return prompt if len(prompt.tokens) <= most else None

    if whole := rendered(request, images, window.longest_prompt):
        return whole
    best = None
    shorter = shortened(request.messages)
    fewest, most = 0, len(shorter)
    # The longest that fits: the later one is among them, the shorter it is.
    while fewest < most:
        middle = (fewest + most) // 2
        chat, seen = with_messages(request, images, shorter[middle])
        if prompt := rendered(chat, seen, window.roomy_prompt):
            best, most = prompt, middle
        else:
            fewest = middle + 1
    if best is None and shorter:
        # It may fit without so much room, and is refused otherwise.
        return render_messages(model, *with_messages(request, images, shorter[-1]))
    return best or render_messages(model, request, images)


def render_messages(
    model: TextModel, request: ChatRequest, images: Sequence[EncodedImage]
) -> RenderedPrompt:
    """Render the messages of a chat, all of them.

    Raises:
        ContextLengthExceededError: The prompt surely does not fit and is not to be truncated, or is
            too long for that.
        InvalidRequestError: It has images and would be truncated, or see PromptRenderer.render.
    """
    params = request.generation
    if params.truncation:
        prompt = render_conversation(model, request, images, max_characters=MAX_UNCUT)
    else:
        prompt = render_conversation(model, request, images, model.files.context_length)
    if request.prompt_ending is PromptEnding.FINAL_MESSAGE:
        inside_reasoning = model.dialects.left_open(request.messages[-1].text)
    else:
        inside_reasoning = model.dialects.opened_by(prompt.text)
    tokens = ContextWindow(model, params).truncate(prompt.tokens)
    field = FieldPath.of("messages")
    if images and len(tokens) < len(prompt.tokens):
        kept = f"{len(tokens)} of {len(prompt.tokens)} tokens"
        complaint = f"cannot be truncated to {kept}: they hold images."
        raise InvalidRequestError.about(field, complaint)
    whole = Prompt(
        tokens,
        tuple(
            PromptImage(start, image.length, image.hash, image.rows)
            for start, image in zip(prompt.image_starts, images, strict=True)
        ),
        first_position=sum(image.length - image.positions for image in images),
    )
    return RenderedPrompt(field, whole, prompt.text, inside_reasoning, tuple(images))


def render_conversation(
    model: TextModel,
    request: ChatRequest,
    images: Sequence[EncodedImage] = (),
    max_tokens: int | None = None,
    max_characters: int | None = None,
) -> TokenizedPrompt:
    """Render the prompt of a conversation by the model's template, and tokenize it.

    Args:
        model: Whose template and tokenizer to use.
        request: Its messages, tools, documents and arguments of the template are rendered.
        images: Those of the messages, in their order.
        max_tokens: A text that surely has more is not tokenized.
        max_characters: A text that has more is not tokenized.

    Raises:
        ContextLengthExceededError: It surely has more than `max_tokens`, or more characters.
        InvalidRequestError: See PromptRenderer.render.
    """
    conversation = Conversation(
        request.messages,
        () if request.tool_choice.mode is ToolMode.NONE else request.tools,
        request.template_arguments,
        request.documents,
        request.prompt_ending,
    )
    lengths = [image.length for image in images]
    return model.renderer.render(conversation, max_tokens, lengths, max_characters)


def render_texts(model: TextModel, request: TextRequest) -> list[RenderedPrompt]:
    """Tokenize the prompts of a text completion, in their order.

    Raises:
        ContextLengthExceededError: One surely does not fit and is not to be truncated, or is too
            long for that.
    """
    window = ContextWindow(model, request.generation)
    return [
        _render_text(model, request, window, *prompt)
        for prompt in zip(request.prompt_fields, request.prompts, strict=True)
    ]


def _render_text(
    model: TextModel,
    request: TextRequest,
    window: ContextWindow,
    field: FieldPath,
    prompt: TextPrompt,
) -> RenderedPrompt:
    tokenizer, context = model.files.tokenizer, model.files.context_length
    tokens = _tokenize(model, request, window, field, prompt) if isinstance(prompt, str) else prompt
    tokens = window.truncate(tokens)
    if not request.echo:
        return RenderedPrompt(field, Prompt(tokens))
    if isinstance(prompt, str) and not request.generation.truncation:
        return RenderedPrompt(field, Prompt(tokens), prompt)
    # A prompt that does not fit is refused by the limits: nobody sees its text.
    text = tokenizer.decode(tokens[:context], special_tokens=True)
    return RenderedPrompt(field, Prompt(tokens), text)


def _tokenize(
    model: TextModel, request: TextRequest, window: ContextWindow, field: FieldPath, text: str
) -> tuple[int, ...]:
    """Tokenize a text, or as much of it as is kept."""
    tokenizer, context = model.files.tokenizer, model.files.context_length
    fewest = tokenizer.fewest_tokens(text)
    if fewest > context and not request.generation.truncation:
        raise ContextLengthExceededError.of_prompt(field, fewest, context)
    with cutting([field]):
        [tokens] = tokenizer.encode_batch(
            [text], most_tokens=window.kept_tokens, cut_left=window.cuts_left
        )
    # Special tokens count, and are cut off, too.
    frame = tokenizer.frame if request.special_tokens else NO_FRAME
    return (*frame.before, *tokens, *frame.behind)
