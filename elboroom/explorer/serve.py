"""Serving: an explorer in front of this process, or beside it in a thread."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import FrameType

import uvicorn

from elboroom.core.problem import Problem
from elboroom.explorer.app import application
from elboroom.explorer.guard import LOCAL, Guard
from elboroom.explorer.shelf import Shelf
from elboroom.runs.run import Run

PORT = 8421
MOST = 100_000  # points of a map
BESIDE = "run=0&with=1"  # the view of two runs side by side


class AtOnce(uvicorn.Server):
    """A server that a signal ends at once: whoever computes is left behind, since all that is written is whole or not there."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends the process; threads inside torch would make an ordinary end wait, or abort."""
        sys.stdout.flush()
        print("elbo: stopped", file=sys.stderr, flush=True)
        os._exit(128 + sig)


@dataclass(frozen=True)
class Explorer:
    """An explorer that has an address already; it answers once it is served."""

    url: str
    server: uvicorn.Server
    socket: socket.socket

    def serve(self) -> None:
        """Answers until it is stopped."""
        with self.socket:
            self.server.run(sockets=[self.socket])

    def beside(self) -> Explorer:
        """Answers in a thread that ends with this process."""
        threading.Thread(target=self.serve, name="explorer", daemon=True).start()
        return self

    def stop(self) -> None:
        """Ends it."""
        self.server.should_exit = True

    def _repr_html_(self) -> str:
        url = escape(self.url, quote=True)
        return f'<iframe src="{url}" title="elboroom explorer" width="100%" height="900" style="border:0"></iframe>'

    def __repr__(self) -> str:
        return f"Explorer({self.url})"


def explorer(
    runs: Sequence[Run | Path], host: str = "127.0.0.1", port: int | None = None, points: int = 10_000,
    view: str = "", framed: bool = False,
) -> Explorer:  # fmt: skip
    """An explorer of runs, or of their folders; view: what the address of a page has behind its #."""
    if not 2 <= points <= MOST:
        raise Problem(f"a map has 2 to {MOST:,} points, not {points:,}")
    listening = bound(host, port)
    at = listening.getsockname()[1]
    anywhere = host in ("0.0.0.0", "::")
    names = {host.lower(), socket.gethostname().lower()} if host not in LOCAL else set()
    guard = Guard(LOCAL | names, framed, anywhere)
    config = uvicorn.Config(
        application(Shelf(runs, points), guard), log_level="error", access_log=False, lifespan="off", ws="none",
        server_header=False, timeout_graceful_shutdown=1,
    )  # fmt: skip
    reached = own_address(listening.family) if anywhere else host
    shown = f"[{reached}]" if ":" in reached else reached
    address = f"http://{shown}:{at}/?token={guard.token}"
    return Explorer(f"{address}#{view.lstrip('#')}" if view else address, AtOnce(config), listening)


def own_address(family: int) -> str:
    """The address by which others reach this machine, or its own for itself where it has no network; nothing is sent."""
    away, home = ("2001:db8::1", "::1") if family == socket.AF_INET6 else ("192.0.2.1", "127.0.0.1")
    with socket.socket(family, socket.SOCK_DGRAM) as asked:
        try:
            asked.connect((away, 9))
            return str(asked.getsockname()[0])
        except OSError:
            return home


def bound(host: str, port: int | None) -> socket.socket:
    """A socket that listens; where no port is said the usual one, or any that is free."""
    tries = [port] if port is not None else [PORT, 0]
    for number in tries:
        try:
            return _listening(host, number)
        except OverflowError:
            raise Problem(f"--port {number}: must be from 0 to 65535") from None
        except OSError as error:
            if error.errno != errno.EADDRINUSE or number == tries[-1]:
                raise Problem(f"cannot listen on {host}:{number}: {error.strerror or error}") from error
    raise AssertionError


def _listening(host: str, port: int) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    # asyncio turns Nagle's delay off only where a socket says that it is TCP: else an answer waits 40 ms for its other half
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made


def show(url: str) -> None:
    """Opens a page in the user's browser, without waiting for it."""
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
