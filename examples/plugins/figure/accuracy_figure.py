"""A figure for every report of a comparison: accuracy of each task, before and after."""

from forgetmap.report import FigurePlugin, Payload, Spec


def draw_accuracy(payload: object) -> Spec | None:
    """Vega-Lite; None where this figure has nothing to show, such as in a report of a sweep."""
    if not isinstance(payload, Payload) or not payload.comparisons:
        return None
    rows = [
        {"task": task.name, "when": when, "accuracy": accuracy}
        for task in payload.comparisons[0].tasks
        for when, accuracy in (("before", task.acc_before), ("after", task.acc_after))
        if accuracy is not None
    ]
    return {
        "data": {"values": rows},
        "height": 240,
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": {"field": "when", "type": "ordinal", "sort": None, "title": None},
            "y": {"field": "accuracy", "type": "quantitative", "axis": {"format": "~%"}},
            "color": {"field": "task", "type": "nominal"},
        },
    }


accuracy = FigurePlugin(
    title="Accuracy by task",
    caption="One line per task; those that fall were forgotten more than gained.",
    draw=draw_accuracy,
)
