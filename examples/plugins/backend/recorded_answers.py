"""A backend of your own: answers that were recorded elsewhere.

`forgetmap run recorded:answers.json ...` answers each prompt with the text that answers.json has
for the question in it.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from forgetmap.evaluation import (
    Decoding,
    Failure,
    Likelihoods,
    LoadOptions,
    Message,
    ModelSource,
    Prompt,
    Question,
    Response,
)


class RecordedAnswers:
    """Answers by question."""

    context = 1_000_000
    has_chat_template = False
    template_hash = None

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    def chat(self, messages: Sequence[Message]) -> str:
        """Not called: there is no chat template."""
        raise NotImplementedError

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Words, for want of a tokenizer."""
        return [len(text.split()) for text in texts]

    def generate(
        self, prompts: Sequence[Prompt], decoding: Decoding
    ) -> Iterator[tuple[int, Response | Failure]]:
        """The recorded answer, or a failure where there is none: missing, not wrong."""
        del decoding
        for index, prompt in enumerate(prompts):
            text = self._find(prompt.text)
            if text is None:
                yield index, Failure("no recorded answer")
            else:
                yield index, Response(text, None, None, "stop")

    def _find(self, prompt: str) -> str | None:
        return next((text for asked, text in self.answers.items() if asked in prompt), None)

    def loglikelihood(
        self, questions: Sequence[Question]
    ) -> Iterator[tuple[int, Likelihoods | Failure]]:
        """Log-probabilities were not recorded."""
        for index, _ in enumerate(questions):
            yield index, Failure("recorded answers have no log-probabilities")


def open_recorded(source: ModelSource, options: LoadOptions) -> RecordedAnswers:
    """The backend for the file behind `recorded:`."""
    del options
    return RecordedAnswers(json.loads(Path(source.base).read_text(encoding="utf-8")))
