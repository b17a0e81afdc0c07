"""One answer in many spellings scores the same; other answers in the same spellings do not."""

# ruff: noqa: RUF001  # other scripts are what is tested

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from effort import examples
from forgetmap.scoring.scorer import RuleScorer, ScorerInput
from forgetmap.scoring.scorers.aliases import alias, short_answer
from forgetmap.scoring.scorers.answers import maths, number, option, yes_no
from forgetmap.scoring.scorers.retrieval import retrieval

SCRIPTS = {
    "Arabic-Indic": "٠١٢٣٤٥٦٧٨٩",
    "Persian": "۰۱۲۳۴۵۶۷۸۹",
    "Devanagari": "०१२३४५६७८९",
    "Bengali": "০১২৩৪৫৬৭৮৯",
    "Telugu": "౦౧౨౩౪౫౬౭౮౯",
    "Thai": "๐๑๒๓๔๕๖๗๘๙",
    "full width": "０１２３４５６７８９",
}
CUES = [
    "Answer: {}", "**Answer:** {}", "Answer: **{}**", "### Answer: {}", "The final answer: {}.",
    "First I think, then I add.\nAnswer: {}", "\\boxed{{{}}}", "So $\\boxed{{{}}}$.", "#### {}",
    "{}",
    "Answer: ${}$", "Answer: \\({}\\)", "Answer: `{}`", "Answer: {}<|im_end|>",
    "Respuesta: {}", "Réponse : {}", "Antwort: {}", "Ответ: {}", "答案：{}", "答え：{}",
    "คำตอบ: {}",
    "Jibu: {}", "উত্তর: {}", "సమాధానం: {}", "الإجابة: {}", "उत्तर: {}", "정답: {}", "Cevap: {}",
    "Đáp án: {}", "Απάντηση: {}",
]  # fmt: skip
LOOSE_CUES = [
    "So the answer is {}.", "La respuesta es {}.", "La réponse est {}.", "Die Antwort lautet {}.",
    "Ответ — {}.", "答案是 {}。", "答えは{}です。", "คำตอบคือ {}", "Jibu ni {}.", "উত্তর হল {}।",
    "సమాధానం {}.",
]  # fmt: skip


def grouped(value: int, mark: str) -> str:
    return f"{value:,}".replace(",", mark)


def indian(value: int) -> str:
    digits, sign = str(abs(value)), "-" if value < 0 else ""
    head, tail = digits[:-3], digits[-3:]
    pairs = [head[max(0, end - 2) : end] for end in range(len(head), 0, -2)][::-1]
    return sign + ",".join([*pairs, tail])


def in_script(digits: str, text: str) -> str:
    return text.translate({ord("0") + place: digit for place, digit in enumerate(digits)})


WHOLE: list[Callable[[int], str]] = [
    str,
    lambda n: f"{n:,}",
    lambda n: f"{n}.0",
    lambda n: f"{n:,}.00",
    lambda n: grouped(n, " "),
    lambda n: grouped(n, "\u202f"),
    lambda n: grouped(n, "\u00a0"),
    lambda n: grouped(n, "'"),
    lambda n: grouped(n, "{,}"),
    lambda n: grouped(n, "\\,"),
    lambda n: grouped(n, "_"),
    lambda n: f"{grouped(n, '.')},00",
    indian,
    lambda n: f"{n:,}".replace("-", "\u2212"),
    lambda n: f"{n} apples",
    lambda n: f"{n:,} km",
    lambda n: f"{n}\\text{{ km}}",
    lambda n: f"{n:,} €",
    lambda n: f"x = {n}",
    *[lambda n, digits=digits: in_script(digits, str(n)) for digits in SCRIPTS.values()],
]


def verdict(scorer: RuleScorer, response: str, gold: object, **rest: object) -> float | None:
    return scorer.score(ScorerInput(response, gold, **rest))["acc"].score  # type: ignore[arg-type]


@examples(100)
@given(
    st.integers(-(10**9), 10**9),
    st.sampled_from(WHOLE),
    st.sampled_from(WHOLE[:4]),
    st.sampled_from([*CUES, *LOOSE_CUES]),
    st.integers(-(10**9), 10**9) | st.integers(-9, 9),
)
def test_a_whole_number_counts_however_it_is_written(
    value: int,
    spell: Callable[[int], str],
    spell_gold: Callable[[int], str],
    cue: str,
    other: int,
) -> None:
    gold = spell_gold(value)
    assert verdict(number, cue.format(spell(value)), gold) == 1.0
    assert verdict(number, cue.format(spell(value)), f"He adds.\n#### {gold}") == 1.0
    assume(other not in {0, value})
    for wrong in (other, value + (other if abs(other) < 10 else 1), -value if value else 1):
        if wrong != value:
            assert verdict(number, cue.format(spell(wrong)), gold) == 0.0


