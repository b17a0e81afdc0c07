"""Explicit answers in a response: `Answer: X`, a box, or "the answer is X".

The languages of MGSM, of XTREME's question answering and a few more are supported. Their patterns
are in lower case and composed (NFC), as are the responses that are searched.
"""

# ruff: noqa: RUF001  # words of other languages

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ANSWER_WORDS = (
    r"respuesta(?: final| correcta)?",
    r"r(?:é|e)ponse(?: finale| correcte)?",
    r"(?:(?:endgültige|finale|richtige) )?antwort",
    r"(?:(?:окончательный|итоговый|правильный) )?ответ",
    r"(?:最终|最終|最後の|最終的な|正确|正しい)?(?:答案|答え|解答|回答|答)",
    r"คำตอบ(?:สุดท้าย|ที่ถูกต้อง)?",
    r"jibu(?: la mwisho| sahihi)?",
    r"(?:(?:চূড়ান্ত|সঠিক) )?উত্তর",
    r"(?:(?:తుది|చివరి|సరైన) )?(?:సమాధానం|జవాబు)",
    r"resposta(?: final| correta)?",
    r"risposta(?: finale| corretta)?",
    r"(?:(?:ال)?(?:إجابة|جواب))(?: النهائية| النهائي| الصحيحة| الصحيح)?",
    r"(?:(?:अंतिम|सही) )?(?:उत्तर|जवाब)",
    r"(?:최종 )?(?:정답|답변|답)",
    r"(?:(?:nihai|doğru|son) )?(?:cevap|yanıt)",
    r"(?:đáp án|đáp số|câu trả lời|trả lời)(?: cuối cùng| đúng)?",
    r"(?:(?:τελική|σωστή) )?απάντηση",
    r"(?:(?:ostateczna|prawidłowa) )?odpowiedź",
    r"jawaban(?: akhir)?",
    r"(?:(?:definitieve|juiste) )?antwoord",
    r"(?:остаточна )?відповідь",
    r"(?:ה?תשובה)(?: הסופית)?",
)
_ANSWER = rf"(?:{'|'.join(_ANSWER_WORDS)})"
_FOREIGN_STEMS = (
    "respuesta", "réponse", "reponse", "antwort", "ответ", "答", "คำตอบ", "jibu", "উত্তর", "సమాధానం",
    "జవాబు", "resposta", "risposta", "إجابة", "جواب", "उत्तर", "जवाब", "답", "cevap", "yanıt", "đáp",
    "trả lời", "απάντηση", "odpowiedź", "jawaban", "antwoord", "відповідь", "תשובה",
)  # fmt: skip
"""Every text with such a word contains one of these."""
_ASCII_STEMS = tuple(filter(str.isascii, _FOREIGN_STEMS))
_ARTICLE = r"(?:(?:la|le|el|il|die|der|das|o|a|het|η)[ \t]++)?+"

_COPULAS = (
    r"es|est|ist|lautet|beträgt|è|é|это|ni|هو|هي|है|হল|হলো|হচ্ছে|হবে|là|είναι|jest|to|adalah|is|은|는"
)
_THAT_IS = rf"[ \t*_]*+(?:(?:{_COPULAS})(?![^\W\d_])|是|为|為|は|คือ|เท่ากับ)"
"""Follows the word; in some scripts without a space."""


MAX_ANSWER_CHARS = 500
"""Maximum length of an answer, in characters."""

