"""Citations: the required format, the right sources, and no others.

    format     at least one source is cited in square brackets
    precision  share of the cited sources that are right; absent if none is cited
    recall     share of the right sources that are cited
    f1         their harmonic mean; 0 if none is cited

Citations are texts in square brackets outside code, separated by semicolons, or by commas that are
not part of a title. In round brackets only a known title is a citation, and never in the requested
form. A citation must have the complete title: case, punctuation, articles, a word in front
(`Source: ...`) and the number of a sentence after it are ignored, but a part of a title is not
enough. Citing a source twice counts once.

The gold has the right sources: a list of titles or ids, or an object with `supporting_facts`
(`title`). Sources outside the context (`context_titles`, or `titles` in the material) do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from forgetmap.errors import FieldError
from forgetmap.scoring.extract.failures import why_nothing
from forgetmap.scoring.extract.thinking import visible_text
from forgetmap.scoring.extract.wording import normalise, simplify
from forgetmap.scoring.grade import grade_answer, grade_failure, grade_share
from forgetmap.scoring.scorer import RIGHT_OR_WRONG, SHARE, Fields, Scale, ScorerInput

_MAX_CHARS = 300
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_SQUARE = re.compile(rf"(?<!\\)\[([^\[\]\n]{{1,{_MAX_CHARS}}})\]")
_ROUND = re.compile(rf"\(([^()\n]{{1,{_MAX_CHARS}}})\)")
_BOX = re.compile(r"\s*[xX]?\s*")
_LABEL = re.compile(
    r"^\W*(?:source|title|doc|document|passage|paper|section|see|cf)s?\b\W*", re.IGNORECASE
)
_SENTENCE = re.compile(r" ?[,;:#§]? ?(?:sent(?:ence)?\.? ?)?\d{1,3}$")


class CitationsScorer:
    """Scorer of the citations of a response."""

    name = "citations"
    version = 1
    fields: Mapping[str, Scale] = {
        "format": RIGHT_OR_WRONG,
        "precision": SHARE,
        "recall": SHARE,
        "f1": SHARE,
    }

    def score(self, sample: ScorerInput) -> Fields:
        """Return the values.

        Raises:
            FieldError: the item has no right sources.
        """
        right, known = _sources(sample)
        visible, cut = visible_text(sample.response, sample.finish_reason)
        text = _CODE.sub(" ", simplify(visible))
        cited, in_brackets = _cited(text, right | known)
        if not cited:
            return _nothing(visible, any_right=bool(right), cut=cut)
        answer = "; ".join(sorted(cited))[:500]
        fields = {"format": grade_answer(answer, right=in_brackets)}
        if right:
            hits = len(cited & right)
            fields["precision"] = grade_share(hits / len(cited), answer)
            fields["recall"] = grade_share(hits / len(right), answer)
            fields["f1"] = grade_share(2 * hits / (len(cited) + len(right)), answer)
        return fields


citations = CitationsScorer()


def _sources(sample: ScorerInput) -> tuple[frozenset[str], frozenset[str]]:
    """Return the right sources and all known ones, normalised."""
    gold = sample.gold
    context = sample.material.get("titles")
    if isinstance(gold, Mapping):
        context = gold.get("context_titles") or context
        facts = gold.get("supporting_facts")
        gold = facts.get("title") if isinstance(facts, Mapping) else facts
    titles = [gold] if isinstance(gold, str) else gold
    if not isinstance(titles, list | tuple):
        raise FieldError(
            "the item has no right sources",
            field="gold",
            hint="add a list of titles, or an object with supporting_facts.",
        )
    known = _comparable(context or ())
    right = _comparable(_title(fact) for fact in titles)
    return (right & known if known else right), known


def _title(fact: Any) -> Any:
    """Return the title of a fact, which HotpotQA may write as title and sentence number."""
    return fact[0] if isinstance(fact, list | tuple) and fact else fact


def _comparable(titles: Any) -> frozenset[str]:
    titles = [titles] if isinstance(titles, str) else titles
    return frozenset(normalise(str(title)) for title in titles if str(title).strip())


def _cited(text: str, known: frozenset[str]) -> tuple[set[str], bool]:
    """Return the cited sources, and whether any of them is in square brackets."""
    square = [
        source
        for bracket in _SQUARE.finditer(text)
        if not _BOX.fullmatch(bracket[1])
        for source in _split(bracket[1], known)
    ]
    aside = [
        source
        for bracket in _ROUND.finditer(text)
        for source in _split(bracket[1], known)
        if source in known
    ]
    return {*square, *aside}, bool(square)


def _split(inside: str, known: frozenset[str]) -> Iterator[str]:
    """Iterate over the sources in a pair of brackets."""
    if (title := _normalise_source(inside, known)) in known:
        yield title
        return
    for part in inside.split(";"):
        pieces = [part] if _normalise_source(part, known) in known else part.split(",")
        yield from (source for piece in pieces if (source := _normalise_source(piece, known)))


def _normalise_source(part: str, known: frozenset[str]) -> str:
    """Normalise a source; without label and sentence number if it is then a known one."""
    part = " ".join(part.split())
    bare = _LABEL.sub("", part)
    for reading in (part, bare, _SENTENCE.sub("", part), _SENTENCE.sub("", bare)):
        if (source := normalise(reading)) in known:
            return source
    return normalise(part)


def _nothing(visible: str, *, any_right: bool, cut: bool) -> Fields:
    """Return the values of a response without citations, which has no precision."""
    applying = ("format", "recall", "f1") if any_right else ("format",)
    return dict.fromkeys(applying, grade_failure(why_nothing(visible, cut=cut)))
