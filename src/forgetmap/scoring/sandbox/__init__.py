"""Runs Python that nobody has read: locked in, limited, and unable to claim its own success."""
