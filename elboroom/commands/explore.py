"""elbo explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from elboroom.commands.output import say
from elboroom.core.problem import Problem


def explore(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="runs, folders of runs, or a study")],
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="where to listen", show_default="8421, or any")
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="the address to listen on; others than this machine's own let others in")
    ] = "127.0.0.1",
    points: Annotated[int, typer.Option("--points", min=2, max=100_000, help="examples on the map")] = 10_000,
    view: Annotated[str, typer.Option("--view", help="what to show first, as `copy as command` writes it")] = "",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open the page")] = True,
) -> None:
    """Look into runs in the browser: sliders, a map of the codes, paths, edits, your own inputs."""
    try:
        from elboroom.explorer import serve
    except ImportError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise Problem("elbo explore needs starlette and uvicorn: pip install 'elboroom[explore]'") from None
    from elboroom.explorer.guard import LOCAL
    from elboroom.explorer.shelf import found

    runs = found(folders)
    pair = len(runs) == len(folders) == 2  # that were named, and not two of many
    made = serve.explorer(runs, host, port, points, view or (serve.BESIDE if pair else ""))
    if host not in LOCAL:
        say(
            f"--host {host}: whoever reaches this machine over the network and knows the address below can see these runs"
        )
    print(made.url, flush=True)
    say(f"exploring {len(runs)} run{'s' * (len(runs) != 1)}; Ctrl-C ends it")
    if browser:
        serve.show(made.url)
    made.serve()
