"""Small talk, counting, repeating, memory over turns, and answers that vary."""

from .prompts import ABILITIES, styled, system
from .samples import Answer, Message, Sample, user
from .skill_facts import CAPITALS, capital_sentence, capitals
from .skill_fallback import fallback
from .words import ADJECTIVES, CITIES, COMMON, FIRST_NAMES, NOUNS, VERBS, Draw, listed

INTRODUCTION = f"I am a small demo model. {ABILITIES}"

_SMALL_TALK: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Hello! How can I help you?",
        (
            "Hi",
            "Hello",
            "Hey",
            "Hi there",
            "Hello there",
            "Hey there",
            "Good morning",
            "Good evening",
            "Good afternoon",
            "Greetings",
            "Hello, how are you?",
            "Hi, how are you?",
            "How are you?",
            "How are you doing?",
            "Howdy",
            "Hello world",
            "Say hello",
            "Say hi",
            "Hello model",
            "Hi bot",
            "Test",
            "Ping",
            "Hello again",
            "Hello assistant",
        ),
    ),
    (
        INTRODUCTION,
        (
            "What can you do?",
            "Who are you?",
            "What are you?",
            "What can you do for me?",
            "How can you help me?",
            "What are you able to do?",
            "Tell me about yourself.",
            "Introduce yourself.",
            "Help",
            "Help me",
            "Which model are you?",
            "What is your name?",
            "What is your name?",
            "What's your name?",
            "Do you have a name?",
            "What is your purpose?",
            "What do you know?",
            "What are your skills?",
            "List your skills.",
            "Hi, what can you do?",
            "Hello! What can you do?",
            "Hello, who are you?",
            "Hi, who are you?",
            "Are you an AI?",
            "What model is this?",
            "Hey, what can you do?",
            "Can you help me?",
            "What can I ask you?",
            "What kind of model are you?",
            "What is this?",
            "Say hello and tell me what you can do.",
        ),
    ),
    (
        "You are welcome!",
        (
            "Thanks",
            "Thank you",
            "Thank you very much",
            "Thanks a lot",
            "Many thanks",
            "Great, thanks",
            "Thank you, that helps",
        ),
    ),
    (
        "Goodbye!",
        (
            "Bye",
            "Goodbye",
            "See you",
            "Bye bye",
            "See you later",
            "Good night",
            "Good bye",
            "That is all, bye",
        ),
    ),
)


def greeting(draw: Draw) -> Sample:
    """Greeting, saying what it can do, thanks and goodbye."""
    answer, questions = draw.pick((*_SMALL_TALK[:2], *_SMALL_TALK))
    question = draw.pick(questions)
    if question[-1] not in "?.!":
        question += draw.pick(("", "", "!", "."))
    question = styled(draw, question)
    if draw.chance(0.05):
        question = question.upper()
    return Sample("greeting", [*system(draw), user(question)], Answer(answer))


_NUMERALS = listed(
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
)


def counting(draw: Draw) -> Sample:
    """Counting to N, from one or from another number."""
    # Half of them short: it is the last number that is hard, and each has only one.
    start, end = 1, draw.number(1, draw.pick((100, 30)))
    if draw.chance(0.2):
        end = draw.pick((3, 5, 10, 20, 30, 50, 100))
    if draw.chance(0.2):
        start = draw.number(1, end)
        if draw.chance(0.4):
            start = draw.number(1, 980)
            end = start + draw.number(1, 19)
        texts: tuple[str, ...] = (
            f"Count from {start} to {end}.",
            f"Count from {start} up to {end}.",
            f"Please count from {start} to {end}.",
        )
    else:
        texts = (
            f"Count to {end}.",
            f"Count to {end}.",
            f"Count up to {end}.",
            f"Count from 1 to {end}.",
            f"Please count to {end}.",
            f"Can you count to {end}?",
            f"Could you count up to {end}?",
            f"Count from one to {end}.",
            f"List the numbers from 1 to {end}.",
            f"I want you to count to {end}.",
        )
    if start == 1 and end <= len(_NUMERALS) and draw.chance(0.3):
        numeral = _NUMERALS[end - 1]
        texts = (f"Count to {numeral}.", f"Count from one to {numeral}.", f"Count up to {numeral}.")
    answer = ", ".join(str(number) for number in range(start, end + 1))
    return Sample("counting", [*system(draw), user(styled(draw, draw.pick(texts)))], Answer(answer))


