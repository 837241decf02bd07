"""Signals and standard streams of the process of the ``tfr`` command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which end a command as Ctrl-C does: its files are cleaned up."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_raised: list[KeyboardInterrupt] = []  # by signals, while a command runs


def swallowed_interrupt() -> KeyboardInterrupt | None:
    """Return the exception of Ctrl-C or a signal, in case a library has raised an error of its own in its place."""
    return _raised[0] if _raised else None


@contextmanager
def ending_by_signals() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM and SIGHUP, unless they are ignored (``nohup``) or handled.

    An interrupt that Python has turned into a RuntimeError, as in ``__set_name__`` during imports, is raised itself.
    """

    def terminate(number: int, frame: object) -> NoReturn:
        signal.signal(
            number, signal.SIG_IGN
        )  # `timeout` sends the signal twice, and the second must not disturb the cleanup
        _raised.append(Terminated(number))
        raise _raised[-1]

    def interrupt(number: int, frame: object) -> NoReturn:
        _raised.append(KeyboardInterrupt())
        raise _raised[-1]

    _raised.clear()
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    for number in numbers:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, terminate)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise
    finally:
        for number in numbers:
            if signal.getsignal(number) is terminate:
                signal.signal(number, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is interrupt:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def prepare_streams() -> None:
    """Escape what the encoding of a standard stream lacks, and open streams that are closed (``>&-``).

    Otherwise a data file could get the number of a closed stream. Writing to a closed stdout fails with EBADF.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        stream: Any = getattr(sys, name)
        if stream is None:
            with suppress(OSError):
                os.fstat(fd)
                continue  # open, but not for Python
            opened = os.open(os.devnull, os.O_RDONLY if name != "stderr" else os.O_WRONLY)
            if opened != fd:
                os.dup2(opened, fd)
                os.close(opened)
            if name != "stdin":
                setattr(sys, name, open(fd, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def echo(text: object, *, err: bool = False) -> None:
    """Print a line on stdout or stderr; an error other than a closed pipe names the stream."""
    stream = sys.stderr if err else sys.stdout
    try:
        stream.write(f"{text if has_unicode(stream) else str(text).replace('…', '...')}\n")
        stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard error" if err else "standard output") from error


def output_path(target: str) -> tuple[str, bool]:
    """Path of TARGET, and True if stdout is that file: then the summary goes to stderr.

    Raises
    ------
    OSError
        TARGET is "-", and stdout is closed. Its path would open the null device.
    """
    if target == "-":
        try:
            os.write(sys.stdout.fileno(), b"")
        except ValueError:  # not a file: redirected in this process
            pass
        except OSError as error:
            raise OSError(error.errno, error.strerror, "standard output") from error
        return "/dev/stdout", True
    try:
        return target, os.path.samestat(os.stat(target), os.fstat(sys.stdout.fileno()))
    except (OSError, ValueError):  # no such file, or stdout is closed or redirected in this process
        return target, False


def has_unicode(stream: Any) -> bool:
    """True if the encoding of a stream has all characters. Other encodings have some escaped."""
    return (stream.encoding or "").lower().startswith("utf")


def settle_streams() -> None:
    """Redirect broken streams to the null device: Python does not report them again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            with suppress(OSError, ValueError, AttributeError), open(os.devnull, "wb") as null:
                os.dup2(null.fileno(), stream.fileno())
