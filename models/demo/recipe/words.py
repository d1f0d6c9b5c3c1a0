"""Random text to copy: made-up words, names, numbers and codes, with a held-out tenth.

Whether a text is held out depends on nothing but its bytes, so training and evaluation agree on the
split without sharing a file.
"""

import random
import string
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


def listed(text: str, mark: str | None = None) -> tuple[str, ...]:
    """The words of a text, or its parts between marks: long lists read best as text."""
    return tuple(text.split(mark))


HELD_OUT_SHARE = 10  # one in ten

FIRST_NAMES = listed(
    "Anna Ben Clara David Emma Felix Grace Henry Ines James Karl Laura Maria Noah Olga Paul Rosa "
    "Sam Tom Vera Alice Bob Carol Daniel Eva Frank Julia Kate Leo Mia Nina Oscar Peter Sarah Tim "
    "John Mary Zoë Łukasz José Åsa Jürgen François Søren Chloé Ana Luis Ahmed Fatima Wei Yuki "
    "Ravi Priya Ivan Olivia"
)
CITIES = listed(
    "Paris|London|Berlin|Madrid|Rome|Tokyo|New York|Oslo|Vienna|Prague|Lisbon|Dublin|Athens|"
    "Warsaw|Munich|Hamburg|Boston|Chicago|Seattle|San Francisco|Los Angeles|Toronto|Sydney|"
    "Melbourne|Delhi|Mumbai|Beijing|Seoul|Cairo|Nairobi|Lima|Bogotá|São Paulo|Zürich|Genève|"
    "Kraków|Malmö|東京|京都|Milan|Naples|Lyon|Nice|Barcelona|Amsterdam|Brussels|Copenhagen|Stockholm|"
    "Helsinki|Budapest|Istanbul|Moscow|Dubai|Singapore",
    "|",
)
NOUNS = listed(
    "apple banana book boat bread bridge bus car cat chair cheese cloud coffee cup dog door egg "
    "field fish flower forest garden glass guitar hammer hat horse house key lamp letter lion "
    "milk moon mountain mouse music orange paper pen pencil phone piano picture pizza potato "
    "queen rain river road rose sea shoe sky snow star stone sun table tea ticket tiger tomato "
    "tower train tree umbrella wall water wind window wolf"
)
ADJECTIVES = listed(
    "red blue green yellow black white small big old new happy quiet loud fast slow warm cold "
    "bright dark round soft strong sweet tall tiny wild wise young brave calm clever"
)
VERBS = listed(
    "add build buy call check clean close cook cut draw drive eat find fix get give go help hold "
    "jump keep learn make move open paint pay play pull push put read ride run sell send show "
    "sing sit sleep start stop take talk tell throw turn walk wash watch write"
)
COMMON = listed(
    "hello world hi hey the quick brown fox this is a test my name I you he she it we they and or "
    "not yes no one two three good morning night thank thanks please what who where when how why "
    "can do does are was will me your his her our to of in on at for with from by so very much now "
    "today tomorrow here there again count capital repeat say word words JSON weather model"
)
_ACCENTED = {
    "a": "áàâäãåā",
    "c": "çćč",
    "e": "éèêëęě",
    "i": "íìîï",
    "l": "ł",
    "n": "ñńň",
    "o": "óòôöõø",
    "s": "śšş",
    "u": "úùûüů",
    "y": "ýÿ",
    "z": "źżž",
}
_ONSETS = listed("b c d f g h j k l m n p r s t v w z br cl dr fl gr kr pl qu st th tr")
_CODAS = ["", "", "", "n", "r", "s", "l", "t", "m", "x", "k", "ng", "rd"]
_SCRIPTS = (
    (0x4E00, 0x9FFF),
    (0x3041, 0x3096),
    (0x30A1, 0x30FA),
    (0xAC00, 0xD7A3),
    (0x0430, 0x044F),
    (0x03B1, 0x03C9),
)
_EMOJI = (
    (0x1F300, 0x1F5FF),
    (0x1F600, 0x1F64F),
    (0x1F680, 0x1F6C5),
    (0x1F900, 0x1F9FF),
    (0x2600, 0x26FF),
)


def is_held_out(text: str) -> bool:
    """Whether a text belongs to the tenth that training never sees."""
    return zlib.crc32(text.encode()) % HELD_OUT_SHARE == 0


