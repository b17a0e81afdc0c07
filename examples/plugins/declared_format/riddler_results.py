"""A log format of your own, declared: lines such as `{"riddle": "r1", "stars": 4, ...}`."""

from forgetmap.sources import Format, RowScore

RIDDLER = Format(
    name="riddler",
    title="Riddler results",
    fields=[("riddle", "stars", "solver")],
    model="solver.model",
    tasks="riddles",
    item="riddle",
    scores=RowScore(metric="stars", low=1, high=5),
    question="text",
    gold="solution",
    response="said",
)
