"""Entry point of `python -m forgetmap`."""

from forgetmap.cli import script

if __name__ == "__main__":
    script()
