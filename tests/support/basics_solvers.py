"""Independent solvers for every question of the suite `basics`, which read only its text.

A solver returns all right answers: one for an open-ended question, every right option for a
multiple-choice question.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

Options = Sequence[str]
Solver = Callable[[str, Options], list[str]]

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [dt.date(2000, month, 1).strftime("%B") for month in range(1, 13)]
TEENS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
DIGITS = {word: value for value, word in enumerate(TEENS)} | {
    word: 10 * value for value, word in enumerate(TENS, start=2)
}


def numbers(text: str) -> list[int]:
    return [int(found) for found in re.findall(r"\d+", text)]


def listed(question: str) -> list[str]:
    return question.rstrip("?").rpartition(": ")[2].split(", ")


def calculated(question: str, _: Options) -> list[str]:
    form = question.removeprefix("What is ").rstrip("?")
    for words, sign in (("times", "*"), ("divided by", "//")):
        form = form.replace(words, sign)
    return [str(eval(form))]


def equal_to(value: object) -> list[str]:
    return [str(value)]


def fraction_sum(question: str, _: Options) -> list[str]:
    left, right = re.findall(r"\d+/\d+", question)
    return equal_to(Fraction(left) + Fraction(right))


def boxes(question: str, _: Options) -> list[str]:
    first, count, each = numbers(question)
    return equal_to(first + count * each)


def giving(question: str, _: Options) -> list[str]:
    had, given, lost = numbers(question)
    return equal_to(had - given - lost)


def change(question: str, _: Options) -> list[str]:
    price, paid = map(Decimal, re.findall(r"\d+\.\d\d", question))
    return equal_to(paid - price)


def largest(_: str, options: Options) -> list[str]:
    most = max(map(Fraction, options))
    return [option for option in options if Fraction(option) == most]


def multiples(question: str, options: Options) -> list[str]:
    (base,) = numbers(question)
    return [option for option in options if int(option) % base == 0]


def parity(question: str, options: Options) -> list[str]:
    return [option for option in options if (int(option) % 2 == 1) == ("odd" in question)]


def sequence(question: str, _: Options) -> list[str]:
    a, b, c, d = numbers(question)
    steady, doubling = b - a == c - b == d - c, b == 2 * a and c == 2 * b and d == 2 * c
    assert steady != doubling
    return equal_to(2 * d - c if steady else 2 * d)


def rounded(question: str, options: Options) -> list[str]:
    (value,) = numbers(question)
    hundreds = [option for option in options if int(option) % 100 == 0]
    nearest = min(abs(int(option) - value) for option in hundreds)
    assert nearest < 50
    return [option for option in hundreds if abs(int(option) - value) == nearest]


def number_words(question: str, _: Options) -> list[str]:
    total = 0
    for word in re.findall(r"[a-z]+", question.split("'")[1]):
        if word == "hundred":
            total *= 100
        elif word != "and":
            total += DIGITS[word]
    return equal_to(total)


def weekday(question: str, _: Options) -> list[str]:
    day = next(day for day in DAYS if day in question)
    monday = dt.date(2024, 1, 1) + dt.timedelta(DAYS.index(day))
    return [(monday + dt.timedelta(numbers(question)[0])).strftime("%A")]


def date_after(question: str, _: Options) -> list[str]:
    ahead, *day = numbers(question)
    return equal_to(dt.date(*day) + dt.timedelta(ahead))


def earliest(_: str, options: Options) -> list[str]:
    days = [dt.date.fromisoformat(option) for option in options]
    return [option for option, day in zip(options, days, strict=True) if day == min(days)]


def month_after(question: str, _: Options) -> list[str]:
    cycle = itertools.cycle(MONTHS)
    start = question.rstrip("?").rpartition(" ")[2]
    for month in cycle:
        if month == start:
            break
    return [next(itertools.islice(cycle, numbers(question)[0] - 1, None))]


def iso(question: str, _: Options) -> list[str]:
    text = question.removeprefix("Write ").partition(" in the")[0]
    return equal_to(dt.datetime.strptime(text, "%d %B %Y").date())  # noqa: DTZ007


def ends_at(question: str, _: Options) -> list[str]:
    hour, minute, lasts = numbers(question)
    end = dt.datetime(2024, 1, 1, hour, minute) + dt.timedelta(minutes=lasts)  # noqa: DTZ001
    return [end.strftime("%H:%M")]


def minutes_between(question: str, _: Options) -> list[str]:
    hour, minute, to_hour, to_minute = numbers(question)
    return equal_to(60 * (to_hour - hour) + to_minute - minute)


def afternoon(question: str, _: Options) -> list[str]:
    text = question.removeprefix("What is ").partition(" on ")[0]
    return [dt.datetime.strptime(text, "%I:%M %p").strftime("%H:%M")]  # noqa: DTZ007


def nth(question: str, _: Options) -> list[str]:
    place = ["first", "second", "third", "fourth", "fifth"].index(question.split()[4])
    return [listed(question)[place]]


def after(question: str, _: Options) -> list[str]:
    words = listed(question)
    return [words[words.index(question.split("'")[1]) + 1]]


def count(question: str, _: Options) -> list[str]:
    return equal_to(Counter(listed(question))[question.split("'")[1]])


def missing(question: str, _: Options) -> list[str]:
    first, second = (set(found.split(", ")) for found in re.findall(r"\[(.*?)\]", question))
    return sorted(first - second)


def twice(question: str, _: Options) -> list[str]:
    return [word for word, times in Counter(listed(question)).items() if times == 2]


def initials(question: str, _: Options) -> list[str]:
    return ["".join(re.findall(r"\b[a-z]", question.rpartition(": ")[2]))]


def letters(question: str, _: Options) -> list[str]:
    letter, word = re.findall(r"'(\w+)'", question)
    return equal_to(len(word.split(letter)) - 1)


def contains(question: str, options: Options) -> list[str]:
    letter = question.split("'")[1]
    return [option for option in options if set(letter) & set(option)]


def longest(_: str, options: Options) -> list[str]:
    return [option for option in options if all(len(option) >= len(other) for other in options)]


def possible_worlds(question: str) -> list[str]:
    """Decide a syllogism by trying every world of up to three creatures."""
    *facts, asked = re.findall(r"[^.?]+[.?]", question)
    names = sorted(set(re.findall(r"\b[a-z]{4,}", question)) - {"some"})
    kinds = list(itertools.product((True, False), repeat=len(names)))
    verdicts = set()
    for size in (1, 2, 3):
        for members in itertools.combinations_with_replacement(kinds, size):
            world = [dict(zip(names, member, strict=True)) for member in members]
            if all(holds(fact, world) for fact in facts):
                verdicts.add(holds(asked, world))
    return {
        frozenset({True}): ["yes"],
        frozenset({False}): ["no"],
        frozenset({True, False}): ["it cannot be known"],
    }[frozenset(verdicts)]


def holds(sentence: str, world: list[dict[str, bool]]) -> bool:
    words = sentence.strip(" .?").split()
    if words[0] == "There":
        return any(each[words[-1]] for each in world)
    if words[0] == "Are":
        quantity, first, second = words[1].lower(), words[2], words[3]
    else:
        quantity, first, second = words[0].lower(), words[1], words[3]
    if quantity == "all":
        return all(each[second] for each in world if each[first])
    overlap = any(each[first] and each[second] for each in world)
    return not overlap if quantity == "no" else overlap


def syllogism(question: str, _: Options) -> list[str]:
    return possible_worlds(question)


def conditional(question: str, _: Options) -> list[str]:
    verdicts = set()
    *facts, asked = re.findall(r"[^.?]+[.?]", question)
    first, second = re.findall(r"is (?:not )?(\w+)(?:,| or) (?:it is )?(\w+)", facts[0])[0]
    for box in itertools.product((True, False), repeat=2):
        world = dict(zip((first, second), box, strict=True))
        if "If" in facts[0]:
            rule = not world[first] or world[second]
        else:
            rule = sum(box) == 1 if "but not both" in facts[0] else any(box)
        known = facts[1].strip(" .").split()[-1]
        if rule and world[known] != ("not" in facts[1]):
            verdicts.add(world[asked.strip(" ?").split()[-1]])
    return ["it cannot be known"] if len(verdicts) > 1 else ["yes" if verdicts.pop() else "no"]


def ordering(question: str, options: Options) -> list[str]:
    pairs = re.findall(r"(\w+) is taller than (\w+)", question)
    orders = [
        order
        for order in itertools.permutations(options)
        if all(order.index(more) < order.index(less) for more, less in pairs)
    ]
    return sorted({order[0 if "tallest" in question else -1] for order in orders})


def seating(question: str, options: Options) -> list[str]:
    pairs = re.findall(r"(\w+) sits directly to the right of (\w+)", question)
    rows = [
        row
        for row in itertools.permutations(options)
        if all(row.index(right) == row.index(left) + 1 for right, left in pairs)
    ]
    return sorted({row[-1] for row in rows})


def swaps(question: str, _: Options) -> list[str]:
    has = dict(re.findall(r"(\w+) has the (\w+)", question))
    for one, other in re.findall(r"(\w+) and (\w+) swap", question):
        has |= {one: has[other], other: has[one]}
    return [has[question.split()[-3]]]


def turning(question: str, _: Options) -> list[str]:
    facing = re.findall(r"You face (\w+)", question)[0]
    right = {"north": "east", "east": "south", "south": "west", "west": "north"}
    for turn in re.findall(r"\b(left|right)\b", question):
        for _step in range(1 if turn == "right" else 3):
            facing = right[facing]
    return [facing]


def liars(question: str, _: Options) -> list[str]:
    first, start = re.findall(r"(\w+) always (tells|lies)", question)[0]
    honest = {first: start == "tells"}
    for name, about, claim in re.findall(r"(\w+) says that (\w+) (tells|lies)", question):
        honest[name] = honest[about] == (claim == "tells")
    return ["yes" if honest[question.split()[-4]] else "no"]


def embedded(question: str) -> object:
    return json.loads(question[question.index("{") : question.rindex("}") + 1])


def json_value(question: str, _: Options) -> list[str]:
    found = embedded(question)
    for key in reversed(re.findall(r"'(\w+)'", question)):
        assert isinstance(found, dict)
        found = found[key]
    return equal_to(found)


def valid_json(_: str, options: Options) -> list[str]:
    def valid(text: str) -> bool:
        try:
            json.loads(text)
        except json.JSONDecodeError:
            return False
        return True

    return [option for option in options if valid(option)]


def brackets(_: str, options: Options) -> list[str]:
    def closed(text: str) -> bool:
        shorter = re.sub(r"\(\)|\[\]|\{\}", "", text)
        return not shorter or (shorter != text and closed(shorter))

    return [option for option in options if closed(option)]


def snake_case(question: str, _: Options) -> list[str]:
    return [re.sub(r" ", "_", question.split("'")[1].lower())]


def key_value(question: str, _: Options) -> list[str]:
    key = question.split("'")[1]
    return re.findall(rf"\b{key}=(\w+)", question)


def table(question: str) -> tuple[list[dict[str, str]], str]:
    text, asked = question.split("\n\n")
    header, *rows = [line.split(",") for line in text.splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows], asked


def cell(question: str, _: Options) -> list[str]:
    rows, asked = table(question)
    column, name = re.findall(r"the (\w+) of (\w+)", asked)[0]
    return [row[column] for row in rows if row["name"] == name]


def column_total(question: str, _: Options) -> list[str]:
    rows, asked = table(question)
    return equal_to(sum(int(row[asked.split("'")[1]]) for row in rows))


def row_of_largest(question: str, _: Options) -> list[str]:
    rows, asked = table(question)
    column = asked.rstrip("?").split()[-1]
    most = max(int(row[column]) for row in rows)
    return [row["name"] for row in rows if int(row[column]) == most]


SOLVERS: dict[str, Solver] = {
    "arithmetic:add": calculated,
    "arithmetic:subtract": calculated,
    "arithmetic:multiply": calculated,
    "arithmetic:divide": calculated,
    "arithmetic:remainder": lambda q, _: equal_to(numbers(q)[0] % numbers(q)[1]),
    "arithmetic:order_of_operations": calculated,
    "arithmetic:percent": lambda q, _: equal_to(Fraction(numbers(q)[0], 100) * numbers(q)[1]),
    "arithmetic:add_fractions": fraction_sum,
    "arithmetic:boxes": boxes,
    "arithmetic:giving": giving,
    "arithmetic:change": change,
    "numbers:largest_decimal": largest,
    "numbers:largest_fraction": largest,
    "numbers:multiples": multiples,
    "numbers:parity": parity,
    "numbers:sequence": sequence,
    "numbers:round": rounded,
    "numbers:words": number_words,
    "dates:weekday": weekday,
    "dates:date_after": date_after,
    "dates:earliest": earliest,
    "dates:month_after": month_after,
    "dates:iso": iso,
    "times:ends_at": ends_at,
    "times:minutes_between": minutes_between,
    "times:24_hours": afternoon,
    "lists:nth": nth,
    "lists:after": after,
    "lists:count": count,
    "lists:length": lambda q, _: equal_to(q.count(",") + 1),
    "lists:reverse": lambda q, _: [", ".join(reversed(listed(q)))],
    "lists:sort": lambda q, _: [", ".join(sorted(listed(q)))],
    "lists:missing": missing,
    "lists:twice": twice,
    "lists:total": lambda q, _: equal_to(sum(numbers(q))),
    "words:initials": initials,
    "words:letters": letters,
    "words:backwards": lambda q, _: ["".join(reversed(q.split("'")[1]))],
    "words:contains": contains,
    "words:first_in_alphabet": lambda _, options: sorted(options)[:1],
    "words:longest": longest,
    "logic:syllogism": syllogism,
    "logic:conditional": conditional,
    "logic:ordering": ordering,
    "logic:seating": seating,
    "logic:boolean": lambda q, _: equal_to(eval(q.partition(": ")[2].rstrip("?"))),
    "logic:swaps": swaps,
    "logic:turning": turning,
    "logic:liars": liars,
    "formats:json_value": json_value,
    "formats:nested_value": json_value,
    "formats:valid_json": valid_json,
    "formats:brackets": brackets,
    "formats:snake_case": snake_case,
    "formats:key_value": key_value,
    "formats:path": lambda q, _: [q.rpartition("/")[2].rstrip("?")],
    "tables:cell": cell,
    "tables:total": column_total,
    "tables:row": row_of_largest,
}
