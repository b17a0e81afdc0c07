"""Rule-based scorers, one module per subject; registry.py has their names."""
