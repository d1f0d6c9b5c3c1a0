"""Scores every skill through the served API: `python -m models.demo.recipe.evaluate`.

Greedy answers to held-out conversations, each right only if it is right to the letter. Exits with 1
if a skill is below the promise. Needs nothing but the `openai` SDK.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from openai import OpenAI

from .conversations import SKILLS
from .report import (
    MAX_TOKENS,
    PROMISE,
    Mistakes,
    held_out_samples,
    print_mistakes,
    print_scores,
    wrong_answers,
)
from .samples import Answer, Call, Sample


def ask(client: OpenAI, model: str, sample: Sample) -> Answer:
    """The server's greedy answer to a conversation."""
    options: dict[str, Any] = {"tools": sample.tools} if sample.tools else {}
    if not sample.thinking:
        options["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
    completion = client.chat.completions.create(
        model=model,
        messages=cast("Any", sample.messages),
        temperature=0,
        max_tokens=MAX_TOKENS,
        **options,
    )
    message = completion.choices[0].message
    return Answer(
        content=message.content or "",
        reasoning=getattr(message, "reasoning_content", None) or "",
        tool_calls=tuple(
            Call(call.function.name, _arguments(call.function.arguments))
            for call in message.tool_calls or ()
            if call.type == "function"
        ),
    )


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError:
        return {"<not JSON>": text}
    return arguments


def score(
    client: OpenAI, model: str, samples: int, concurrency: int
) -> tuple[dict[str, float], Mistakes]:
    """The share of right answers per skill, and the wrong ones."""
    mistakes: Mistakes = {}
    with ThreadPoolExecutor(concurrency) as pool:
        for skill in SKILLS:
            asked = held_out_samples(skill, samples)
            answers = pool.map(lambda sample: ask(client, model, sample), asked)
            mistakes[skill] = wrong_answers(asked, list(answers))
    return {skill: 1 - len(wrong) / samples for skill, wrong in mistakes.items()}, mistakes


def evaluate(
    base_url: str, model: str = "demo", samples: int = 100, concurrency: int = 8
) -> dict[str, float]:
    """The share of right answers per skill, as the server at `base_url` gives them."""
    with OpenAI(base_url=base_url, api_key="none") as client:
        return score(client, model, samples, concurrency)[0]


def main() -> None:
    """Prints a table of the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v3")
    parser.add_argument("--model", default="demo")
    parser.add_argument("--api-key", default="none")
    parser.add_argument("--samples", type=int, default=100, help="conversations per skill")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--mistakes", action="store_true", help="show some wrong answers")
    options = parser.parse_args()
    with OpenAI(base_url=options.base_url, api_key=options.api_key) as client:
        scores, mistakes = score(client, options.model, options.samples, options.concurrency)
    print_scores(scores, options.samples)
    if options.mistakes:
        print_mistakes(mistakes)
    sys.exit(min(scores.values()) < PROMISE)


if __name__ == "__main__":
    main()
