"""What lm-eval's IFEval checkers say: JSON lines in, JSON lines out.

Runs in a separate environment (lm-eval, langdetect, immutabledict, nltk). Nothing is downloaded:
the sentence splitter is not used, and words are split without it.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial

os.environ["LOCAL_RANK"] = "1"  # only rank 0 downloads

import langdetect  # type: ignore[import-untyped]
from lm_eval.tasks.ifeval import instructions_util, utils

langdetect.DetectorFactory.seed = 0
instructions_util.nltk.word_tokenize = partial(
    instructions_util.nltk.word_tokenize, preserve_line=True
)


def main() -> None:
    """Answer every question on standard input."""
    for line in sys.stdin:
        asked = json.loads(line)
        example = utils.InputExample(
            key=0,
            instruction_id_list=[asked["kind"]],
            prompt=asked["prompt"],
            kwargs=[asked["given"]],
        )
        print(json.dumps(_answer(example, asked["response"])))


def _answer(example: utils.InputExample, response: str) -> list[bool] | str:
    try:
        strict = utils.test_instruction_following_strict(example, response)
        loose = utils.test_instruction_following_loose(example, response)
    except Exception as error:  # noqa: BLE001  # any error is the result
        return f"{type(error).__name__}: {error}"
    return [strict.follow_all_instructions, loose.follow_all_instructions]


if __name__ == "__main__":
    main()