@dataclass(frozen=True)
class Draw:
    """A source of random material on one side of the held-out split."""

    rng: random.Random
    held_out: bool = False

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.rng.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """One of the options, each as likely as the others."""
        return options[int(self.rng.random() * len(options))]

    def number(self, low: int, high: int) -> int:
        """An integer from low to high, both included."""
        return self.rng.randint(low, high)

    def split(self, make: Callable[[], T], key: Callable[[T], str] = str) -> T:
        """Draw until the result is on this side of the held-out split."""
        while is_held_out(key(value := make())) != self.held_out:
            pass
        return value

    def syllables(self) -> str:
        """A pronounceable lower-case word that does not exist."""
        count = self.pick((1, 2, 2, 2, 3, 3, 4))
        return "".join(
            self.pick(_ONSETS) + self.pick("aeiou") + self.pick(_CODAS) for _ in range(count)
        )

    def letters(self) -> str:
        """A run of random letters."""
        alphabet = self.pick(
            (
                string.ascii_lowercase,
                string.ascii_lowercase,
                string.ascii_letters,
                string.ascii_uppercase,
            )
        )
        return "".join(self.pick(alphabet) for _ in range(self.number(1, 9)))

    def accented(self) -> str:
        """A made-up word with some letters carrying marks."""
        return "".join(
            self.pick(_ACCENTED[c]) if c in _ACCENTED and self.chance(0.5) else c
            for c in self.syllables()
        )

    def foreign(self) -> str:
        """A few characters of a script other than Latin."""
        low, high = self.pick(_SCRIPTS)
        return "".join(chr(self.number(low, high)) for _ in range(self.number(1, 4)))

    def emoji(self) -> str:
        """One pictograph."""
        low, high = self.pick(_EMOJI)
        one = chr(self.number(low, high))
        if self.chance(0.15):
            one += "\ufe0f"  # emoji presentation
        return f"{one}{self.pick(('', chr(0x200D)))}{self.emoji()}" if self.chance(0.15) else one

    def symbols(self) -> str:
        """A word among signs, such as a tag, a path or a piece of code."""
        signs = "<>|/\\#@+-_*=&%$~^()[]{}"
        left = "".join(self.pick(signs) for _ in range(self.number(0, 2)))
        right = "".join(self.pick(signs) for _ in range(self.number(0 if left else 1, 2)))
        return f"{left}{self.syllables()}{right}{self.syllables() if self.chance(0.3) else ''}"

    def code(self) -> str:
        """A mix of letters and digits, such as an order number."""
        style = self.number(0, 3)
        digits = "".join(self.pick(string.digits) for _ in range(self.number(1, 5)))
        head = "".join(self.pick(string.ascii_uppercase) for _ in range(self.number(1, 3)))
        if style == 0:
            return f"{head}-{digits}"
        if style == 1:
            return head + digits
        if style == 2:
            return digits
        return "".join(
            self.pick(string.ascii_lowercase + string.digits) for _ in range(self.number(2, 8))
        )

    def word(self) -> str:
        """Any single word, made up or (in training only) real."""

        def make() -> str:
            roll = self.rng.random()
            if roll < 0.35:
                word = self.syllables()
            elif roll < 0.50:
                word = self.letters()
            elif roll < 0.58:
                word = self.accented()
            elif roll < 0.66:
                word = self.foreign()
            elif roll < 0.71:
                word = self.emoji()
            elif roll < 0.78:
                word = self.code()
            elif roll < 0.81:
                word = self.symbols()
            elif roll < 0.85:
                word = self.syllables().capitalize() + self.syllables().capitalize()
            else:
                word = self.pick(self.pick((NOUNS, ADJECTIVES, VERBS, FIRST_NAMES, COMMON)))
            return word.capitalize() if self.chance(0.3) else word

        return self.split(make)

    def plain_word(self) -> str:
        """A lower-case ASCII word fit for an identifier."""
        return self.split(
            lambda: (
                self.syllables()
                if self.held_out or self.chance(0.6)
                else self.pick(self.pick((NOUNS, VERBS)))
            )
        )

    def name(self) -> str:
        """A person's first name, or first and last name."""

        def make() -> str:
            if not self.held_out and self.chance(0.3):
                first = self.pick(FIRST_NAMES)
            else:
                first = (self.accented() if self.chance(0.15) else self.syllables()).capitalize()
            return f"{first} {self.syllables().capitalize()}" if self.chance(0.15) else first

        return self.split(make)

    def city(self) -> str:
        """The name of a town."""

        def make() -> str:
            roll = self.rng.random()
            if not self.held_out and roll < 0.4:
                return self.pick(CITIES)
            if roll < 0.5:
                first = self.pick(("New", "San", "Bad", "Port", "Los"))
                return f"{first} {self.syllables().capitalize()}"
            if roll < 0.55:
                return self.foreign()
            return (self.accented() if self.chance(0.15) else self.syllables()).capitalize()

        return self.split(make)

    def phrase(self, longest: int = 5) -> str:
        """A few plain words, such as a title or a search."""

        def make() -> str:
            words = [
                self.syllables()
                if self.chance(0.4)
                else self.pick(self.pick((NOUNS, ADJECTIVES, VERBS)))
                for _ in range(self.number(1, longest))
            ]
            text = " ".join(words)
            return text.capitalize() if self.chance(0.3) else text

        return self.split(make)

    def email(self) -> str:
        """An e-mail address."""
        domain = self.pick(("com", "org", "net", "de", "io", "example"))
        return f"{self.plain_word()}@{self.plain_word()}.{domain}"

    def date(self) -> str:
        """A date, most of the time as ISO 8601 writes it."""
        if self.chance(0.3):
            return self.pick(
                (
                    "today",
                    "tomorrow",
                    "Monday",
                    "Tuesday",
                    "Wednesday",
                    "Thursday",
                    "Friday",
                    "Saturday",
                    "Sunday",
                )
            )
        return f"{self.number(1990, 2039)}-{self.number(1, 12):02}-{self.number(1, 28):02}"

    def time(self) -> str:
        """A time of day."""
        return f"{self.number(0, 23):02}:{self.number(0, 59):02}"
