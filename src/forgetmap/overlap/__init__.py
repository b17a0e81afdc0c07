"""How much of a model's behaviour is left, from log-probabilities.

    prompts -> completions of both models -> weighed by both -> estimates -> forgetting against KL

`samples` are completions with the log-probabilities both models give them, `estimate` makes numbers
of them, `measure` gets them from models, `records` from evaluation results, and `bridge` relates
divergence to forgetting over several models.
"""
