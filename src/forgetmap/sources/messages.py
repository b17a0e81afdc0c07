"""Conversations in logs: lists of messages with a role and a content."""

from __future__ import annotations

from forgetmap.sources.fields import as_objects


def texts_of_role(messages: object, *roles: str) -> str | None:
    """Return all texts of these roles in a conversation; a plain text is returned as it is."""
    if not isinstance(messages, list):
        return messages if isinstance(messages, str) else None
    texts = [
        _content(turn.get("content"))
        for turn in messages
        if isinstance(turn, dict) and turn.get("role") in roles
    ]
    return "\n\n".join(filter(None, texts)) or None


def last_question(prompt: object) -> str | None:
    """Return the last message of the user, which may follow a system prompt and examples."""
    if isinstance(prompt, list):
        for turn in reversed(prompt):
            if isinstance(turn, dict) and turn.get("role") == "user":
                return _content(turn.get("content")) or None
        return None
    return prompt or None if isinstance(prompt, str) else None


def _content(content: object) -> str | None:
    """Return the text of a message; the texts of its parts are joined."""
    if isinstance(content, list):
        parts = [part.get("text") for part in as_objects(content)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else None