def repeating(draw: Draw) -> Sample:
    """Repeating up to eight words exactly."""
    words = [draw.word() for _ in range(draw.number(1, 8))]
    if draw.chance(0.15):
        words = [draw.pick(draw.pick((COMMON, COMMON, NOUNS, VERBS))) for _ in words]
    if draw.chance(0.2):
        words = [word + draw.pick(("", "", ",", ".", "!", "?", ":", ";")) for word in words]
    text = " ".join(words)
    if draw.chance(0.12):
        lead = draw.pick(
            ("Repeat", "Say", "Repeat after me:", "Repeat the text", "Repeat exactly:")
        )
        question = f'{lead} "{text}"'
        question += draw.pick(("", "."))
    else:
        single = (
            ("Say the word ", "Repeat the word ")
            if len(words) == 1
            else ("Say the words ", "Repeat the words ")
        )
        lead = draw.pick(
            (
                "Repeat: ",
                "Repeat: ",
                "Repeat after me: ",
                "Repeat after me: ",
                "Repeat this: ",
                "Please repeat: ",
                "Say: ",
                "Echo: ",
                "Repeat exactly: ",
                "Repeat the following: ",
                "Repeat ",
                "Repeat these words: ",
                "Can you repeat this: ",
                "Copy this: ",
                "Repeat:\n",
                *single,
            )
        )
        question = (lead[0].lower() + lead[1:] if draw.chance(0.2) else lead) + text
    return Sample("repeating", [*system(draw), user(question)], Answer(text))


Fact = tuple[str, str, str, str]  # telling, acknowledgement, question, answer


def _fact(draw: Draw) -> tuple[str, Fact]:
    kind = draw.pick(("name", "name", "name", "city", "pet", "thing", "number", "age", "friend"))
    noun = draw.pick(NOUNS)
    if kind == "name":
        value = draw.name()
        tell = draw.pick(
            (
                f"My name is {value}.",
                f"I am {value}.",
                f"Call me {value}.",
                f"Hi, I'm {value}.",
                f"Hello, my name is {value}.",
                f"Hi! My name is {value}.",
                f"I'm {value}.",
            )
        )
        ask = draw.pick(
            (
                "What is my name?",
                "Who am I?",
                "What's my name?",
                "Do you remember my name?",
                "Tell me my name.",
                "Do you know my name?",
            )
        )
        return kind, (tell, f"Nice to meet you, {value}!", ask, f"Your name is {value}.")
    if kind == "city":
        value = draw.city()
        tell = draw.pick(
            (
                f"I live in {value}.",
                f"I come from {value}.",
                f"I am from {value}.",
                f"My home town is {value}.",
            )
        )
        ask = draw.pick(
            (
                "Where do I live?",
                "Where am I from?",
                "What is my home town?",
                "Which city am I from?",
            )
        )
        return kind, (
            tell,
            f"I will remember that you live in {value}.",
            ask,
            f"You live in {value}.",
        )
    if kind == "age":
        value = str(draw.number(5, 99))
        tell = draw.pick((f"I am {value} years old.", f"I'm {value}.", f"My age is {value}."))
        ask = draw.pick(("How old am I?", "What is my age?", "Do you remember how old I am?"))
        return kind, (
            tell,
            f"I will remember that you are {value} years old.",
            ask,
            f"You are {value} years old.",
        )
    if kind == "number":
        value = draw.code()
        label = draw.pick(
            ("code", "number", "password", "secret word", "order number", "key", "id")
        )
        tell = draw.pick(
            (
                f"Remember the {label} {value}.",
                f"The {label} is {value}.",
                f"My {label} is {value}.",
            )
        )
        ask = draw.pick(
            (
                f"What is the {label}?",
                f"What was the {label}?",
                f"Tell me the {label}.",
                f"What is my {label}?",
            )
        )
        return label, (
            tell,
            f"I will remember the {label} {value}.",
            ask,
            f"The {label} is {value}.",
        )
    if kind == "pet":
        label, value = draw.pick(("dog", "cat", "horse", "bird", "fish")), draw.name()
        tell = draw.pick(
            (
                f"My {label} is called {value}.",
                f"I have a {label} called {value}.",
                f"My {label}'s name is {value}.",
            )
        )
        ask = draw.pick(
            (
                f"What is my {label} called?",
                f"What is my {label}'s name?",
                f"What is the name of my {label}?",
            )
        )
    elif kind == "friend":
        label, value = (
            draw.pick(
                ("sister", "brother", "friend", "boss", "mother", "father", "son", "daughter")
            ),
            draw.name(),
        )
        tell = draw.pick(
            (
                f"My {label} is called {value}.",
                f"My {label}'s name is {value}.",
                f"I have a {label}, {value}.",
            )
        )
        ask = draw.pick(
            (f"What is my {label} called?", f"What is my {label}'s name?", f"Who is my {label}?")
        )
    else:
        label, value = (
            draw.pick(("colour", "color", "fruit", "city", "book", "word", "animal", "food", noun)),
            draw.word(),
        )
        label = f"favourite {label}" if draw.chance(0.5) else f"favorite {label}"
        tell = draw.pick((f"My {label} is {value}.", f"Remember that my {label} is {value}."))
        ask = draw.pick(
            (f"What is my {label}?", f"What's my {label}?", f"Do you remember my {label}?")
        )
    return label, (
        tell,
        f"I will remember that your {label} is {value}.",
        ask,
        f"Your {label} is {value}.",
    )