@examples(100)
@given(st.integers(1, 10**6), st.integers(1, 99), st.sampled_from([*CUES, *LOOSE_CUES]))
def test_a_decimal_counts_with_point_or_comma(whole: int, cents: int, cue: str) -> None:
    gold = f"{whole}.{cents:02d}"
    spellings = [
        gold, f"{whole:,}.{cents:02d}", f"{whole},{cents:02d}", f"${whole:,}.{cents:02d}",
        f"{grouped(whole, '.')},{cents:02d}", f"{grouped(whole, ' ')},{cents:02d}", f"{gold}000",
        in_script(SCRIPTS["Arabic-Indic"], gold).replace(".", "٫"),
    ]  # fmt: skip
    other = f"{whole}.{cents % 99 + 1:02d}"
    for spelling in spellings:
        assert verdict(number, cue.format(spelling), gold) == 1.0, spelling
        assert verdict(number, cue.format(spelling), other) == 0.0, spelling


def test_a_point_before_three_digits_has_two_readings() -> None:
    assert [verdict(number, "Answer: 1.200", gold) for gold in ("1200", "1.2", "12")] == [1, 1, 0]
    assert verdict(number, "Answer: 1200", "1.200") == 0.0


UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
UNITS += " fifteen sixteen seventeen eighteen nineteen"
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def in_words(value: int) -> str:
    if value < 20:
        return UNITS.split()[value]
    if value < 100:
        rest = f"-{in_words(value % 10)}" if value % 10 else ""
        return TENS[value // 10 - 2] + rest
    size, name = next(
        (s, n) for s, n in ((10**6, "million"), (10**3, "thousand"), (100, "hundred")) if value >= s
    )
    left = value % size
    joint = " and " if 0 < left < 100 else " "
    return f"{in_words(value // size)} {name}" + (f"{joint}{in_words(left)}" if left else "")


@examples(100)
@given(st.integers(0, 10**8), st.integers(1, 1000))
def test_a_number_in_words(value: int, step: int) -> None:
    assert verdict(number, f"Answer: {in_words(value)}", str(value)) == 1.0
    assert verdict(number, f"Answer: {in_words(value)}", str(value + step)) == 0.0


NAMES = [
    "São Paulo", "Zürich", "Łódź", "Brontë", "O'Neill", "St. Louis", "The Hague", "U.S. Open",
    "Jean-Luc Godard", "Москва", "Αθήνα", "القاهرة", "नई दिल्ली", "কলকাতা", "東京", "上海", "서울",
    "กรุงเทพ", "Hà Nội", "1,200 Days", "C++", "Vitamin A", "Straße",
]  # fmt: skip
TEXT_CUES = ["Answer: {}", "Answer: **{}**", "Answer: {}.", 'Answer: "{}"', "{}", "Respuesta: {}"]
SENTENCES = [
    "It is {}, as everybody knows.", "Well, {} comes to mind first.", "答案是{}。",
    "La ciudad se llama {} y es grande.",
]  # fmt: skip
RESPELL: list[Callable[[str], str]] = [
    str,
    str.upper,
    str.lower,
    lambda name: unicodedata.normalize("NFD", name),
    lambda name: unicodedata.normalize("NFC", name),
    lambda name: name.replace(" ", "\u00a0"),
    lambda name: name.replace("'", "\u2019"),
    lambda name: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in name),
    lambda name: name.replace("-", " "),
]


@examples(100)
@given(
    st.sampled_from(NAMES),
    st.sampled_from(RESPELL),
    st.sampled_from([*TEXT_CUES, *SENTENCES]),
    st.sampled_from(NAMES),
)
def test_a_name_counts_however_it_is_written(
    name: str, respell: Callable[[str], str], cue: str, other: str
) -> None:
    response = cue.format(respell(name))
    assert verdict(alias, response, [name]) == 1.0
    assert verdict(alias, response, {"text": ["Atlantis", name]}) == 1.0
    if other != name:
        assert verdict(alias, response, [other]) == 0.0
    if cue in TEXT_CUES:
        assert verdict(short_answer, response, {"answer": name}) == 1.0


@pytest.mark.parametrize("name", ["São Paulo", "Zürich", "Łódź", "Brontë", "Hà Nội", "Αθήνα"])
def test_accents_may_be_left_out(name: str) -> None:
    letters = unicodedata.normalize("NFD", name.replace("Ł", "L"))
    without = "".join(letter for letter in letters if not unicodedata.combining(letter))
    assert verdict(alias, f"It is {without}.", name) == 1.0
    assert verdict(alias, f"It is {name}.", without) == 1.0


