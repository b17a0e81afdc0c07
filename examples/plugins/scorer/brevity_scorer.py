"""A scorer of your own: is the response a single short sentence?"""

from typing import ClassVar

from forgetmap.scoring import Fields, Scale, ScorerInput, grade_answer

MAX_WORDS = 5


class Brevity:
    """Right if the response has at most five words."""

    name = "brevity"
    version = 1
    fields: ClassVar = {"brief": Scale(binary=True)}

    def score(self, sample: ScorerInput) -> Fields:
        """One value: 1 if the response is brief."""
        brief = len(sample.response.split()) <= MAX_WORDS
        return {"brief": grade_answer(sample.response, right=brief)}


brevity = Brevity()
