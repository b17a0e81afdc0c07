"""Whether a response rests on its source, says what it should, and nothing else.

A response is taken apart into statements and each is judged by itself. One that says nothing has
the worst value: an empty page is neither faithful nor within bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forgetmap.records import Outcome
from forgetmap.scoring.failures import refuses, why_nothing
from forgetmap.scoring.grades import Judged, failed
from forgetmap.scoring.llm_judge.asking import ask_each, batches, passage
from forgetmap.scoring.llm_judge.replies import unreadable, yes_or_no
from forgetmap.scoring.llm_judge.responses import aloud, silence, text_of
from forgetmap.scoring.llm_judge.statements import statements
from forgetmap.scoring.measured import shared
from forgetmap.scoring.scorer import SHARE, Answered, Ask, Fields, Scale

_SUPPORTED = (
    "Decide for each statement whether the {source} supports it: all it says must stand there or "
    "follow from it directly. That something is true, likely, or not contradicted is not enough. "
    "In doubt, say no."
)
_MADE = (
    "Decide for each point, which comes from a reference answer, whether the response makes it, in "
    "whatever words. A point made in part or only hinted at is not made. In doubt, say no."
)


class Faithfulness:
    """Share of a response's statements that its source supports."""

    name = "faithfulness"
    version = 1
    fields: Mapping[str, Scale] = {"faithfulness": SHARE}

    def asks(self, sample: Answered) -> Sequence[Ask]:
        """Each statement against `context`."""
        source = passage("Source", text_of(sample.material.get("context"), "context"))
        task = _SUPPORTED.format(source="source")
        return ask_each(source, task, "statement", _said(sample))

    def settle(self, sample: Answered, replies: Sequence[str | None]) -> Fields:
        """The share; 0 if nothing was stated."""
        said = _said(sample)
        return {"faithfulness": _share(said, replies) if said else failed(_why(sample))}


class Coverage:
    """Share of the reference's points a response makes, and of its statements within them."""

    name = "coverage"
    version = 1
    fields: Mapping[str, Scale] = {"coverage": SHARE, "within": SHARE}

    def asks(self, sample: Answered) -> Sequence[Ask]:
        """Each point against the response, then each statement against the reference."""
        reference, said = text_of(sample.gold, "gold"), _said(sample)
        if not said:
            return ()
        task = _SUPPORTED.format(source="reference")
        return (
            *ask_each(passage("Response", aloud(sample)), _MADE, "point", _points(reference)),
            *ask_each(passage("Reference", reference), task, "statement", said),
        )

    def settle(self, sample: Answered, replies: Sequence[str | None]) -> Fields:
        """The shares; both are 0 if nothing was stated."""
        said = _said(sample)
        if not said:
            why = failed(_why(sample))
            return {"coverage": why, "within": why}
        points = _points(text_of(sample.gold, "gold"))
        first = len(batches(points))
        return {
            "coverage": _share(points, replies[:first]),
            "within": _share(said, replies[first:]),
        }


def _said(sample: Answered) -> tuple[str, ...]:
    """What the response states; a refusal states nothing."""
    text = aloud(sample)
    return () if silence(sample) or refuses(text) else statements(text)


def _points(reference: str) -> tuple[str, ...]:
    return statements(reference) or (reference,)


def _why(sample: Answered) -> Outcome:
    return silence(sample) or why_nothing(aloud(sample), cut=False)


def _share(judged: Sequence[str], replies: Sequence[str | None]) -> Judged:
    """Of all statements, if every portion was judged."""
    yes = 0
    for batch, reply in zip(batches(judged), replies, strict=True):
        said = yes_or_no(reply, len(batch))
        if said is None:
            return unreadable([reply])
        yes += sum(said)
    return shared(yes / len(judged), f"{yes} of {len(judged)}")


faithfulness = Faithfulness()
coverage = Coverage()
