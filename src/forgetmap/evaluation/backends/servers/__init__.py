"""Models behind a server that speaks as OpenAI's does."""
