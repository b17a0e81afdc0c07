"""Logic, with invented words so that no knowledge is needed."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from forgetmap.evaluation.suites.basics.drafts import Draft, Kind, choice

CLASSES = ("blicks", "daxes", "wugs", "zibs", "tomas", "feps", "lorps", "miffs", "quims", "rells")
STATES = ("zib", "wug", "dax", "fep", "lorp", "miff", "rell", "quim")
NAMES = ("Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana")
THINGS = ("ball", "book", "cup", "hat", "key", "lamp", "pen", "ring")
TURNS = ("north", "east", "south", "west")
YES_NO_UNKNOWN = ("yes", "no", "it cannot be known")

SYLLOGISMS = {
    "All {a} are {b}. All {b} are {c}. Are all {a} {c}?": "yes",
    "All {a} are {b}. No {b} are {c}. Are any {a} {c}?": "no",
    "All {a} are {b}. All {c} are {b}. Are all {a} {c}?": "it cannot be known",
    "No {a} are {b}. All {c} are {b}. Are any {a} {c}?": "no",
    "All {a} are {b}. Some {b} are {c}. Are all {a} {c}?": "it cannot be known",
    "There are some {a}. All {a} are {b}. All {a} are {c}. Are some {b} {c}?": "yes",
}
CONDITIONALS = {
    "If the box is {a}, it is {b}. The box is {a}. Is it {b}?": "yes",
    "If the box is {a}, it is {b}. The box is not {b}. Is it {a}?": "no",
    "If the box is {a}, it is {b}. The box is {b}. Is it {a}?": "it cannot be known",
    "If the box is {a}, it is {b}. The box is not {a}. Is it {b}?": "it cannot be known",
    "The box is {a} or {b} or both. It is not {a}. Is it {b}?": "yes",
    "The box is {a} or {b}, but not both. It is {a}. Is it {b}?": "no",
}


def _from_forms(rng: Random, forms: dict[str, str], words: tuple[str, ...]) -> Draft:
    answer = rng.choice(YES_NO_UNKNOWN)
    form = rng.choice([form for form, verdict in forms.items() if verdict == answer])
    a, b, c = rng.sample(words, 3)
    return choice(rng, form.format(a=a, b=b, c=c), answer, YES_NO_UNKNOWN, options=3)


def _syllogism(rng: Random) -> Draft:
    return _from_forms(rng, SYLLOGISMS, CLASSES)


def _conditional(rng: Random) -> Draft:
    return _from_forms(rng, CONDITIONALS, STATES)


def _ordering(rng: Random) -> Draft:
    tall = rng.sample(NAMES, 4)
    facts = [f"{more} is taller than {less}." for more, less in pairwise(tall)]
    rng.shuffle(facts)
    end, gold = rng.choice((("tallest", tall[0]), ("shortest", tall[-1])))
    return choice(rng, f"{' '.join(facts)} Who is the {end}?", gold, tall)


def _seating(rng: Random) -> Draft:
    row = rng.sample(NAMES, 4)
    facts = [f"{row[0]} sits at the left end."]
    facts += [f"{right} sits directly to the right of {left}." for left, right in pairwise(row)]
    rng.shuffle(facts)
    question = f"Four people sit in a row. {' '.join(facts)} Who sits at the right end?"
    return choice(rng, question, row[-1], row)


def _boolean(rng: Random) -> Draft:
    a, b, c = (rng.choice((True, False)) for _ in range(3))
    forms = {
        f"not {a} and {b}": not a and b,
        f"not ({a} and {b})": not (a and b),
        f"({a} or {b}) and {c}": (a or b) and c,
        f"{a} and ({b} or not {c})": a and (b or not c),
        f"not ({a} or {b}) or {c}": not (a or b) or c,
        f"({a} and {b}) or ({b} and {c})": (a and b) or (b and c),
        f"({a} or not {b}) and not {c}": (a or not b) and not c,
        f"not {a} or ({b} and not {c})": not a or (b and not c),
    }
    form = rng.choice(list(forms))
    return choice(rng, f"What is the value of: {form}?", forms[form], (True, False), options=2)


def _swaps(rng: Random) -> Draft:
    people, things = rng.sample(NAMES, 4), rng.sample(THINGS, 4)
    has = dict(zip(people, things, strict=True))
    start = ", ".join(f"{name} has the {thing}" for name, thing in has.items())
    swaps = []
    for _ in range(3):
        one, other = rng.sample(people, 2)
        has[one], has[other] = has[other], has[one]
        swaps.append(f"{one} and {other} swap.")
    person = rng.choice(people)
    question = f"{start}. {' '.join(swaps)} What does {person} have now?"
    return choice(rng, question, has[person], things)


def _turning(rng: Random) -> Draft:
    start, turns = (
        rng.randrange(4),
        [rng.choice(("left", "right")) for _ in range(rng.randint(2, 5))],
    )
    end = start + sum(1 if turn == "right" else -1 for turn in turns)
    question = (
        f"You face {TURNS[start]} and turn {', then '.join(turns)}, always by 90 degrees. "
        "Which way do you face now?"
    )
    return choice(rng, question, TURNS[end % 4], TURNS)


def _liars(rng: Random) -> Draft:
    first, *others = rng.sample(NAMES, 4)
    truthful = rng.choice((True, False))
    facts = [f"{first} {'always tells the truth' if truthful else 'always lies'}."]
    last = first
    for name in others:
        claims_truth = rng.choice((True, False))
        facts.append(f"{name} says that {last} {'tells the truth' if claims_truth else 'lies'}.")
        truthful, last = claims_truth == truthful, name
    question = f"{' '.join(facts)} Does {last} tell the truth?"
    return choice(rng, question, "yes" if truthful else "no", ("yes", "no"), options=2)


_PICK = "Use only what is said."

KINDS = (
    Kind("logic:syllogism", "Logic", "option", _PICK, _syllogism, options=3),
    Kind("logic:conditional", "Logic", "option", _PICK, _conditional, options=3),
    Kind("logic:ordering", "Logic", "option", _PICK, _ordering),
    Kind("logic:seating", "Logic", "option", _PICK, _seating),
    Kind("logic:boolean", "Logic", "option", "Evaluate the expression.", _boolean, options=2),
    Kind("logic:swaps", "Logic", "option", _PICK, _swaps),
    Kind("logic:turning", "Logic", "option", _PICK, _turning),
    Kind("logic:liars", "Logic", "option", _PICK, _liars, options=2),
)
