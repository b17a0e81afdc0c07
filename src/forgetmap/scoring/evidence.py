"""The text that an answer must stand on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from forgetmap.scoring.golds import unwrapped


def passage_of(material: Mapping[str, Any], gold: Any = None) -> str:
    """The text an answer must stand on: the supporting sentences where they are named, else all."""
    given = unwrapped(material.get("context", material.get("ctx")))
    supporting = list(_supporting(given, unwrapped(gold)))
    return "\n".join(supporting or texts_in(given))


def _supporting(given: Any, gold: Any) -> Iterator[str]:
    """The sentences that HotpotQA names by title and number."""
    facts = gold.get("supporting_facts") if isinstance(gold, Mapping) else None
    if not (isinstance(facts, Mapping) and isinstance(given, Mapping)):
        return
    pages = dict(zip(_listed(given, "title"), _listed(given, "sentences"), strict=False))
    for title, number in zip(_listed(facts, "title"), _listed(facts, "sent_id"), strict=False):
        sentences = pages.get(title)
        if isinstance(sentences, list) and isinstance(number, int) and number < len(sentences):
            yield str(sentences[number])


def _listed(value: Mapping[str, Any], key: str) -> list[Any]:
    found = value.get(key)
    return list(found) if isinstance(found, list | tuple) else []


def texts_in(value: Any) -> Iterator[str]:
    """All texts in a value, whatever holds them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, Sequence):
        for each in value:
            yield from texts_in(each)
