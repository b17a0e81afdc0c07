"""The language of a text, always the same for the same text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_SEED = 0
_ENOUGH = 5_000


def language(text: str) -> str | None:
    """The ISO 639-1 code of the language of a text; None where it has no letters.

    langdetect draws at random unless it has a seed of its own; the first 5,000 characters decide.
    Capitals are foreign to it, so they are written small.
    """
    return _told(text[:_ENOUGH].lower())


@lru_cache(maxsize=256)
def _told(text: str) -> str | None:
    from langdetect import LangDetectException  # type: ignore[import-untyped]

    detector = _factory().create()
    detector.append(text)
    try:
        found: str = detector.detect()
    except LangDetectException:
        return None
    return None if found == detector.UNKNOWN_LANG else found.partition("-")[0]


@lru_cache(maxsize=1)
def _factory() -> Any:
    """The profiles of all languages, which take a second to load."""
    from langdetect import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.seed = _SEED
    factory.load_profile(PROFILES_DIRECTORY)
    return factory
