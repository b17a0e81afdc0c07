"""A log format of your own, declared: lines such as `{"riddle": "r1", "stars": 4, ...}`."""

from forgetmap.sources import Format, Measure

RIDDLER = Format(
    name="riddler",
    title="Riddler results",
    fields=[("riddle", "stars", "solver")],
    model="solver.model",
    tasks="riddles",
    item="riddle",
    scores=Measure(metric="stars", low=1, high=5),
    question="text",
    gold="solution",
    response="said",
)
