"""Extracting JSON from a sentence."""

import json
from typing import Any

from .prompts import styled, system
from .samples import Answer, Message, Sample, user
from .words import NOUNS, Draw, listed

_JOBS = listed(
    "teacher doctor nurse baker painter farmer driver singer writer lawyer pilot plumber chef "
    "engineer gardener dentist programmer waiter carpenter journalist"
)

Clauses = list[tuple[str, Any, str]]  # key, value, clause


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _person(draw: Draw) -> tuple[str, Any, str, Clauses]:
    name, age, city, job = draw.name(), draw.number(1, 99), draw.city(), draw.pick(_JOBS)
    email, pet, hobby, phone = (
        draw.email(),
        draw.name(),
        draw.plain_word(),
        str(draw.number(10000, 9999999)),
    )
    clauses: Clauses = [
        ("age", age, draw.pick((f"is {age} years old", f"is {age}", f"is aged {age}"))),
        ("city", city, draw.pick((f"lives in {city}", f"comes from {city}", f"is from {city}"))),
        ("job", job, draw.pick((f"works as {_article(job)}", f"is {_article(job)}"))),
        ("email", email, draw.pick((f"has the email {email}", f"can be reached at {email}"))),
        ("pet", pet, f"has a pet called {pet}"),
        ("hobby", hobby, f"likes {hobby}"),
        ("phone", phone, draw.pick((f"has the phone number {phone}", f"can be called at {phone}"))),
    ]
    weights = (6, 6, 4, 1, 1, 1, 1)
    chosen: Clauses = []
    for _ in range(draw.pick((1, 2, 2, 3, 3))):
        clause = draw.rng.choices(clauses, weights)[0]
        if clause not in chosen:
            chosen.append(clause)
    return "name", name, name, chosen


def _order(draw: Draw) -> tuple[str, Any, str, Clauses]:
    customer, quantity, price = draw.name(), draw.number(1, 99), draw.number(1, 500)
    item = draw.plain_word() if draw.chance(0.6) else draw.pick(NOUNS) + "s"
    city, code, verb = (
        draw.city(),
        draw.code(),
        draw.pick(("bought", "ordered", "buys", "orders", "wants")),
    )
    clauses: Clauses = [
        ("quantity", quantity, f"{verb} {quantity} "),
        ("item", item, item),
        (
            "price",
            price,
            draw.pick((f" for {price} euros", f" for {price} dollars", f" at a price of {price}")),
        ),
        ("city", city, f" in {city}"),
        ("order_id", code, f" with order number {code}"),
    ]
    rest = [clause for clause in clauses[2:] if draw.chance(0.5)]
    draw.rng.shuffle(rest)
    return "customer", customer, customer, [*clauses[:2], *rest]


def _event(draw: Draw) -> tuple[str, Any, str, Clauses]:
    title = draw.pick(
        (
            "meeting",
            "concert",
            "party",
            "lecture",
            "exam",
            "workshop",
            "game",
            "dinner",
            draw.plain_word(),
        )
    )
    date, time, place, host = draw.date(), draw.time(), draw.city(), draw.name()
    when = f" on {date}" if date[0].isdigit() or date[0].isupper() else f" {date}"
    clauses: Clauses = [
        ("date", date, when),
        ("time", time, f" at {time}"),
        ("place", place, f" in {place}"),
        ("host", host, f" with {host}"),
    ]
    chosen = [clause for clause in clauses if draw.chance(0.6)] or clauses[:2]
    draw.rng.shuffle(chosen)
    verb = draw.pick(("is", "takes place", "starts"))
    return "event", title, f"{draw.pick(('The', 'Our', 'The next'))} {title} {verb}", chosen


def _sentence(draw: Draw) -> tuple[str, dict[str, Any]]:
    make = draw.pick((_person, _person, _person, _order, _event))
    key, value, subject, clauses = make(draw)
    values = {key: value} | {name: content for name, content, _ in clauses}
    texts = [text for _, _, text in clauses]
    if make is not _person:
        return f"{subject}{' ' if make is _order else ''}{''.join(texts)}.", values
    joined = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
    return f"{subject} {joined}.", values


def _listed(draw: Draw, keys: list[str]) -> str:
    style = draw.number(0, 4)
    if style == 0:
        return ", ".join(f'"{key}"' for key in keys)
    if style == 1:
        return ", ".join(keys)
    article = "the " if draw.chance(0.3) else ""
    keys = [article + key for key in keys]
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} and {keys[-1]}"


def extraction(draw: Draw) -> Sample:
    """JSON with the wanted keys from one sentence."""
    sentence, values = _sentence(draw)
    keys = list(values)
    if draw.chance(0.2):
        lead = draw.pick(
            (
                "Extract JSON",
                "Turn this sentence into JSON",
                "Extract the data as JSON",
                "Convert to JSON",
                "Extract all fields as JSON",
                "Give me this as JSON",
            )
        )
        question = f"{lead}: {sentence}"
    else:
        keys = draw.rng.sample(keys, draw.number(1, len(keys)))
        listed = _listed(draw, keys)
        question = draw.pick(
            (
                f"Extract {listed} as JSON: {sentence}",
                f"Extract {listed} as JSON: {sentence}",
                f"Extract {listed} as JSON from this sentence: {sentence}",
                f"Extract {listed}: {sentence}",
                f"Return JSON with {listed}: {sentence}",
                f"Return a JSON object with the keys {listed}: {sentence}",
                f"{sentence} Extract {listed} as JSON.",
                f"Give me JSON with {listed} for: {sentence}",
                f"Extract {listed} from: {sentence}",
                f"{sentence}\nReturn JSON with {listed}.",
                f'Extract {listed} as JSON from: "{sentence}"',
                f"JSON with {listed}: {sentence}",
            )
        )
    messages: list[Message] = system(draw)
    if question.endswith(sentence) and draw.chance(0.12):
        instruction = question.removesuffix(sentence).rstrip(": \n")
        messages = [{"role": "system", "content": instruction + "."}, user(sentence)]
    else:
        messages.append(
            user(question if question.startswith(sentence) else _styled(draw, question, sentence))
        )
    content = json.dumps({key: values[key] for key in keys}, ensure_ascii=False)
    return Sample("extraction", messages, Answer(content))


def _styled(draw: Draw, question: str, sentence: str) -> str:
    # Only what stands around the sentence varies: its last word is a value to copy.
    lead, _, tail = question.partition(sentence)
    return styled(draw, lead + "#")[:-1] + sentence + tail
