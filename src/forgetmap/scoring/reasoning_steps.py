"""What can be said by rule of how a response reasons: its steps, and whether its sums are right."""

from __future__ import annotations

import re
from collections.abc import Mapping

from forgetmap.records import Outcome
from forgetmap.scoring.arithmetic import equations
from forgetmap.scoring.claims import marked
from forgetmap.scoring.grades import failed
from forgetmap.scoring.measured import counted, shared
from forgetmap.scoring.scorer import COUNT, SHARE, Answered, Fields, Scale
from forgetmap.scoring.sentences import sentences
from forgetmap.scoring.thinking import without_thinking
from forgetmap.scoring.wording import plain
from forgetmap.scoring.words import words

_STEP = re.compile(
    r"^[ \t>*_#-]*(?:(?:step|paso|étape|schritt|шаг|passo|bước)[ \t]*\d{1,3}\b[ \t*_]*[:.)-]?"
    r"|第?[一二三四五六七八九十\d]{1,3}步[::]?|ステップ\d{1,3}[::]?|\d{1,2}[.)](?=\s))",
    re.IGNORECASE | re.MULTILINE,
)
_CONNECTED = re.compile(
    r"\b(?:so|thus|hence|therefore|because|since|as|then|if|implies|means|follows|given|let|suppose"
    r"|assume|substitut\w+|simplif\w+|factor\w*|divid\w+|multipl\w+|add\w*|subtract\w*|solv\w+"
    r"|eliminat\w+|rule[sd]? out|option|choice|compar\w+|calculat\w+|comput\w+|consider\w*"
    r"|contradict\w*|conclud\w+|equals?|must|cannot)\b"
    r"|因为|所以|因此|由于|すると|よって|したがって|porque|entonces|donc|parce|also|weil|потому|значит",
    re.IGNORECASE,
)
_FORMULA = re.compile(
    r"[=<>≤≥≈]|\\(?:frac|sqrt|le|ge|times|cdot)|\d\s?[-+*/\u00d7÷^]\s?\d|\$[^$\n]+\$"
)
_LEAST_STEPS = 2


class ReasoningStepsScorer:
    """Counts steps, steps that reason, and equations that hold."""

    name = "reasoning_steps"
    version = 1
    fields: Mapping[str, Scale] = {"steps": COUNT, "step_validity": SHARE, "arithmetic": SHARE}

    def score(self, sample: Answered) -> Fields:
        """The answer line is no step; without steps or equations their shares are left out."""
        aloud, thought_out = without_thinking(sample.response)
        text = plain(aloud)
        found = steps(text)
        if not found:
            return {"steps": failed(Outcome.NO_ANSWER if thought_out else Outcome.TRUNCATED)}
        reasoned = sum(bool(_FORMULA.search(step) or _CONNECTED.search(step)) for step in found)
        values = {"steps": counted(len(found)), "step_validity": shared(reasoned / len(found))}
        if checked := list(equations(text)):
            values["arithmetic"] = shared(sum(checked) / len(checked))
        return values


def steps(text: str) -> list[str]:
    """Numbered steps where there are at least two, else sentences; without the answer."""
    body = _without_answer(text)
    starts = [step.start() for step in _STEP.finditer(body)]
    if len(starts) < _LEAST_STEPS and not (starts and body[: starts[0]].strip() == ""):
        return [each for each in sentences(body) if _FORMULA.search(each) or len(words(each)) > 1]
    ends = [*starts[1:], len(body)]
    return [body[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _without_answer(text: str) -> str:
    claims = marked(text)
    if claims and text[: claims[-1].start].strip() and claims[-1].last:
        return text[: text.rfind("\n", 0, claims[-1].start + 1) + 1] or text[: claims[-1].start]
    return "" if claims and claims[-1].last else text


reasoning_steps = ReasoningStepsScorer()
