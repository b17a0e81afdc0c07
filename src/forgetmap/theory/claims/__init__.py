"""Every claim about the two-mode model, each with an experiment and a control that must fail."""
