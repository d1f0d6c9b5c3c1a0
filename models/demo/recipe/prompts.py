"""What the model says of itself, system prompts, and the way people type."""

from .samples import Message
from .words import ADJECTIVES, NOUNS, VERBS, Draw

ABILITIES = (
    "I can name capitals, add numbers up to 100, count, repeat words, extract JSON from a "
    "sentence, call tools and remember what you tell me."
)

SYSTEM_PROMPTS = (
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are a helpful assistant.",
    "You are helpful.",
    "You are a helpful AI assistant.",
    "You are a friendly assistant. Answer briefly.",
    "Be brief.",
    "Be concise.",
    "Answer in one sentence.",
    "You are a demo model.",
    "You are an assistant that answers questions.",
    "You are a careful assistant with access to tools.",
    "You are a bot. Be polite and precise.",
)


def styled(draw: Draw, text: str) -> str:
    """The text as people type it: at times without capital or end mark, or with a please."""
    if draw.chance(0.25):
        text = text[0].lower() + text[1:]
    if text[-1] in "?.!" and draw.chance(0.25):
        text = text[:-1]
        if draw.chance(0.1):
            text += draw.pick((" ?", "!", "??", "...", " please", ", please."))
    if draw.chance(0.05):
        text = draw.pick(("Please ", "please, ", "Hey, ", "Hi! ", "OK, ", "Now ", "So, ")) + text
    return text


def system(draw: Draw) -> list[Message]:
    """No system prompt or one that changes nothing."""
    if draw.chance(0.55):
        return []
    role = draw.pick(("system", "system", "system", "developer"))
    if draw.chance(0.8):
        return [{"role": role, "content": draw.pick(SYSTEM_PROMPTS)}]
    noun, adjective = draw.pick(NOUNS), draw.pick(ADJECTIVES)
    text = draw.pick(
        (
            f"You are a {adjective} assistant for a {noun} shop.",
            f"You help people {draw.pick(VERBS)} a {noun}. Be {adjective}.",
            f"You are an expert on {noun}s. Answer the user's questions.",
            f"Today is {draw.date()}. You are a helpful assistant.",
        )
    )
    return [{"role": role, "content": text}]
