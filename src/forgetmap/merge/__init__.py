"""Merging models: recipes, methods, and an engine that goes tensor by tensor."""
