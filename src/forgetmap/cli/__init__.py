"""The command line: one file per command, one folder per group, loaded only when it is used.

A module here imports click, option modules and light constants at the top; everything else is
imported where a command runs, so that every `--help` is shown at once.
"""
