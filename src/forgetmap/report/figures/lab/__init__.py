"""Figures of training methods: what each keeps, learns and costs."""