_MARK = re.compile(
    r"^[ \t>*_#`•-]*+(?:(?:so|thus|therefore|hence|the|my)[ ,]++)*+"
    r"(?:(?:(?:final|correct|best)[ \t]++)*+answer(?:[ \t]++is)?+"
    rf"|{_ARTICLE}{_ANSWER}(?:{_THAT_IS})?+)"
    r"[ \t*_`]*+(?:[:=]|$)[ \t*_`]*+(?:[ \t]*+\n)*+",
    re.IGNORECASE | re.MULTILINE,
)
_BOX = re.compile(r"\\f?boxed[ \t]*+\{")
_BRACE = re.compile(r"[{}]")
_HASHES = re.compile(r"^[ \t]*+####[ \t]++(?=\S)", re.MULTILINE)
_NEXT_QUESTION = re.compile(r"^[*_#\t ]*+(?:Question|Q)[ \t]*+\d{0,3}[ \t]*+:", re.MULTILINE)
_SPOKEN = re.compile(
    r"\b(?:answer|solution|result"
    r"|(?:correct|right|best|final|my|only) (?:option|choice|one|statement))(?: here)?"
    r"(?:[ *_]*+[:=]|[ *_]++(?:is|must be|would be|should be|will be|has to be)"
    r"(?: (?:therefore|thus|then|clearly|most likely|likely|probably|definitely))?\b:?)"
    r"|\b(?:i|we)(?:'d|'ll| would| will)? (?:choose|chose|pick|select|go with|opt for)\b:?",
    re.IGNORECASE,
)
_STEMS = (
    "answer", "solution", "result", "option", "choice", " one", "statement", "choose", "chose",
    "pick", "select", "go with", "opt for",
)  # fmt: skip
_SPOKEN_ELSEWHERE = re.compile(
    rf"(?<![a-zß-ÿа-яё]){_ANSWER}"
    rf"(?:[ \t*_]*+[:=\u2013\u2014]|{_THAT_IS}[ \t]*+:?|(?=[ \t*_$€£¥]*+\d))",
    re.IGNORECASE,
)
_CLAUSE_START = re.compile(r"[.;!?,:\n]|\b(?:so|but|thus|hence|therefore)\b", re.IGNORECASE)
_HEDGED = re.compile(
    r"\b(?:not|never|cannot|nor|neither|if|whether|unless|suppose|assume|assuming|wrong|incorrect|false"
    r"|(?<!no )doubt\w*|might|could|maybe|perhaps"
    r"|no es|no son|no fue|pas|ist nicht|war nicht|kein\w*|не|não é|non è)\b|n't\b|不是|并非",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile("[.!?](?=[\\s*_\"')]|$)|[;。।\u06d4؟]")
_MAX_CLAUSE_CHARS = 80


@dataclass(frozen=True, slots=True)
class AnswerClaim:
    """An answer in the requested form.

    Attributes:
        phrase: text of the answer.
        start: offset of the claim in the text.
        ended: whether its line or box has ended, so that it is complete.
        last: whether it is on the last line.
    """

    phrase: str
    start: int
    ended: bool
    last: bool


def find_marked_claims(text: str) -> list[AnswerClaim]:
    """Return all claims in the requested form, in order."""
    final = text.rfind("\n", 0, len(text.rstrip())) + 1
    lines = [_line_claim(text, mark, final) for mark in _MARK.finditer(text)]
    boxes = [_box_claim(text, box, final) for box in _BOX.finditer(text)]
    marks = _HASHES.finditer(text, final) if "####" in text else ()
    hashes = [_line_claim(text, mark, final) for mark in marks]
    claims = [claim for claim in (*lines, *boxes, *hashes) if claim]
    return sorted(claims, key=lambda claim: claim.start)


def next_question(text: str, position: int) -> int | None:
    """Return the offset at which a base model continues with a question of its own; else None."""
    match = _NEXT_QUESTION.search(text, position)
    return match.start() if match else None


def find_spoken_claims(text: str) -> Iterator[str]:
    """Iterate over the text after "the answer is" and similar, unless negated or a question."""
    for claim in _find_claims(text):
        if is_hedged(text, claim.start()):
            continue
        end = text.find("\n", claim.end())
        rest = text[claim.end() : end if end >= 0 else len(text)][:MAX_ANSWER_CHARS].strip()
        if rest and not first_sentence(rest).endswith("?"):
            yield rest


def _find_claims(text: str) -> list[re.Match[str]]:
    """Return the matches in order; patterns are tried only on texts with one of their words."""
    lower = text.lower()
    foreign = _ASCII_STEMS if lower.isascii() else _FOREIGN_STEMS
    patterns = ((_SPOKEN, _STEMS), (_SPOKEN_ELSEWHERE, foreign))
    likely = [pattern for pattern, stems in patterns if any(map(lower.__contains__, stems))]
    claims = [claim for pattern in likely for claim in pattern.finditer(text)]
    return sorted(claims, key=re.Match.start)


def is_hedged(text: str, position: int) -> bool:
    """Whether the clause before a position negates or doubts what follows."""
    clause = text[max(0, position - _MAX_CLAUSE_CHARS) : position]
    starts = [0, *(start.end() for start in _CLAUSE_START.finditer(clause))]
    return _HEDGED.search(clause, starts[-1]) is not None


def first_sentence(text: str) -> str:
    """Return the first sentence, with its final mark."""
    end = _SENTENCE_END.search(text)
    return text[: end.end()] if end else text


def last_line(text: str) -> str:
    """Return the last line that is not blank."""
    text = text.rstrip()
    return text[text.rfind("\n") + 1 :].strip()


def without_empty_mark(text: str) -> str:
    """Remove an `Answer:` at the end that nothing follows."""
    end = len(text)
    while end:
        start = text.rfind("\n", 0, end - 1) + 1
        line = text[start:end].strip()
        if line and not _MARK.fullmatch(line):
            break
        end = start
    return text[:end].rstrip()


def _line_claim(text: str, mark: re.Match[str], final: int) -> AnswerClaim | None:
    """Return the claim in the rest of the line, or in the next line if the mark is alone.

    `final` is the offset of the last line.
    """
    start = mark.end()
    end = text.find("\n", start)
    ended = end >= 0
    phrase = text[start : min(end if ended else len(text), start + MAX_ANSWER_CHARS)].strip()
    if not phrase or _MARK.fullmatch(phrase):
        return None
    return AnswerClaim(phrase, mark.start(), ended, start >= final)


def _box_claim(text: str, box: re.Match[str], final: int) -> AnswerClaim | None:
    """Return the claim between the braces of a box, if they are closed."""
    depth = 1
    for brace in _BRACE.finditer(text, box.end(), box.end() + MAX_ANSWER_CHARS):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            phrase = text[box.end() : brace.start()]
            return AnswerClaim(phrase, box.start(), ended=True, last=brace.start() >= final)
    return None
