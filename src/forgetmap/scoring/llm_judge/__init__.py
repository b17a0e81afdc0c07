"""Scores by an LLM judge: prompts, parsing of replies, and the connection."""
