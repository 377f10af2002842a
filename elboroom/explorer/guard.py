"""The guard: who may ask. Names of hosts, origins and the token of a launch are looked at before anything else is."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "x-elboroom-token"
LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
POLICY = "default-src 'self'; base-uri 'none'; form-action 'none'; object-src 'none'"


@dataclass(frozen=True)
class Guard:
    """What one launch lets in: these names of hosts, and who knows its token; framed: also into a page of a notebook."""

    hosts: frozenset[str] = LOCAL
    framed: bool = False
    anywhere: bool = False  # bound to all addresses: an address in numbers is no name, so none can be bound anew
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    def refusal(self, scope: Scope) -> Response | None:
        """Why a request is refused, if it is."""
        headers, path = Headers(scope=scope), scope["path"]
        name = host_of(headers.get("host", ""))
        if not self._knows(name):
            return PlainTextResponse("this explorer is not known by that name", 400)
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{headers['host']}":
            return PlainTextResponse("another site may not ask this explorer", 403)
        site, frame = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-dest") == "iframe"
        if site not in ("same-origin", "none") and not (self.framed and frame and path == "/"):
            return PlainTextResponse("open the address of the explorer itself; another site may not lead here", 403)
        if path.startswith("/static/"):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        told = headers.get(TOKEN, "") if path.startswith("/api/") else given
        if not hmac.compare_digest(told.encode(), self.token.encode()):
            sentence = "this address belongs to another launch: open the one that elbo explore printed last"
            return JSONResponse({"problem": sentence}, 403) if path.startswith("/api/") else Response(sentence, 403)
        return None

    def _knows(self, name: str) -> bool:
        return name in self.hosts or (self.anywhere and _is_address(name))

    @property
    def policy(self) -> str:
        """What a page of this explorer may do."""
        return POLICY if self.framed else f"{POLICY}; frame-ancestors 'none'"


def host_of(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.rpartition(":")[0].lower() if ":" in header else header.lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guarded:
    """An application behind a guard; every answer says what a browser may make of it."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request through, or refuses it."""
        if scope["type"] != "http":
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["content-security-policy"] = self.guard.policy
                headers["x-content-type-options"] = "nosniff"
                headers["referrer-policy"] = "no-referrer"  # the address holds the token
                headers["cross-origin-resource-policy"] = "same-origin"
                headers["cache-control"] = "no-store"
            await send(message)

        refused = self.guard.refusal(scope)
        await (refused if refused is not None else self.app)(scope, receive, marked)
