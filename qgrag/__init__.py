"""Train, build and run query-centric graph retrieval."""

from importlib.metadata import version

__version__ = version("qgrag")
