"""Errors that a user can act on. Each message names the file, argument or value and says what to do."""


class QgragError(Exception):
    """Base of every error that qgrag raises on purpose; the command line prints it without a traceback."""


class InputError(QgragError, ValueError):
    """A document, question file or argument cannot be used as it is."""


class ConfigError(QgragError, ValueError):
    """A configuration value or key is wrong."""


class IndexFormatError(QgragError, ValueError):
    """An index folder is torn, foreign, of a newer format, or was built with another model."""


class MissingComponentError(QgragError, LookupError):
    """A retriever needs a part that the index was built without."""


class MissingExtraError(QgragError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class ModelNotFoundError(QgragError, LookupError):
    """A model name resolves to no local folder, no package and no reachable hub."""


class BuildStoppedError(QgragError, RuntimeError):
    """A build ended early; what is finished is kept, and the same build goes on from there."""


class UntrustedAddressError(QgragError, RuntimeError):
    """A key would go to an address that an index names and the user does not."""


class IndexLockedError(QgragError, RuntimeError):
    """Another process is writing to the same index."""
