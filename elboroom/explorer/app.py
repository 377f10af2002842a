"""The application: a page, its files, and the questions that the page asks of runs by their number."""

from __future__ import annotations

import json
import sys
import traceback
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from elboroom.core.problem import Problem
from elboroom.explorer import picture, verbs
from elboroom.explorer.guard import Guard, Guarded
from elboroom.explorer.shelf import Gone, Shelf
from elboroom.explorer.worker import Busy, Worker
from elboroom.nets.fast.memory import flush_denormals

KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
QUESTION = 2 << 20  # bytes of a question: a lasso around 100,000 points fits


class TooLarge(Problem):
    """More bytes than are read."""


def application(shelf: Shelf, guard: Guard) -> ASGIApp:
    """The explorer of the runs on a shelf, behind its guard."""
    models, atlases = Worker("models", flush_denormals), Worker("atlases")

    async def page(request: Request) -> Response:
        told = {"token": guard.token, "version": version("elboroom")}
        return HTMLResponse(_templates().get_template("explorer.html").render(told))

    async def listed(request: Request) -> Response:
        return JSONResponse(shelf.list())

    async def asked(request: Request) -> Response:
        try:
            return await _answer(request)
        except Problem as problem:
            return JSONResponse({"problem": str(problem)}, _status(problem))
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return JSONResponse({"problem": "the explorer failed; its terminal says why"}, 500)

    async def _answer(request: Request) -> Response:
        number, name = int(request.path_params["number"]), request.path_params["verb"]
        told = await _question(request)
        if name == "reload":
            await models.do(lambda: shelf.reload(number))
            return JSONResponse({})
        atlas = await models.do(lambda: shelf.atlas(number))
        if name in verbs.NEEDS_CODES and not atlas.seen.answers:
            while not await models.do(atlas.seen.advance):
                pass
            await models.do(atlas.ready)
        worker = atlases if name in verbs.SLOW else models
        found = await worker.do(lambda: verbs.ask(name, atlas, told))
        message = found.message(stale=shelf.is_stale(number))
        return Response(message, media_type="application/octet-stream")

    routes = [
        Route("/", page),
        Route("/static/{name}", _static),
        Route("/api/runs", listed),
        Route("/api/runs/{number:int}/{verb}", asked, methods=["POST"]),
    ]
    return Guarded(Starlette(routes=routes), guard)


async def _static(request: Request) -> Response:
    """A file of the page, one of those that there are: no path is made of what was asked."""
    found = _files().get(request.path_params["name"])
    if found is None:
        return PlainTextResponse("there is no such file", 404)
    content, kind = found
    return Response(content, media_type=kind)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    inside = [file for file in (files("elboroom.explorer") / "static").iterdir() if file.is_file()]
    kinds = {file.name: KINDS.get(f".{file.name.rpartition('.')[2]}") for file in inside}
    return {file.name: (file.read_bytes(), kind) for file in inside if (kind := kinds[file.name])}


@cache
def _templates() -> Environment:
    return Environment(loader=PackageLoader("elboroom.explorer"), autoescape=True, undefined=StrictUndefined)


async def _question(request: Request) -> dict[str, Any]:
    """What is asked: JSON, or the bytes of an upload with JSON beside it in the address."""
    if request.headers.get("content-type", "") == "application/octet-stream":
        content = await _body(request, picture.BYTES, "an image")
        return {**_json(request.query_params.get("asked", "{}")), "content": content}
    return _json((await _body(request, QUESTION, "a question")) or b"{}")


async def _body(request: Request, most: int, what: str) -> bytes:
    """The body of a request, refused as soon as it is too large."""
    parts, size = [], 0
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > most:
        raise TooLarge(f"{what} has at most {most >> 20} MB here")
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise TooLarge(f"{what} has at most {most >> 20} MB here")
        parts.append(part)
    return b"".join(parts)


def _json(text: str | bytes) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or {"atlas", "content"} & told.keys():
        raise Problem("a question is a JSON object of named values")
    return told


def _status(problem: Problem) -> int:
    kinds = {Gone: 410, TooLarge: 413, Busy: 503}
    return kinds.get(type(problem), 422)
