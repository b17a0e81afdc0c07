"""The whole job: evaluate, compare, write everything."""
