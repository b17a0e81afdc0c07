"""Conversations in logs: lists of messages with a role and a content."""

from __future__ import annotations

from forgetmap.sources.fields import as_objects, as_text

_USER = ("user", "human")


def texts_of_role(messages: object, *roles: str) -> str | None:
    """Return all texts of these roles in a conversation; a plain text is returned as it is."""
    if not isinstance(messages, list):
        return messages if isinstance(messages, str) else None
    texts = [
        text_of(turn.get("content")) for turn in as_objects(messages) if turn.get("role") in roles
    ]
    return "\n\n".join(filter(None, texts)) or None


def last_question(prompt: object) -> str | None:
    """Return the last message of the user, which may follow a system prompt and examples."""
    if not isinstance(prompt, list):
        return prompt or None if isinstance(prompt, str) else None
    asked = [turn for turn in as_objects(prompt) if str(turn.get("role")).lower() in _USER]
    return text_of(asked[-1].get("content", asked[-1].get("prompt"))) or None if asked else None


def text_of(content: object) -> str | None:
    """Return the text of a message; the texts of its parts are joined."""
    if isinstance(content, list):
        parts = [part.get("text") for part in as_objects(content)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return as_text(content)
