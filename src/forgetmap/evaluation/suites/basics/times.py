"""Dates and times."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from forgetmap.evaluation.suites.basics.drafts import Draft, Kind, choice

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
EVENTS = ("A meeting", "A film", "A lesson", "A concert", "A walk")


def _day(rng: Random) -> date:
    return date(2001, 1, 1) + timedelta(days=rng.randrange(365 * 25))


def _clock(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def _weekday(rng: Random) -> Draft:
    today, ahead = rng.randrange(7), rng.randint(2, 20)
    question = f"Today is {DAYS[today]}. Which day of the week is it in {ahead} days?"
    return choice(rng, question, DAYS[(today + ahead) % 7], DAYS)


def _date_after(rng: Random) -> Draft:
    start, ahead = _day(rng), rng.randint(3, 25)
    gold = start + timedelta(days=ahead)
    slips = [gold + timedelta(days=step) for step in (-2, -1, 1, 2, 10)]
    return choice(rng, f"Which date is {ahead} days after {start}?", gold, slips)


def _earliest(rng: Random) -> Draft:
    first = _day(rng)
    later = [first + timedelta(days=rng.randint(1, 500)) for _ in range(8)]
    dates = dict.fromkeys([first, *later])
    return choice(rng, "Which of these dates is the earliest?", first, dates)


def _ends_at(rng: Random) -> Draft:
    start, lasts = 5 * rng.randint(72, 240), 5 * rng.randint(5, 35)
    question = (
        f"{rng.choice(EVENTS)} starts at {_clock(start)} and lasts {lasts} minutes. "
        "When does it end?"
    )
    end = start + lasts
    slips = [_clock(end + step) for step in (-60, -40, -10, 10, 40, 60)]
    return choice(rng, question, _clock(end), slips)


def _minutes_between(rng: Random) -> Draft:
    start, lasts = 5 * rng.randint(72, 230), 5 * rng.randint(3, 40)
    question = f"How many minutes are there from {_clock(start)} to {_clock(start + lasts)}?"
    return Draft(question, str(lasts))


def _afternoon(rng: Random) -> Draft:
    hour, minute = rng.randint(1, 11), rng.randrange(60)
    afternoon = rng.choice((True, False))
    gold = f"{hour + 12 * afternoon:02d}:{minute:02d}"
    question = f"What is {hour}:{minute:02d} {'pm' if afternoon else 'am'} on a 24-hour clock?"
    others = [f"{other:02d}:{minute:02d}" for other in (hour, hour + 12, hour + 10, hour + 11)]
    return choice(rng, question, gold, others)


def _month_after(rng: Random) -> Draft:
    month, ahead = rng.randrange(12), rng.randint(2, 11)
    question = f"Which month comes {ahead} months after {MONTHS[month]}?"
    gold = (month + ahead) % 12
    near = [MONTHS[(gold + step) % 12] for step in (-2, -1, 1, 2)]
    return choice(rng, question, MONTHS[gold], near)


def _iso_date(rng: Random) -> Draft:
    day = _day(rng)
    question = f"Write {day.day} {MONTHS[day.month - 1]} {day.year} in the form YYYY-MM-DD."
    return Draft(question, str(day))


_PICK = "Choose the right answer."

KINDS = (
    Kind("dates:weekday", "Dates and times", "option", _PICK, _weekday),
    Kind("dates:date_after", "Dates and times", "option", _PICK, _date_after),
    Kind("dates:earliest", "Dates and times", "option", _PICK, _earliest),
    Kind("dates:month_after", "Dates and times", "option", _PICK, _month_after),
    Kind("dates:iso", "Dates and times", "text", "Write the date as asked.", _iso_date),
    Kind("times:ends_at", "Dates and times", "option", _PICK, _ends_at),
    Kind("times:minutes_between", "Dates and times", "number", "Calculate.", _minutes_between),
    Kind("times:24_hours", "Dates and times", "option", _PICK, _afternoon),
)
