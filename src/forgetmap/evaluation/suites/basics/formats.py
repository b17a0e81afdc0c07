"""Formats and tables."""

from __future__ import annotations

import json
from random import Random

from forgetmap.evaluation.suites.basics.drafts import Draft, Kind, choice

KEYS = ("size", "colour", "count", "owner", "place", "width", "height", "label")
VALUES = ("red", "blue", "green", "small", "large", "round", "flat", "soft")
NAMES = ("Ana", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana")
PAIRS = {"(": ")", "[": "]", "{": "}"}


def _fields(rng: Random, count: int) -> dict[str, str]:
    return dict(zip(rng.sample(KEYS, count), rng.sample(VALUES, count), strict=True))


def _json_value(rng: Random) -> Draft:
    fields = _fields(rng, 4)
    key = rng.choice(list(fields))
    return Draft(f"What is the value of '{key}' in {json.dumps(fields)}?", fields[key])


def _nested_value(rng: Random) -> Draft:
    outer, *_ = rng.sample(NAMES, 1)
    tree = {name: _fields(rng, 2) for name in rng.sample([n for n in NAMES if n != outer], 2)}
    tree[outer] = _fields(rng, 3)
    key = rng.choice(list(tree[outer]))
    question = f"What is the value of '{key}' of '{outer}' in {json.dumps(tree)}?"
    return choice(rng, question, tree[outer][key], VALUES)


def _valid_json(rng: Random) -> Draft:
    good = json.dumps(_fields(rng, 2))
    broken = (
        good[:-1],
        good.replace(":", " =", 1),
        good.replace(",", ""),
        good.replace('"', "'"),
        good.replace('"', "", 1),
        good[:-1] + "]",
    )
    return choice(rng, "Which of these is valid JSON?", good, broken)


def _table(rng: Random) -> tuple[list[str], dict[str, list[int]], str]:
    columns = rng.sample(KEYS, 2)
    rows = {name: [rng.randint(1, 30), rng.randint(1, 30)] for name in rng.sample(NAMES, 4)}
    lines = [",".join(("name", *columns))]
    lines += [",".join((name, *map(str, cells))) for name, cells in rows.items()]
    return columns, rows, "\n".join(lines)


def _table_cell(rng: Random) -> Draft:
    columns, rows, text = _table(rng)
    name, column = rng.choice(list(rows)), rng.randrange(2)
    return Draft(f"{text}\n\nWhat is the {columns[column]} of {name}?", str(rows[name][column]))


def _table_total(rng: Random) -> Draft:
    columns, rows, text = _table(rng)
    column = rng.randrange(2)
    total = sum(cells[column] for cells in rows.values())
    return Draft(f"{text}\n\nWhat is the sum of the column '{columns[column]}'?", str(total))


def _table_row(rng: Random) -> Draft:
    columns, rows, text = _table(rng)
    column = rng.randrange(2)
    ranked = sorted(rows, key=lambda name: rows[name][column])
    while rows[ranked[-1]][column] == rows[ranked[-2]][column]:
        columns, rows, text = _table(rng)
        ranked = sorted(rows, key=lambda name: rows[name][column])
    question = f"{text}\n\nWho has the largest {columns[column]}?"
    return choice(rng, question, ranked[-1], rows)


def _brackets(rng: Random) -> Draft:
    opened = [rng.choice("([{") for _ in range(rng.randint(3, 4))]
    good = "".join(opened) + "".join(PAIRS[sign] for sign in reversed(opened))
    wrong = {
        good[:-1],
        good[1:],
        good[0] + good,
        good[::-1],
        good[:-1] + opened[0],
        good[:2] + good[3:],
    }
    question = "In which of these is every bracket closed in the right order?"
    return choice(rng, question, good, sorted(wrong))


def _snake_case(rng: Random) -> Draft:
    words = rng.sample(KEYS + VALUES, 3)
    titled = [word.capitalize() for word in words]
    # With options, as generated answers are graded without regard to capitals and punctuation.
    wrong = ("_".join(titled), "-".join(words), " ".join(words), "".join(titled), "".join(words))
    question = f"Which is '{' '.join(titled)}' in small letters, underscores instead of spaces?"
    return choice(rng, question, "_".join(words), wrong)


def _key_value(rng: Random) -> Draft:
    fields = _fields(rng, 4)
    line = ";".join(f"{key}={value}" for key, value in fields.items())
    key = rng.choice(list(fields))
    return choice(
        rng, f"Which value has '{key}' in this line: {line}?", fields[key], fields.values()
    )


def _path(rng: Random) -> Draft:
    *folders, name = rng.sample(KEYS, 4)
    ending = rng.choice(("txt", "csv", "png", "pdf"))
    question = (
        f"What is the name of the file, with its ending, in /{'/'.join(folders)}/{name}.{ending}?"
    )
    return Draft(question, f"{name}.{ending}")


_READ = "Read the data."

KINDS = (
    Kind("formats:json_value", "Formats", "text", _READ, _json_value),
    Kind("formats:nested_value", "Formats", "option", _READ, _nested_value),
    Kind("formats:valid_json", "Formats", "option", "Check the notation.", _valid_json),
    Kind("formats:brackets", "Formats", "option", "Check the notation.", _brackets),
    Kind(
        "formats:snake_case", "Formats", "option", "Check the notation.", _snake_case, version="2"
    ),
    Kind("formats:key_value", "Formats", "option", _READ, _key_value),
    Kind("formats:path", "Formats", "text", _READ, _path),
    Kind("tables:cell", "Tables", "number", _READ, _table_cell),
    Kind("tables:total", "Tables", "number", _READ, _table_total),
    Kind("tables:row", "Tables", "option", _READ, _table_row),
)
