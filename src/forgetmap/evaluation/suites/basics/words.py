"""Lists and words."""

from __future__ import annotations

from random import Random
from string import ascii_lowercase

from forgetmap.evaluation.suites.basics.drafts import Draft, Kind, choice

WORDS = (
    "apple", "basket", "candle", "desk", "engine", "feather", "garden", "hammer", "island",
    "jacket", "kettle", "ladder", "mirror", "needle", "orange", "pencil", "quilt", "ribbon",
    "saddle", "table", "umbrella", "violin", "window", "yarn", "zipper", "bridge", "cloud",
    "drum", "flag", "glass", "anchor", "blanket", "carpet", "dragon", "envelope", "forest",
    "guitar", "helmet", "insect", "jungle", "kitchen", "lemon", "magnet", "napkin", "oyster",
    "pillow", "rabbit", "shovel", "tunnel", "valley", "wagon", "badge", "copper", "dinner",
    "finger", "grape", "honey", "ink", "jar", "kite", "lion", "mud", "nest", "owl", "pie",
)  # fmt: skip
PLACES = ("first", "second", "third", "fourth", "fifth")


def _some(rng: Random, count: int) -> list[str]:
    return rng.sample(WORDS, count)


def _joined(words: list[str]) -> str:
    return ", ".join(words)


def _nth(rng: Random) -> Draft:
    words, index = _some(rng, 5), rng.randrange(5)
    question = f"Which word is the {PLACES[index]} in this list: {_joined(words)}?"
    return choice(rng, question, words[index], words)


def _after(rng: Random) -> Draft:
    words, index = _some(rng, 6), rng.randrange(5)
    question = f"Which word comes right after '{words[index]}' in this list: {_joined(words)}?"
    others = [word for word in words if word != words[index]]
    return choice(rng, question, words[index + 1], others)


def _count(rng: Random) -> Draft:
    word, *others = _some(rng, 4)
    times = rng.randint(1, 6)
    words = [word] * times + rng.choices(others, k=rng.randint(3, 6))
    rng.shuffle(words)
    return Draft(f"How often does '{word}' occur in this list: {_joined(words)}?", str(times))


def _length(rng: Random) -> Draft:
    words = _some(rng, rng.randint(3, 12))
    return Draft(f"How many words are in this list: {_joined(words)}?", str(len(words)))


def _reverse(rng: Random) -> Draft:
    words = _some(rng, 4)
    gold = words[::-1]
    orders = [rng.sample(words, 4) for _ in range(20)]
    wrong = [words, gold[1:] + gold[:1], *orders]
    question = f"Which is this list in reverse order: {_joined(words)}?"
    return choice(rng, question, _joined(gold), map(_joined, wrong))


def _sort(rng: Random) -> Draft:
    words = _some(rng, 4)
    question = f"Put these words in alphabetical order, separated by commas: {_joined(words)}"
    return Draft(question, _joined(sorted(words)))


def _missing(rng: Random) -> Draft:
    words = _some(rng, 5)
    gold = rng.choice(words)
    rest = [word for word in words if word != gold]
    rng.shuffle(rest)
    question = f"Which word of the list [{_joined(words)}] is not in the list [{_joined(rest)}]?"
    return Draft(question, gold)


def _twice(rng: Random) -> Draft:
    words = _some(rng, 5)
    gold = rng.choice(words)
    series = [*words, gold]
    rng.shuffle(series)
    return choice(rng, f"Which word occurs twice in this list: {_joined(series)}?", gold, words)


def _total(rng: Random) -> Draft:
    values = [rng.randint(1, 20) for _ in range(rng.randint(3, 5))]
    question = f"What is the sum of this list: {', '.join(map(str, values))}?"
    return Draft(question, str(sum(values)))


def _initials(rng: Random) -> Draft:
    words = _some(rng, rng.randint(3, 5))
    question = f"Write the first letters of these words without spaces: {' '.join(words)}"
    return Draft(question, "".join(word[0] for word in words))


def _letters(rng: Random) -> Draft:
    # Draw the count first: most letters of most words occur once.
    times = rng.randint(0, 2)
    word, letter = rng.choice(
        [
            (word, letter)
            for word in WORDS
            for letter in ascii_lowercase
            if word.count(letter) == times
        ]
    )
    return Draft(f"How often does the letter '{letter}' occur in '{word}'?", str(times))


def _backwards(rng: Random) -> Draft:
    word = rng.choice(WORDS)
    return Draft(f"Write the word '{word}' backwards.", word[::-1])


def _contains(rng: Random) -> Draft:
    letter = rng.choice("bcdgklmpruw")
    having = [word for word in WORDS if letter in word]
    others = [word for word in WORDS if letter not in word]
    question = f"Which of these words contains the letter '{letter}'?"
    return choice(rng, question, rng.choice(having), others)


def _first_in_alphabet(rng: Random) -> Draft:
    words = _some(rng, 4)
    return choice(rng, "Which of these words comes first in the alphabet?", min(words), words)


def _longest(rng: Random) -> Draft:
    gold = rng.choice([word for word in WORDS if len(word) > 5])
    shorter = [word for word in WORDS if len(word) < len(gold)]
    return choice(rng, "Which of these words has the most letters?", gold, shorter)


_LIST, _WORD = "Answer the question about the list.", "Answer the question about words."

KINDS = (
    Kind("lists:nth", "Lists", "option", _LIST, _nth),
    Kind("lists:after", "Lists", "option", _LIST, _after),
    Kind("lists:count", "Lists", "number", _LIST, _count),
    Kind("lists:length", "Lists", "number", _LIST, _length),
    Kind("lists:reverse", "Lists", "option", _LIST, _reverse),
    Kind("lists:sort", "Lists", "text", _LIST, _sort),
    Kind("lists:missing", "Lists", "text", _LIST, _missing),
    Kind("lists:twice", "Lists", "option", _LIST, _twice),
    Kind("lists:total", "Lists", "number", _LIST, _total),
    Kind("words:initials", "Words", "text", _WORD, _initials),
    Kind("words:letters", "Words", "number", _WORD, _letters, version="2"),
    Kind("words:backwards", "Words", "text", _WORD, _backwards),
    Kind("words:contains", "Words", "option", _WORD, _contains),
    Kind("words:first_in_alphabet", "Words", "option", _WORD, _first_in_alphabet),
    Kind("words:longest", "Words", "option", _WORD, _longest),
)
