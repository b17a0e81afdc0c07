"""Responses without an answer: refusals and loops."""

# ruff: noqa: RUF001  # words of other languages

from __future__ import annotations

import re
import zlib
from string import digits

from forgetmap.records import Outcome

_ACTS = (
    r"help|assist|answer|provide(?! (?:a|an|the) (?:definite|definitive|exact|precise|specific))"
    r"|comply|fulfil|respond|engage|discuss|support|participate|continue with th(?:is|at)"
    r"|share|do th(?:at|is)|create|generate|write|offer"
    r"|give (?:you )?(?:advice|instructions|information)"
    r"|complete th(?:is|at)"
)
_UNWILLING = (
    r"(?:can ?not|can't|won't|will not|could not|couldn't|am unable to|'m unable to|am not able to"
    r"|'m not able to|must decline to|have to decline to|am not allowed to|'m not allowed to"
    r"|am not going to|'m not going to)"
)
_REFUSAL = re.compile(
    rf"\b(?:i|we) ?{_UNWILLING} (?:\w+ )?(?:{_ACTS})"
    r"|\bi (?:must|have to|will) (?:respectfully |politely )?(?:decline|refuse)"
    r"|\bas an ai\b[^.\n]{0,80}?\b(?:cannot|can't|unable|not able|do not|don't)\b"
    r"|^\W*(?:i'm|i am|i apologi[sz]e|sorry)\W[^.\n]{0,30}?(?:but|,) i "
    r"(?:can ?not|can't|won't)\b(?! (?:say|tell|determine|decide|find|see|be (?:sure|certain)))",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\bno puedo (?:ayudar|asistir|proporcionar|responder|cumplir)"
    r"|\bje ne (?:peux|suis) pas (?:\w+ )?(?:vous )?(?:aider|fournir|répondre|en mesure)"
    r"|\bich kann (?:\w+ ){0,3}nicht (?:helfen|beantworten|weiterhelfen|bereitstellen)"
    r"|\bnão posso (?:ajudar|fornecer|responder)|\bnon posso (?:aiutar|fornire|rispondere)"
    r"|\bя не могу (?:помочь|предоставить|ответить|выполнить)"
    r"|(?:我|很抱歉)[^。\n]{0,6}(?:无法|不能)(?:为您|为你)?(?:提供|协助|帮助|回答|满足)"
    r"|(?:お手伝い|お答え|提供|対応)[^。\n]{0,6}(?:できません|できかねます)"
    r"|도와드릴 수 없|답변할 수 없"
    r"|لا (?:أستطيع|يمكنني) (?:المساعدة|مساعدتك|تقديم|الإجابة)"
    r"|मदद नहीं कर सकत|সাহায্য করতে পারব না"
    r"|không thể (?:giúp|hỗ trợ|cung cấp|trả lời)|yardımcı olamam|siwezi kusaidia",
    re.IGNORECASE,
)
_STEMS = (
    "cannot", "can not", "can't", "won't", "will not", "could not", "couldn't", "unable",
    "not able", "decline", "refuse", "not allowed", "not going", "as an ai", "no puedo", "je ne ",
    "ich kann ", "non posso ", "yardimci", "siwezi",
)  # fmt: skip
"""Every refusal in ASCII contains one of these; `ı` counts as `i` there."""
_OPENING_CHARS = 300

_MAX_TAIL_CHARS = 20_000
_MIN_LOOP_CHARS = 400
_MIN_REPEATS = 5
_PROBES = (60, 240, 960)
_MIN_LETTERS = 20
_MIN_COMPRESSIBLE_BYTES = 2_000
_LOOP_COMPRESSION = 14
_DIGITS = re.compile(r"\d+")


def is_refusal(text: str) -> bool:
    """Whether the response begins with a refusal; only for responses without an answer."""
    opening = text[:_OPENING_CHARS].lstrip()
    if opening.isascii():
        lower = opening.lower()
        if not any(map(lower.__contains__, _STEMS)):  # faster than the patterns
            return False
    return _REFUSAL.search(opening) is not None or _ELSEWHERE.search(opening) is not None


def why_nothing(text: str, *, cut: bool) -> Outcome:
    """Return the outcome of a text without an answer."""
    if cut:
        return Outcome.TRUNCATED
    return Outcome.REFUSED if is_refusal(text) else Outcome.NO_ANSWER


def is_loop(text: str) -> bool:
    """Whether the text repeats itself up to its end, word for word or nearly so.

    A unit must occur at least five times over at least 400 characters. Units that differ only in
    numbers count if they have enough letters not to be a list or a table.
    """
    tail = text.rstrip()[-_MAX_TAIL_CHARS:]
    if len(tail) < _MIN_LOOP_CHARS:
        return False
    if _repeated_unit(tail):
        return True
    has_digits = not tail.isascii() or any(map(tail.__contains__, digits))
    unit = _repeated_unit(_DIGITS.sub("0", tail)) if has_digits else ""
    if sum(map(str.isalpha, unit)) >= _MIN_LETTERS:
        return True
    data = tail.encode("utf-8", "replace")
    return len(data) >= _MIN_COMPRESSIBLE_BYTES and len(data) > _LOOP_COMPRESSION * len(
        zlib.compress(data)
    )


def _repeated_unit(tail: str) -> str:
    """Return the unit that is repeated at the end of the text; empty if there is none.

    The last characters are searched further left: the distance is the only possible period.
    """
    for probe in _PROBES:
        before = tail.rfind(tail[-probe:], 0, len(tail) - 1)
        period = len(tail) - min(probe, len(tail)) - before
        span = max(_MIN_LOOP_CHARS, _MIN_REPEATS * period)
        if before < 0 or span > len(tail):
            return ""
        if tail[-span:-period] == tail[len(tail) - span + period :]:
            return tail[-period:]
    return ""
