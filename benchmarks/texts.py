"""Prompts that mean something: answers that quote them, and small talk that does not.

Whether proposed tokens are accepted depends on what is said, so these are asked of real models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.plan import Ask, Lane, Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.prompts import Prompts
    from benchmarks.scales import Scale

MEAN = """def mean(values):
    total = 0.0
    for value in values:
        total += value
    return total / len(values)
"""
READ = """def read_rows(path):
    rows = []
    with open(path) as file:
        for line in file:
            name, price = line.strip().split(",")
            rows.append((name, float(price)))
    return rows
"""
HARBOR = (
    "The old harbor lies behind the hill, where the river meets the sea. Every morning before "
    "sunrise, eleven small boats leave for the open water, and women in blue coats wait on the "
    "pier until the last of them has passed the lighthouse. In winter the boats stay on land."
)
LETTER = (
    "Dear Mr Okafor, thank you for your order 48213 of 3 March. We sent two oak chairs to 17 Mill "
    "Lane, Bristol, on 9 March; the table follows on 16 March. Please call Anna Lindqvist at "
    "555-0142 with any questions. Yours sincerely, Peter Novak, Novak Furniture"
)
ORDER = """{
  "customer": "Maria Silva",
  "address": {"street": "4 Garden Road", "city": "Porto"},
  "items": [{"name": "lamp", "count": 2}, {"name": "carpet", "count": 1}],
  "paid": false
}"""
QUOTES = (
    f"Rename the argument `values` to `numbers`. Answer with the whole code.\n\n{MEAN}",
    f"Add a docstring to this function. Answer with the whole code.\n\n{READ}",
    f"Repeat this paragraph word for word:\n\n{HARBOR}",
    f"Replace winter by summer in this text, and write all of it again:\n\n{HARBOR}",
    f"List all names, dates and numbers of this letter:\n\n{LETTER}",
    f"Which sentences of this letter say when something was sent? Quote them.\n\n{LETTER}",
    f'Set "paid" to true. Answer with the whole JSON.\n\n{ORDER}',
    f"Translate the keys of this JSON to French, and keep the values.\n\n{ORDER}",
)
TALK = (
    "Tell me a short story about a fox who is afraid of the dark.",
    "How do I cook rice so that it does not stick?",
    "Write a letter to my landlord: the heating is broken.",
    "What is good about living in a small town?",
    "Tell me a short story about two sisters and a lost key.",
    "Give me a recipe for a soup with lentils and lemon.",
    "Write a birthday card to my grandmother, who loves gardening.",
    "Why is the sky blue? Explain it to a child.",
    "Tell me about a day in the life of a lighthouse keeper.",
    "What should I see in Rome in two days?",
    "Write a letter of thanks to a teacher.",
    "How can I sleep better?",
    "Tell me a short story that begins in a train station at night.",
    "What can I bake with three apples and no eggs?",
    "Invite my neighbors to a summer party in the yard.",
    "Which is the better pet, a cat or a dog, and why?",
)


def quotes(prompts: Prompts, scale: Scale) -> Plan:
    """Ask for answers made of their prompt, one after the other."""
    del prompts
    return _spoken(QUOTES, 1, scale)


def talk(streams: int) -> Callable[[Prompts, Scale], Plan]:
    """Return what shares the small talk among so many callers."""

    def plan(prompts: Prompts, scale: Scale) -> Plan:
        del prompts
        return _spoken(TALK, streams, scale)

    return plan


def _spoken(texts: tuple[str, ...], streams: int, scale: Scale) -> Plan:
    # The model ends its answers itself: what it would say after the end mostly repeats itself.
    asks = [
        Ask(messages=(("user", text),), max_tokens=2 * scale.answer, may_end=True) for text in texts
    ]
    return Plan((tuple(Lane(tuple(asks[number::streams])) for number in range(streams)),))
