"""Interpreters that start at once: each is forked from a process that has imported the package.

``[*interpreter(), "-m", "tfrecord_io", "head", path]`` is a command for `subprocess`, with standard streams, variables,
a working directory and signals like any other; a new interpreter imports for half a second. `sys.executable` is for
what depends on how Python starts (closed streams, encodings, ``-W``) or ends (threads, objects of modules), on what is
imported, or on memory.

The command is a small process that passes its streams and arguments to a server, which forks; it passes signals on, and
ends as the forked process ends.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import socket
import sys

SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
MOST_BYTES = 1 << 17  # of a request
_commands: list[list[str]] = []


def interpreter() -> list[str]:
    """The first words of a command; those of a new interpreter where the system is not Linux, of 5.3 or later."""
    import atexit
    import subprocess
    import tempfile

    if not hasattr(os, "pidfd_open"):
        return [sys.executable]
    if not _commands:
        folder = tempfile.mkdtemp(dir="/tmp")  # a path of a socket has 107 bytes at most; that of TMPDIR may be longer
        address = os.path.join(folder, "server")
        server = subprocess.Popen([sys.executable, "-P", __file__, address], stdin=-1, stdout=-1)
        assert server.stdout is not None
        assert server.stdout.read(1), "the server has not started"
        atexit.register(server.communicate)  # it ends at the end of its input
        _commands.append([sys.executable, "-I", "-S", __file__, address])
    return _commands[0]


def relay(address: str, arguments: list[str]) -> None:
    """Let the server run the arguments of an interpreter, and end like it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(address)
    request = marshal.dumps((arguments, dict(os.environ), os.getcwd()))
    socket.send_fds(connection, [request], [0, 1, 2])
    for number in range(3):
        os.close(number)  # so that the reader of a stream sees its end
    pid = int(connection.recv(20))
    for each in SIGNALS:
        signal.signal(each, lambda number, _: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    status = int(connection.recv(20))
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def import_all() -> None:
    """Import the modules that calls import late, without a call: no process begins with what others have done."""
    import importlib
    import pkgutil

    import tfrecord_io

    names = [each.name for each in pkgutil.walk_packages(tfrecord_io.__path__, "tfrecord_io.")]
    other = ("__main__", ".plugins", ".torch_", ".keras_")  # modules that import torch and Keras, too
    names = [name for name in names if not any(part in name for part in other)]
    for name in (*names, "pandas", "pyarrow.csv", "pyarrow.parquet", "rich.console", "rich.table", "tqdm.auto"):
        importlib.import_module(name)


def serve(address: str) -> list[str]:
    """Fork a process for each connection; this returns in these processes, with their arguments."""
    import gc
    import warnings

    import_all()
    gc.collect()
    gc.freeze()  # no process looks for garbage in what all share, at its end either
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # those that answer are not waited for
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, for all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)  # as a shell does for what it starts with &
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(address)
        listening.listen()
        os.write(1, b"x")
        while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            with connection, warnings.catch_warnings(action="ignore", category=DeprecationWarning):
                if not os.fork():  # of which Python warns, as numpy has threads
                    return forked(connection)
    os.unlink(address)
    os.rmdir(os.path.dirname(address))
    raise SystemExit


def forked(connection: socket.socket) -> list[str]:
    """The arguments, in a process with their streams; that which answers the relay waits for it."""
    import contextlib

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(connection, MOST_BYTES, 3)
    if pid := os.fork():
        for stream in streams:
            os.close(stream)
        connection.send(b"%d" % pid)
        if connection in select.select([connection, os.pidfd_open(pid)], [], [])[0]:  # the relay was killed
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            connection.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    arguments, variables, folder = marshal.loads(request)
    buffering = 1 if variables.get("PYTHONUNBUFFERED") else -1
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", buffering, closefd=False)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)  # type: ignore[misc]
    os.environ.clear()
    os.environ.update(variables)
    given = variables.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in given if path and path not in sys.path]
    os.chdir(folder)
    return list(arguments)


if __name__ == "__main__" and len(sys.argv) > 2:
    relay(sys.argv[1], sys.argv[2:])
if __name__ == "__main__":
    kind, program, *sys.argv[1:] = serve(sys.argv[1])
    if kind == "-m":
        import runpy

        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        import types

        sys.argv[0] = kind
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(program, "<string>", "exec"), vars(main))
