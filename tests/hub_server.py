"""A small server that speaks the protocol of the Hugging Face Hub: repositories, branches, commits, large files, downloads."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlparse

LARGE = 1 << 12  # bytes from which a binary file is a large one
TOKEN = "hf_let_me_in"


@dataclass
class Repository:
    """Commits by their names, and where branches stand."""

    private: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)

    def commit(self, branch: str, files: dict[str, bytes]) -> str:
        said = hashlib.sha1(repr((len(self.commits), sorted(files))).encode()).hexdigest()
        self.commits[said], self.branches[branch] = files, said
        return said

    def at(self, revision: str) -> str | None:
        found = self.branches.get(revision, revision)
        return found if found in self.commits else None


class Hub:
    """What the server holds, and what it was asked."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.large: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.address = ""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self, code: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, content: Any, code: int = 200) -> None:
        self._answer(code, json.dumps(content).encode(), Content_Type="application/json")

    def _missing(self, what: str) -> None:
        self._answer(404, b"{}", X_Error_Code=what, X_Error_Message=what)

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _known(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _repository(self, name: str) -> Repository | None:
        found = self.hub.repositories.get(name)
        return None if found is None or (found.private and not self._known()) else found

    def _parts(self) -> list[str]:
        path = urlparse(self.path).path
        self.hub.asked.append(f"{self.command} {path}")
        return [unquote(part) for part in path.strip("/").split("/")]

    def do_POST(self) -> None:
        parts, body = self._parts(), self._body()
        if parts[:2] == ["api", "validate-yaml"]:
            return self._json({"errors": [], "warnings": []})
        if not self._known():
            return self._answer(401, b"{}")
        if parts == ["api", "repos", "create"]:
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if name in self.hub.repositories:
                return self._json(
                    {"error": "You already created this model repo", "url": f"{self.hub.address}/{name}"}, 409
                )
            made = self.hub.repositories[name] = Repository(asked.get("visibility") == "private")
            made.commit("main", {".gitattributes": b""})
            return self._json({"url": f"{self.hub.address}/{name}"})
        if parts[-4:] == ["info", "lfs", "objects", "batch"]:
            objects = [
                {**o, "actions": {"upload": {"href": f"{self.hub.address}/large/{o['oid']}", "header": {}}}}
                for o in json.loads(body)["objects"]
            ]
            return self._json({"transfer": "basic", "objects": objects})
        name, verb, revision = "/".join(parts[2:4]), parts[4], parts[5]
        repository = self._repository(name)
        if repository is None:
            return self._missing("RepoNotFound")
        if verb == "branch":
            if revision in repository.branches:
                return self._json({"error": "already exists"}, 409)
            repository.branches[revision] = repository.branches["main"]
            return self._json({})
        if verb == "preupload":
            files = [
                {"path": f["path"], "shouldIgnore": False, "uploadMode": "lfs" if self._large(f) else "regular"}
                for f in json.loads(body)["files"]
            ]
            return self._json({"files": files})
        return self._commit(repository, name, revision, body)

    @staticmethod
    def _large(file: dict[str, Any]) -> bool:
        return bool(file["path"].endswith(".safetensors")) and file["size"] > LARGE

    def _commit(self, repository: Repository, name: str, branch: str, body: bytes) -> None:
        files = dict(repository.commits[repository.branches[branch]])
        for line in body.decode().splitlines():
            said = json.loads(line)
            value = said["value"]
            if said["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif said["key"] == "lfsFile":
                files[value["path"]] = self.hub.large[value["oid"]]
            elif said["key"] == "deletedFile":
                del files[value["path"]]
        oid = repository.commit(branch, files)
        self._json({"commitUrl": f"{self.hub.address}/{name}/commit/{oid}", "commitOid": oid, "pullRequestUrl": None})

    def do_PUT(self) -> None:
        parts, content = self._parts(), self._body()
        if hashlib.sha256(content).hexdigest() != parts[1]:
            return self._answer(400)
        self.hub.large[parts[1]] = content
        self._answer(200)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = self._parts()
        of_api = parts[:2] == ["api", "models"]
        name = "/".join(parts[2:4] if of_api else parts[:2])
        repository = self._repository(name)
        if repository is None:
            return self._missing("RepoNotFound")
        revision = "main" if of_api and len(parts) < 6 else parts[5] if of_api else parts[3]
        oid = repository.at(revision)
        if oid is None:
            return self._missing("RevisionNotFound")
        files = repository.commits[oid]
        if of_api:
            siblings = [{"rfilename": path, "size": len(content)} for path, content in files.items()]
            return self._json({"id": name, "sha": oid, "private": repository.private, "siblings": siblings, "tags": []})
        path = "/".join(parts[4:])
        if path not in files:
            return self._missing("EntryNotFound")
        self._answer(200, files[path], ETag=f'"{hashlib.sha256(files[path]).hexdigest()}"', X_Repo_Commit=oid)


@contextmanager
def serving() -> Iterator[Hub]:
    """The Hub at an address of this machine."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Handler,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
