"""The error tree. "No" is a value (a rejection); an exception means something broke.

CubeschedError
├── PluginArgsInvalid      a plugin cannot be built as a Profile lists it; carries every problem
├── PluginError            a plugin broke its contract or failed
│   ├── PluginContractBreach
│   └── SnapshotTooLarge   a plugin does not take as much as there is to tell
├── ApiError               the API server refused or could not be reached
│   ├── OutcomeUnknown     a write may or may not have landed
│   └── Gone               the position in the stream is no longer served (410)
├── StoreUnavailable       Redis cannot be reached or answers nonsense
└── UsageError             a command cannot run as asked; one line for the person
"""

from __future__ import annotations


class CubeschedError(Exception):
    """Base of everything raised on purpose; `str()` is a sentence a user can act on."""


class PluginArgsInvalid(CubeschedError):
    """A plugin's name or arguments are wrong; `problems` holds (path, message) for each error.

    Paths start at the plugin's entry in the Profile: `name`, `args.factors[2]`.
    """

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"{path}: {message}" for path, message in problems))
        self.problems = problems


class PluginError(CubeschedError):
    """A plugin failed; carries the plugin's name for the message, metric and failure policy."""

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(f"{plugin}: {message}")
        self.plugin = plugin
        self.message = message


class PluginContractBreach(PluginError):
    """A plugin answered with a wrong shape, type, or node."""


class SnapshotTooLarge(PluginError):
    """The fleet, encoded, is larger than a plugin takes: found before it is sent."""


class ApiError(CubeschedError):
    """The API server answered with an error; `status` is the HTTP code, 0 when none arrived.

    `retry_after_seconds` is the least time that the server asked to be left alone, else 0.
    """

    def __init__(self, message: str, status: int = 0, retry_after_seconds: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_seconds = retry_after_seconds


class OutcomeUnknown(ApiError):
    """A write was sent and no answer came: only the stream can tell whether it landed."""


class Gone(ApiError):
    """The watch or list position is no longer served (HTTP 410): list again from the start."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 410)


class StoreUnavailable(CubeschedError):
    """Redis cannot be reached within the deadline, or answers with the wrong type."""


class UsageError(CubeschedError):
    """A command cannot do what was asked: bad argument, missing file, unreachable server."""