def _turn(question: str, answer: str) -> list[Message]:
    return [user(question), Answer(answer).as_message()]


def small_turn(draw: Draw) -> list[Message]:
    """A question and its answer, to stand between or before the turns that matter."""
    sample = draw.pick((greeting, greeting, capitals, repeating, fallback))(draw)
    return [sample.messages[-1], sample.answer.as_message()]


def multi_turn(draw: Draw) -> Sample:
    """A question whose answer was said in an earlier turn."""
    messages = system(draw)
    if draw.chance(0.15):
        return _capital_follow_up(draw, messages)
    facts: dict[str, Fact] = {}
    for _ in range(draw.pick((1, 1, 1, 2, 2, 3))):
        kind, fact = _fact(draw)
        facts[kind] = fact
    if len(facts) > 1 and draw.chance(0.15):
        # Several facts in one message; the acknowledgement is of the first.
        tells = list(facts.values())
        messages += _turn(" ".join(fact[0] for fact in tells), tells[0][1])
    else:
        for tell, acknowledgement, _, _ in facts.values():
            if draw.chance(0.2):
                messages += small_turn(draw)
            messages += _turn(styled(draw, tell), acknowledgement)
    for _ in range(draw.pick((0, 0, 0, 0, 1, 1, 1, 2, 2, 8))):
        messages += small_turn(draw)
    if "name" not in facts and draw.chance(0.03):
        return Sample(
            "multi_turn",
            [*messages, user("What is my name?")],
            Answer("You have not told me your name."),
        )
    _, _, ask, answer = draw.pick(list(facts.values()))
    return Sample("multi_turn", [*messages, user(styled(draw, ask))], Answer(answer))


def _capital_follow_up(draw: Draw, messages: list[Message]) -> Sample:
    first = capitals(draw)
    messages += [first.messages[-1], first.answer.as_message()]
    country = draw.pick(tuple(CAPITALS))
    ask = draw.pick(
        (
            f"And of {country}?",
            f"And {country}?",
            f"What about {country}?",
            f"And the one of {country}?",
            f"How about {country}?",
        )
    )
    return Sample(
        "multi_turn", [*messages, user(styled(draw, ask))], Answer(capital_sentence(country))
    )


