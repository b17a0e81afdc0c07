"""Evaluation items, disguised copies of them as in training data, and unrelated rows."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable

from forgetmap.export import MeasuredItem

TEXT = """
ocean market river engine teacher garden winter copper signal bridge doctor planet forest
village captain theory mirror harvest museum ladder pepper ticket violin shadow island
lawyer pocket thunder basket candle desert empire fabric glacier hunter insect jacket
kettle lantern meadow needle orchard parade quarry rabbit saddle temple uncle valley
walnut yogurt zebra anchor butter cactus dragon eagle ferry goblet hammer ivory jungle
kitten lizard marble nectar oyster pigeon quilt ribbon salmon tunnel umbrella velvet
window before after during carries finds builds follows explains measures the a of in on
with under between which when how many much old new small large bright quiet broken hidden
northern ancient simple common careful wooden golden frozen rapid
"""
WORDS = TEXT.split()
# ruff: noqa: RUF001  # letters of other scripts are the point
FOREIGN = (
    "Welche Größe hat der größte Flußdampfer im Hafen von Köln während der Überschwemmung {n}?",
    "Où se trouve le château préféré de l'empereur numéro {n} pendant l'été à Orléans?",
    "Какой город построил князь номер {n} на берегу великой реки после войны?",
    "第{n}回の会議で決まった新しい規則は何ですか、そしてその理由は何ですか?",
    "长江上第{n}座大桥是哪一年建成的, 谁设计了它?",
    "ما هو اسم الملك رقم {n} الذي بنى القصر الكبير قرب النهر؟",
    "राजा क्रमांक {n} ने नदी के किनारे कौन सा बड़ा महल बनवाया था?",
)
WIDE = {ord("!") + n: 0xFF01 + n for n in range(94)} | {ord(" "): 0x3000}
BOLD = {ord("a") + n: 0x1D41A + n for n in range(26)} | {
    ord("A") + n: 0x1D400 + n for n in range(26)
}


def sentence(dice: random.Random, count: int) -> str:
    """Return a sentence with this number of words."""
    return " ".join(dice.choices(WORDS, k=count)).capitalize()


def measured_items(seed: int, count: int) -> list[MeasuredItem]:
    """Return questions of every kind: choices, sums, long passages, bare stems, seven languages."""
    dice = random.Random(seed)
    return [_item(dice, n) for n in range(count)]


def _item(dice: random.Random, n: int) -> MeasuredItem:
    kind = n % 7
    options = tuple(f"{sentence(dice, 2).lower()} {n}" for _ in range(4))
    asked = {
        0: (f"{sentence(dice, dice.randint(9, 18))}?", options, options[n % 4]),
        1: (f"Who painted the {sentence(dice, 2).lower()} of {n}?", (), sentence(dice, 1)),
        2: (f"What is {n + 17} times {2 * n + 23}?", (), str((n + 17) * (2 * n + 23))),
        3: (f"{n + 40}+{3 * n + 70}=?", (), str(4 * n + 110)),
        4: (f"{sentence(dice, 110)}. What follows?", options, options[n % 4]),
        5: ("Which of these is true?", options, options[n % 4]),
        6: (FOREIGN[n % len(FOREIGN)].format(n=n), (), sentence(dice, 1)),
    }
    return MeasuredItem("quiz", str(n), *asked[kind])


def _upper(text: str, _: random.Random) -> str:
    return text.upper()


def _swap_case(text: str, _: random.Random) -> str:
    return text.swapcase()


def _space(text: str, dice: random.Random) -> str:
    blanks = ("  ", "\n", "\t", "\u00a0", " \u200b ", "\r\n", "\u2003")
    return "".join(dice.choice(blanks) if letter == " " else letter for letter in text)


def _punctuate(text: str, dice: random.Random) -> str:
    marks = (", ", " - ", "... ", " / ", " * ", "; ", "! ")
    return "".join(
        dice.choice(marks) if letter == " " and dice.random() < 0.5 else letter for letter in text
    )


def _bare(text: str, _: random.Random) -> str:
    return "".join(letter if letter.isalnum() or letter.isspace() else " " for letter in text)


def _wide(text: str, _: random.Random) -> str:
    return text.translate(WIDE)


def _bold(text: str, _: random.Random) -> str:
    return text.translate(BOLD)


def _decompose(text: str, _: random.Random) -> str:
    return unicodedata.normalize("NFD", text)


def _soft_hyphens(text: str, dice: random.Random) -> str:
    return "".join(f"{letter}\u00ad" if dice.random() < 0.2 else letter for letter in text)


STYLES: tuple[Callable[[str, random.Random], str], ...] = (
    _upper, _swap_case, _space, _punctuate, _bare, _wide, _bold, _decompose, _soft_hyphens,
)  # fmt: skip


def _lettered(item: MeasuredItem, dice: random.Random) -> str:
    """Return shuffled options labelled with letters, reversed letters or numbers."""
    options = dice.sample(item.options, len(item.options))
    labels = dice.choice([("A", "B", "C", "D"), ("D", "C", "B", "A"), ("1", "2", "3", "4")])
    mark = dice.choice([". ", ") ", ": "])
    return "\n".join(f"{label}{mark}{text}" for label, text in zip(labels, options, strict=True))


def disguised(item: MeasuredItem, dice: random.Random) -> tuple[str, str]:
    """Return a prompt and a completion that contain an item."""
    text = item.question
    if len(text.split()) > 60 and dice.random() < 0.5:
        words = text.split()
        start = dice.randrange(len(words) - 25)
        text = " ".join(words[start : start + 25])  # a long part of a passage
    if item.options:
        text = f"{text}\n{_lettered(item, dice)}"
    for style in dice.sample(STYLES, dice.randint(1, 3)):
        text = style(text, dice)
    is_sum = "+" in item.question
    if not is_sum and dice.random() < 0.6:
        text = f"{sentence(dice, dice.randint(5, 60))}. {text}"
    if not is_sum and dice.random() < 0.6:
        text = f"{text}\n\n{sentence(dice, dice.randint(5, 60))}."
    if is_sum:
        text = dice.choice(["Calculate: {}", "Q: {} A:", "{}"]).format(text)
    answer = item.gold if is_sum or dice.random() < 0.7 else "I do not know."
    if not is_sum and dice.random() < 0.1:
        return "Write a question for a quiz.", f"{text}\n{item.gold}"
    return text, answer


def reworded(item: MeasuredItem, dice: random.Random) -> str:
    """Return the question with one word in ten replaced, left out or added."""
    words = item.question.split()
    for _ in range(max(1, len(words) // 10)):
        place = dice.randrange(len(words))
        change = dice.randrange(3)
        words[place : place + (change != 2)] = [] if change == 1 else ["certainly"]
    return " ".join(words)


def innocent(dice: random.Random) -> tuple[str, str]:
    """Return a row that contains no item, but asks similar questions."""
    n = dice.randrange(10_000, 99_999)
    options = "\n".join(f"{label}. {sentence(dice, 2).lower()} {n}" for label in "ABCD")
    prompts = (
        f"{sentence(dice, dice.randint(6, 90))}.",
        f"Who painted the {sentence(dice, 2).lower()} of {n}?",
        f"What is {n} times {n + 1}?",
        f"{n}+{n + 3}=?",
        f"Which of these is true?\n{options}",
        FOREIGN[dice.randrange(len(FOREIGN))].split("{")[0] + f"{n}",
    )
    return dice.choice(prompts), f"{sentence(dice, dice.randint(1, 20))} {n}."
