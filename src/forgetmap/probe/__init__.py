"""A small set of items that stands for a full run."""
