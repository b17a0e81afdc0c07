"""`python -m forgetmap` is `forgetmap`."""

from forgetmap.cli.main import script

if __name__ == "__main__":
    script()