@pytest.mark.parametrize(
    ("said", "meant"),
    [("pêche", "péché"), ("мои", "мой"), ("के", "की"), ("か", "が"), ("中京", "京")],
)
def test_marks_that_make_another_word_are_not_left_out(said: str, meant: str) -> None:
    assert verdict(alias, f"It is {said} .", meant) == 0.0
    assert verdict(alias, f"It is {meant} .", meant) == 1.0


OPTIONS = ("Rome", "Paris", "Berlin", "Oslo")
OPTION_FORMS = [
    "{letter}", "({letter})", "{letter}.", "**{letter}**", "{letter}) {text}", "{letter}. {text}",
    "Option {letter}", "{text}", "{text}.", "\\text{{{letter}}}", "$\\textbf{{({letter})}}$",
    "{wide}",
]  # fmt: skip


@examples(100)
@given(
    st.sampled_from(range(4)),
    st.sampled_from(OPTION_FORMS),
    st.sampled_from(
        ["Answer: {}", "**Answer:** {}", "Hm.\nAnswer: {}", "Respuesta: {}", "答案：{}"]
    ),
    st.sampled_from(["{letter}", "{number}", "{text}", "({letter})", "{letter}. {text}"]),
)
def test_an_option_counts_however_it_and_the_gold_are_written(
    place: int, form: str, cue: str, gold_form: str
) -> None:
    def spelled(pattern: str, at: int) -> str:
        wide = "ＡＢＣＤ"[at]
        return pattern.format(letter="ABCD"[at], text=OPTIONS[at], number=at + 1, wide=wide)

    gold = spelled(gold_form, place)
    for at in range(4):
        response = cue.format(spelled(form, at))
        assert verdict(option, response, gold, options=OPTIONS) == float(at == place)


@examples(100)
@given(
    st.integers(10**6, 10**7 - 1),
    st.integers(1, 9),
    st.sampled_from(WHOLE[:2] + WHOLE[4:8] + WHOLE[-7:]),
    st.sampled_from(
        ["{}", "The special number is {}.", "Answer: {}", "Es ist die Zahl {}.", "数字是{}。"]
    ),
)
def test_a_needle_counts_however_it_is_written(
    needle: int, step: int, spell: Callable[[int], str], cue: str
) -> None:
    response = cue.format(spell(needle))
    assert verdict(retrieval, response, [str(needle)]) == 1.0
    assert verdict(retrieval, response, needle) == 1.0
    assert verdict(retrieval, response, [str(needle + step)]) == 0.0


@pytest.mark.parametrize("gold", [True, "true", "True", "yes", "Yes", 1, "1", {"answer": "yes"}])
@pytest.mark.parametrize(
    "yes",
    [
        "Yes",
        "yes.",
        "**Yes**",
        "True",
        "Answer: Yes",
        "Yes, it is.",
        "Sí",
        "Answer: はい",
        "The statement is true.",
    ],
)
def test_yes_in_many_words(yes: str, gold: object) -> None:
    assert verdict(yes_no, yes, gold) == 1.0


@pytest.mark.parametrize("gold", [False, "false", "False", "no", "No", 0, "0"])
@pytest.mark.parametrize(
    "no",
    [
        "No",
        "no.",
        "**No**",
        "False",
        "Answer: No",
        "No, it is not.",
        "Nein",
        "Answer: いいえ",
        "This is not true.",
    ],
)
def test_no_in_many_words(no: str, gold: object) -> None:
    assert verdict(yes_no, no, gold) == 1.0
    assert verdict(yes_no, no, gold=True) == 0.0


@examples(30)
@given(st.integers(1, 60), st.sampled_from([2, 4, 5, 8, 10]), st.data())
def test_a_fraction_counts_however_it_is_written(
    top: int, bottom: int, data: st.DataObject
) -> None:
    value = Fraction(top, bottom)
    spellings = [
        f"{top}/{bottom}", f"\\frac{{{top}}}{{{bottom}}}", f"\\dfrac{{{3 * top}}}{{{3 * bottom}}}",
        f"{float(value)}", f"{float(value * 100):g}\\%", f"x = {top}/{bottom}",
        f"\\frac{{{top}}}{{{bottom}}}\\text{{ cm}}",
    ]  # fmt: skip
    cue = data.draw(
        st.sampled_from(["Answer: {}", "Answer: ${}$", "\\boxed{{{}}}", "Answer: **{}**"])
    )
    response = cue.format(data.draw(st.sampled_from(spellings)))
    gold = data.draw(st.sampled_from(spellings[:4]))
    assert verdict(maths, response, gold) == 1.0
    assert verdict(maths, response, f"\\frac{{{top + 1}}}{{{bottom}}}") == 0.0
