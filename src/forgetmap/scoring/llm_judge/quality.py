"""Quality of a response on a scale from 0 or 1 to 10.

An empty response gets the worst value; a judgement that failed gets none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forgetmap.errors import FieldError
from forgetmap.records import Outcome
from forgetmap.scoring.extract.wording import simplify
from forgetmap.scoring.grade import Grade, grade_count, grade_failure, grade_share
from forgetmap.scoring.llm_judge.prompts import (
    ask,
    ask_of_response,
    passage,
    question,
    read_score,
    response_text,
    silence,
    turns,
    unreadable,
)
from forgetmap.scoring.scorer import RATING, SHARE, Fields, JudgeQuestion, Scale, ScorerInput
from forgetmap.scoring.scorers.reasoning_steps import reasoning_steps, steps

_BEST = 10
_SCORE = (
    "Give your reasons in a few sentences. Then end with a line that holds nothing but SCORE, a "
    "colon and a whole number from 0 to 10, for example:\nSCORE: 6"
)
_RATING = (
    "Give your reasons in a few sentences. Then end with a line that holds nothing but RATING, a "
    "colon and a whole number from 1 to 10, for example:\nRATING: 6"
)
_COHERENCE = (
    "Judge how well the reasoning hangs together: whether each step follows from the question or "
    "from steps before it, in an order that can be followed, without leaps, repetition or "
    "contradiction. Whether the result is right does not matter here. 10: every step follows. 7: "
    "small gaps that are easily filled. 4: steps that come from nowhere. 0: no connected reasoning."
)
_CONSISTENCY = (
    "Judge whether the reasoning keeps to its own results: whether values, formulas and decisions "
    "once reached, such as options ruled out, are used unchanged in later steps, and whether the "
    "final answer is the one the steps arrive at. Whether they are right does not matter here. 10: "
    "all carried through. 7: a slip without consequence. 4: a result is changed or dropped on the "
    "way. 0: the final answer has nothing to do with the steps."
)
_FOLLOWING = (
    "Take the request apart into its requirements: what to do, and every constraint on content, "
    "form, length, style, language and order. Decide for each whether the response meets it fully. "
    "The score is the share that is met, times ten, rounded: 10 if all are met, 0 if none is."
)
_REPLY = (
    "Rate the last reply of the assistant: whether it does what the last message of the user asks, "
    "in keeping with all that was said before, and is correct, complete, clear and to the point. "
    "10: nothing to improve. 7: good with minor faults. 4: an important part is missing or wrong. "
    "1: useless, or no reply to what was asked."
)


class ReasoningScorer:
    """Whether steps follow from one another, and results are used consistently.

    `reasoning` is the mean of both and of `step_validity`, which is computed by rule.
    """

    name = "reasoning"
    version = 1
    fields: Mapping[str, Scale] = {"reasoning": SHARE, "coherence": SHARE, "consistency": SHARE}

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Ask about coherence, then consistency; nothing for a response without steps."""
        if _no_steps(sample):
            return ()
        material = [
            passage("Question", question(sample)),
            passage("Response", response_text(sample)),
        ]
        return [ask(*material, task, _SCORE) for task in (_COHERENCE, _CONSISTENCY)]

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the values; all are 0 without steps."""
        if why := _no_steps(sample):
            return dict.fromkeys(self.fields, grade_failure(why))
        coherence, consistency = map(_tenths, replies)
        parts = [coherence, consistency, reasoning_steps.score(sample)["step_validity"]]
        known = [part.score for part in parts if part.score is not None]
        grade = grade_share(sum(known) / len(parts)) if len(known) == len(parts) else _failed(parts)
        return {"reasoning": grade, "coherence": coherence, "consistency": consistency}


class FollowingScorer:
    """Share of a request's requirements that the response meets."""

    name = "following"
    version = 1
    fields: Mapping[str, Scale] = {"following": SHARE}

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Ask one question."""
        return ask_of_response(sample, _FOLLOWING, _SCORE)

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the share; 0 for an empty response."""
        why = silence(sample)
        return {"following": grade_failure(why) if why else _tenths(*replies)}


class RatingScorer:
    """How good the last reply of a conversation is, from 1 to 10."""

    name = "rating"
    version = 1
    fields: Mapping[str, Scale] = {"rating": RATING}

    def questions(self, sample: ScorerInput) -> Sequence[JudgeQuestion]:
        """Ask one question, with the whole conversation."""
        if silence(sample):
            return ()
        return [ask(*_conversation(sample), _REPLY, _RATING)]

    def settle(self, sample: ScorerInput, replies: Sequence[str | None]) -> Fields:
        """Return the rating; 1, the worst, for an empty response."""
        if why := silence(sample):
            return {"rating": Grade(RATING.low, why)}
        (reply,) = replies
        value = read_score(reply, 1, _BEST)
        return {"rating": grade_count(value) if value is not None else unreadable(replies)}


def _no_steps(sample: ScorerInput) -> Outcome | None:
    why = silence(sample)
    # Simplified, as in the rule, so that both count the same steps.
    if why is None and not steps(simplify(response_text(sample))):
        return Outcome.NO_ANSWER
    return why


def _tenths(reply: str | None) -> Grade:
    value = read_score(reply, 0, _BEST)
    return grade_share(value / _BEST) if value is not None else unreadable([reply])


def _failed(parts: Sequence[Grade]) -> Grade:
    return next(part for part in parts if part.score is None)


def _conversation(sample: ScorerInput) -> list[str]:
    """Return the turns of user and assistant, the reply to be rated last."""
    questions, before = turns(sample), _replies_before(sample)
    if not questions or len(before) != len(questions) - 1:
        raise FieldError(
            f"{len(questions)} turns of the user and {len(before)} earlier replies",
            field="first_response",
            hint="add the reply to each turn except the last, in `first_response`.",
        )
    parts = [
        passage(f"{role}, turn {turn}", text)
        for turn, (user, reply) in enumerate(
            zip(questions, (*before, response_text(sample)), strict=True), 1
        )
        for role, text in (("User", user), ("Assistant", reply))
    ]
    return ["A conversation between a user and an assistant.", *parts]


def _replies_before(sample: ScorerInput) -> tuple[str, ...]:
    replies = sample.material.get("first_response")
    if replies is None:
        return ()
    return (replies,) if isinstance(replies, str) else tuple(map(str, replies))


reasoning = ReasoningScorer()
following = FollowingScorer()
rating = RatingScorer()
