r"""Right answers in the formats of data sets.

A text, a number, a truth value, a list of alternatives, `{"text": [...]}`, `{"answer": ...}`, these
written as JSON or Python text, a solution that ends in `#### 12` or `\boxed{12}`; with options a
letter, a number counted from 1, or the text of the option.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.claims import find_marked_claims
from forgetmap.scoring.extract.wording import normalise, simplify, trim

_KEYS = ("answer", "answers", "text", "value", "aliases", "label", "target")
_TRUE = frozenset({"true", "yes", "1", "t", "y"})
_FALSE = frozenset({"false", "no", "0", "f", "n"})
_LABEL = re.compile(r"^\s*[(\[]?([A-Z])\s*(?:[)\].:]|-(?=\s))\s*(.*)$", re.DOTALL)
_HASHES = re.compile(r"####[ \t]*(?=\S)")
_NUMBER_OF_OPTION = re.compile(r"\d{1,2}")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MIN_LETTERS = 10


def right_texts(gold: Any) -> tuple[str, ...]:
    """Return all right answers as texts, in order.

    Raises:
        FieldError: there is none.
    """
    texts = tuple(dict.fromkeys(filter(str.strip, _texts(unwrap(gold)))))
    if not texts:
        raise _unusable(gold, "add the right answer, or remove the item.")
    return texts


def final_texts(gold: Any) -> tuple[str, ...]:
    r"""Return all right answers; of a worked solution, the part after `####` or in `\boxed{}`.

    Raises:
        FieldError: there is none.
    """
    value = gold if isinstance(gold, str) else unwrap(gold)
    finals = tuple(
        dict.fromkeys(final for text in _texts(value) if (final := _final(text).strip()))
    )
    if not finals:
        raise _unusable(gold, "add the right answer, or remove the item.")
    return finals


def truth(gold: Any) -> bool:
    """Whether the right answer is yes.

    Raises:
        FieldError: it is neither yes nor no.
    """
    words = {text.strip().casefold() for text in _texts(unwrap(gold))}
    if words and words <= _TRUE:
        return True
    if words and words <= _FALSE:
        return False
    raise _unusable(gold, "use true or false, or yes or no.")


def option_texts(choices: Any) -> tuple[str, ...]:
    """Return options without their letters, from a list, a mapping, or a text `A: .. B: ..`."""
    value = unwrap(choices)
    if isinstance(value, str):
        return _split(simplify(value))
    if isinstance(value, Mapping):
        value = value.get("text", list(value.values()))
    if not isinstance(value, Sequence):
        return ()
    texts = tuple(text for part in value for text in _texts(part))
    labelled = [_LABEL.match(text) for text in texts]
    if all(match and match[1] == letter for match, letter in zip(labelled, _LETTERS, strict=False)):
        return tuple(match[2].strip() for match in labelled if match)
    return texts


def letters_up_to(gold: Any) -> tuple[str, ...]:
    """Return letters as options whose texts are unknown, at least up to the right one."""
    letters = [text.strip().upper() for text in _texts(unwrap(gold))]
    indices = [index for letter in letters if (index := letter_index(letter)) is not None]
    return tuple(_LETTERS[: max(_MIN_LETTERS, *indices) + 1]) if indices else ()


def letter_index(text: str) -> int | None:
    """Return the index of the option with this letter; None for any other text."""
    index = _LETTERS.find(text.upper()) if len(text) == 1 else -1
    return None if index < 0 else index


def right_indices(gold: Any, options: Sequence[str], *, count_from: int = 1) -> tuple[int, ...]:
    """Return the indices of the right options.

    Args:
        gold: a letter, a number, the text of the option, or several of them.
        options: options as shown.
        count_from: number of the first option.

    Raises:
        FieldError: there is none, or a letter is ambiguous because it is also an option's text.
    """
    texts = right_texts(gold)
    indices = tuple(dict.fromkeys(_option_index(text, options, count_from) for text in texts))
    return tuple(sorted(indices))


def unwrap(value: Any) -> Any:
    """Parse a list or mapping written as JSON or Python text; return anything else as it is."""
    if not (isinstance(value, str) and value.strip()[:1] in {"[", "{"}):
        return value
    for parse in (json.loads, ast.literal_eval):
        try:
            parsed = parse(value.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(parsed, list | tuple | dict):
            return parsed
    return value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, int):
        yield str(value)
    elif isinstance(value, float) and math.isfinite(value):
        yield str(int(value)) if value.is_integer() else str(value)
    elif isinstance(value, Mapping):
        for key in _KEYS:
            yield from _texts(value.get(key))
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)


def _final(text: str) -> str:
    if hashes := list(_HASHES.finditer(text)):
        return text[hashes[-1].end() :]
    claims = find_marked_claims(simplify(text))
    return claims[-1].phrase if claims else text


def _split(text: str) -> tuple[str, ...]:
    """Split a text at A, B, C in this order, each at the start of a line, else after a blank."""
    by_line = _labels(text, r"^[ \t]*")
    labels = by_line if len(by_line) > 1 else _labels(text, r"(?:^|(?<=\s))")
    ends = [*(label.start() for label in labels[1:]), len(text)]
    parts = (text[label.end() : end] for label, end in zip(labels, ends, strict=False))
    return tuple(part.strip(" \n\t;,") for part in parts)


def _labels(text: str, before: str) -> list[re.Match[str]]:
    """Return the labels in order, all with the same mark after the letter."""
    labels: list[re.Match[str]] = []
    mark = r"[)\].:]"
    for letter in _LETTERS:
        label = re.compile(rf"{before}[(\[]?{letter}({mark})\s", re.MULTILINE)
        match = label.search(text, labels[-1].end() if labels else 0)
        if match is None:
            break
        labels.append(match)
        mark = re.escape(match[1])
    return labels


def _option_index(text: str, options: Sequence[str], count_from: int) -> int:
    answer = trim(simplify(text))
    same = {index for index, option in enumerate(options) if option.strip() == text.strip()} or {
        index for index, option in enumerate(options) if normalise(option) == normalise(text)
    }
    letter = _letter(answer, len(options))
    if letter is not None and same and letter not in same:
        raise _unusable(
            text,
            f"use the text of the option; this letter is both that of {options[letter]!r} "
            "and the text of another option.",
        )
    if letter is not None:
        return letter
    if same:
        return min(same)
    if labelled := _LABEL.match(simplify(text)):
        return _option_index(labelled[1], options, count_from)
    if _NUMBER_OF_OPTION.fullmatch(answer) and count_from <= int(answer) < count_from + len(
        options
    ):
        return int(answer) - count_from
    raise _unusable(text, f"use the letter or the text of one of the {len(options)} options.")


def _letter(text: str, count: int) -> int | None:
    index = _LETTERS.find(text.upper()) if len(text) == 1 and text.isalpha() else -1
    return index if 0 <= index < count else None


def _unusable(gold: Any, hint: str) -> FieldError:
    return FieldError(f"the right answer {str(gold)[:60]!r} is invalid", field="gold", hint=hint)


def passage_of(material: Mapping[str, Any], gold: Any = None) -> str:
    """Return the text that supports an answer: the supporting sentences if named, else all."""
    context = unwrap(material.get("context", material.get("ctx")))
    supporting = list(_supporting(context, unwrap(gold)))
    return "\n".join(supporting or texts_in(context))


def _supporting(context: Any, gold: Any) -> Iterator[str]:
    """Iterate over the sentences that HotpotQA names by title and number."""
    facts = gold.get("supporting_facts") if isinstance(gold, Mapping) else None
    if not (isinstance(facts, Mapping) and isinstance(context, Mapping)):
        return
    pages = dict(zip(_list_at(context, "title"), _list_at(context, "sentences"), strict=False))
    for title, number in zip(_list_at(facts, "title"), _list_at(facts, "sent_id"), strict=False):
        sentences = pages.get(title)
        if isinstance(sentences, list) and isinstance(number, int) and number < len(sentences):
            yield str(sentences[number])


def _list_at(value: Mapping[str, Any], key: str) -> list[Any]:
    values = value.get(key)
    return list(values) if isinstance(values, list | tuple) else []


def texts_in(value: Any) -> Iterator[str]:
    """Iterate over all texts in a nested value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from texts_in(part)