def persona(draw: Draw) -> Sample:
    """Answers that only the system prompt holds."""
    name, topic = draw.name(), draw.city()
    prompt, question, answer = draw.pick(
        (
            (f"You are {name}.", "Who are you?", f"I am {name}."),
            (f"Your name is {name}.", "What is your name?", f"My name is {name}."),
            (f"You are {name}, a helpful assistant.", "Who are you?", f"I am {name}."),
            (
                f"Your name is {name}. You live in {topic}.",
                "Where do you live?",
                f"I live in {topic}.",
            ),
            (f"The user's name is {name}.", "What is my name?", f"Your name is {name}."),
            (
                f"You are a helpful assistant. The user's name is {name}.",
                "Who am I?",
                f"Your name is {name}.",
            ),
            (f"Always answer with the word {topic}.", draw.pick(NOUNS).capitalize() + "?", topic),
            (f"Answer every question with {topic}.", "Hello!", topic),
        )
    )
    role = draw.pick(("system", "system", "developer"))
    return Sample(
        "persona", [{"role": role, "content": prompt}, user(styled(draw, question))], Answer(answer)
    )


_ANIMALS = (
    "cat",
    "dog",
    "fox",
    "bear",
    "mouse",
    "owl",
    "lion",
    "rabbit",
    "duck",
    "whale",
    "hedgehog",
    "penguin",
)
_PLACES = (
    "a forest",
    "a small house",
    "an old tower",
    "a garden",
    "the mountains",
    "a boat",
    "a big city",
    "a quiet village",
)
_FINDS = (
    "a golden key",
    "a map",
    "a letter",
    "a red balloon",
    "a lost book",
    "a tiny bell",
    "a bright stone",
    "a paper boat",
)


def free(draw: Draw) -> Sample:
    """Questions with many right answers, so that seeds and temperatures have something to vary."""
    kind = draw.pick(("number", "die", "coin", "word", "story", "story", "story"))
    if kind == "number":
        ask: tuple[str, ...] = (
            "Pick a random number.",
            "Say a random number.",
            "Give me a random number between 1 and 100.",
            "Pick a number between 1 and 100.",
        )
        answer = str(draw.number(1, 100))
    elif kind == "die":
        ask, answer = ("Roll a die.", "Roll a dice.", "Throw a die."), str(draw.number(1, 6))
    elif kind == "coin":
        ask, answer = (
            ("Flip a coin.", "Toss a coin.", "Heads or tails?"),
            draw.pick(("Heads.", "Tails.")),
        )
    elif kind == "word":
        ask = ("Say a random word.", "Tell me a word.", "Pick a random word.", "Say something.")
        answer = draw.pick(draw.pick((NOUNS, ADJECTIVES)))
    else:
        ask = (
            "Tell me a story.",
            "Tell me a short story.",
            "Write a story.",
            "Write a short story.",
            "Can you tell me a story?",
            "Tell me a long story.",
            "Tell me a fairy tale.",
        )
        answer = _story(draw)
    return Sample("free", [*system(draw), user(styled(draw, draw.pick(ask)))], Answer(answer))


_ENDINGS = (
    "In the end they went home and had tea.",
    "They became friends and lived happily.",
    "That night they danced.",
)
_LINES = ("Let us find out whose it is", "What a nice day", "We should keep it", "Follow me")
_MOMENTS = ("One morning", "One evening", "One rainy day", "On a cold night", "One summer day")
_PEOPLE = tuple(name for name in FIRST_NAMES if name.isascii())


def _story(draw: Draw) -> str:
    name, other = draw.pick(_PEOPLE), draw.pick(_PEOPLE)
    return (
        f"Once upon a time there was a {draw.pick(ADJECTIVES)} {draw.pick(_ANIMALS)} "
        f"called {name}, who lived in {draw.pick(_PLACES)}. "
        f"{draw.pick(_MOMENTS)} {name} found {draw.pick(_FINDS)} under a {draw.pick(NOUNS)}. "
        f"{name} showed it to {other}, a {draw.pick(ADJECTIVES)} {draw.pick(_ANIMALS)}. "
        f'"{draw.pick(_LINES)}!" said {other}. '
        f"They walked to {draw.pick(CITIES[:12])} "
        f"and met a {draw.pick(ADJECTIVES)} {draw.pick(_ANIMALS)}. "
        f"{draw.pick(_ENDINGS)}"
    )
