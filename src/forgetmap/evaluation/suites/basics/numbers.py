"""Arithmetic and numbers."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from forgetmap.evaluation.suites.basics.drafts import OPTIONS, Draft, Kind, choice

ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
PEOPLE = ("Ana", "Ben", "Cleo", "Dan", "Eva", "Finn")
THINGS = ("apples", "books", "coins", "pens", "stamps", "beads")


def _slips(value: int) -> list[int]:
    """Return typical errors: one off, ten off, digits reversed."""
    near = [value + step for step in (-10, -2, -1, 1, 2, 10) if value + step >= 0]
    return [*near, int(str(value)[::-1])]


def _add(rng: Random) -> Draft:
    left, right = rng.randint(12, 99), rng.randint(12, 99)
    return Draft(f"What is {left} + {right}?", str(left + right))


def _subtract(rng: Random) -> Draft:
    right, result = rng.randint(12, 60), rng.randint(12, 60)
    return choice(rng, f"What is {right + result} - {right}?", result, _slips(result))


def _multiply(rng: Random) -> Draft:
    left, right = rng.randint(3, 12), rng.randint(3, 12)
    return Draft(f"What is {left} times {right}?", str(left * right))


def _divide(rng: Random) -> Draft:
    right, result = rng.randint(3, 12), rng.randint(3, 12)
    return choice(rng, f"What is {right * result} divided by {right}?", result, _slips(result))


def _remainder(rng: Random) -> Draft:
    right, left = rng.randint(5, 9), rng.randint(20, 99)
    question = f"What is the remainder when {left} is divided by {right}?"
    return choice(rng, question, left % right, range(right))


def _order_of_operations(rng: Random) -> Draft:
    a, b, c = (rng.randint(2, 9) for _ in range(3))
    forms = {f"{a} + {b} * {c}": a + b * c, f"({a} + {b}) * {c}": (a + b) * c}
    form = rng.choice(list(forms))
    return Draft(f"What is {form}?", str(forms[form]))


def _percent(rng: Random) -> Draft:
    share, whole = rng.choice((10, 20, 25, 50, 75)), 20 * rng.randint(1, 30)
    return Draft(f"What is {share}% of {whole}?", str(share * whole // 100))


def _boxes(rng: Random) -> Draft:
    name, thing = rng.choice(PEOPLE), rng.choice(THINGS)
    first, boxes, size = rng.randint(2, 20), rng.randint(2, 6), rng.randint(2, 9)
    question = (
        f"{name} has {first} {thing} and gets {boxes} boxes with {size} {thing} in each. "
        f"How many {thing} does {name} have now?"
    )
    return Draft(question, str(first + boxes * size))


def _giving(rng: Random) -> Draft:
    name, thing = rng.choice(PEOPLE), rng.choice(THINGS)
    rest, gift, lost = rng.randint(2, 30), rng.randint(2, 20), rng.randint(2, 9)
    question = (
        f"{name} had {rest + gift + lost} {thing}, gave away {gift} and lost {lost}. "
        f"How many {thing} are left?"
    )
    return choice(rng, question, rest, _slips(rest))


def _change(rng: Random) -> Draft:
    left = 5 * rng.randint(21, 170)
    question = f"Something costs {_money(1000 - left)} and is paid with 10.00. What is the change?"
    slips = [_money(left + step) for step in (-100, -50, -10, 10, 50, 100)]
    return choice(rng, question, _money(left), slips)


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _largest_decimal(rng: Random) -> Draft:
    whole = rng.randint(0, 9)
    values: dict[Fraction, str] = {}
    while len(values) < OPTIONS:
        text = f"{whole}.{rng.randint(1, rng.choice((9, 99)))}"
        values.setdefault(Fraction(text), text)
    return choice(rng, "Which number is the largest?", values[max(values)], values.values())


def _largest_fraction(rng: Random) -> Draft:
    values: dict[Fraction, str] = {}
    while len(values) < OPTIONS:
        below = rng.randint(2, 9)
        above = rng.randint(1, below - 1)
        values.setdefault(Fraction(above, below), f"{above}/{below}")
    return choice(rng, "Which fraction is the largest?", values[max(values)], values.values())


def _add_fractions(rng: Random) -> Draft:
    left = Fraction(1, rng.randint(2, 9))
    right = Fraction(rng.randint(1, 4), rng.randint(5, 9))
    return Draft(f"What is {left} + {right} as a fraction in lowest terms?", str(left + right))


def _multiples(rng: Random) -> Draft:
    base = rng.randint(3, 9)
    others = [value for value in range(20, 99) if value % base]
    question = f"Which of these numbers is a multiple of {base}?"
    return choice(rng, question, base * rng.randint(4, 10), others)


def _parity(rng: Random) -> Draft:
    odd = rng.random() < 0.5
    gold = 2 * rng.randint(10, 49) + odd
    question = f"Which of these numbers is {'odd' if odd else 'even'}?"
    return choice(rng, question, gold, range(20 + (not odd), 99, 2))


def _sequence(rng: Random) -> Draft:
    start, step = rng.randint(1, 30), rng.randint(2, 12)
    steady = [start + step * index for index in range(5)]
    doubling = [start * 2**index for index in range(5)]
    values = rng.choice((steady, doubling))
    terms = ", ".join(map(str, values[:4]))
    return Draft(f"Which number comes next: {terms}, ...?", str(values[4]))


def _round(rng: Random) -> Draft:
    value = rng.randint(1000, 9899)
    while value % 100 == 50:
        value += 1
    gold = 100 * ((value + 50) // 100)
    others = (gold - 100, gold + 100, 10 * ((value + 5) // 10), 1000 * ((value + 500) // 1000))
    question = f"What is {value} rounded to the nearest hundred?"
    return choice(rng, question, gold, [*others, gold + 200])


def _number_words(rng: Random) -> Draft:
    value = rng.randint(1, 999)
    return Draft(f"Which number is '{in_words(value)}'? Write it in digits.", str(value))


def in_words(value: int) -> str:
    """Return a number from 0 to 999 in English words."""
    if value < len(ONES):
        return ONES[value]
    if value < 100:
        tens, ones = divmod(value, 10)
        return TENS[tens - 2] + (f"-{ONES[ones]}" if ones else "")
    hundreds, rest = divmod(value, 100)
    return f"{ONES[hundreds]} hundred" + (f" and {in_words(rest)}" if rest else "")


_CALCULATE, _PICK = "Calculate.", "Choose the right number."

KINDS = (
    Kind("arithmetic:add", "Arithmetic", "number", _CALCULATE, _add),
    Kind("arithmetic:subtract", "Arithmetic", "option", _CALCULATE, _subtract),
    Kind("arithmetic:multiply", "Arithmetic", "number", _CALCULATE, _multiply),
    Kind("arithmetic:divide", "Arithmetic", "option", _CALCULATE, _divide),
    Kind("arithmetic:remainder", "Arithmetic", "option", _CALCULATE, _remainder),
    Kind(
        "arithmetic:order_of_operations", "Arithmetic", "number", _CALCULATE, _order_of_operations
    ),
    Kind("arithmetic:percent", "Arithmetic", "number", _CALCULATE, _percent),
    Kind("arithmetic:add_fractions", "Arithmetic", "maths", _CALCULATE, _add_fractions),
    Kind("arithmetic:boxes", "Arithmetic", "number", "Solve the problem.", _boxes),
    Kind("arithmetic:giving", "Arithmetic", "option", "Solve the problem.", _giving),
    Kind("arithmetic:change", "Arithmetic", "option", "Solve the problem.", _change),
    Kind("numbers:largest_decimal", "Numbers", "option", _PICK, _largest_decimal),
    Kind("numbers:largest_fraction", "Numbers", "option", _PICK, _largest_fraction),
    Kind("numbers:multiples", "Numbers", "option", _PICK, _multiples),
    Kind("numbers:parity", "Numbers", "option", _PICK, _parity),
    Kind("numbers:sequence", "Numbers", "number", "Continue the sequence.", _sequence),
    Kind("numbers:round", "Numbers", "option", _PICK, _round),
    Kind("numbers:words", "Numbers", "number", "Read the number.", _number_words),
)
