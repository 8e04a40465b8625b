"""The exit codes of every command."""

DONE = 0
"""All that was asked was done."""
FOUND = 1
"""A check found something: damage in an index, or a need of a recipe that is missing."""
MISTAKE = 2
"""The command could not be done as it was given; the message says what to change."""
PARTLY = 3
"""Done in part: files were left out, or extractions, answers or questions failed. The same command tries them again."""
INTERRUPTED = 130
"""Stopped by Ctrl-C; the same command continues."""
