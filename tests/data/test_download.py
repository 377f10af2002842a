from __future__ import annotations

import errno
import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

from elboroom.core.problem import Problem
from elboroom.data import images, registry
from elboroom.data.download import File, fetch
from elboroom.data.sources import SOURCES

BODY = np.random.default_rng(0).bytes(300_000)
SUM = hashlib.sha256(BODY).hexdigest()


class Web:
    """A small server: it knows ranges, and cuts the line after `cut` bytes of an answer."""

    def __init__(self) -> None:
        self.files = {"a.bin": BODY}
        self.cut: int | None = None
        self.ranges = True
        self.asked: list[str | None] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                wanted = self.headers.get("Range")
                web.asked.append(wanted)
                body = web.files.get(self.path.lstrip("/"))
                if body is None:
                    return self.send_error(404)
                start = int(wanted[6:-1]) if wanted and web.ranges else 0
                if start and start >= len(body):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(body)}")
                    self.send_header("Content-Length", "0")
                    return self.end_headers()
                self.send_response(206 if start else 200)
                if start:
                    self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
                self.send_header("Content-Length", str(len(body) - start))
                self.end_headers()
                self.wfile.write(body[start:][: web.cut])

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setenv("no_proxy", "*")
    served = Web()
    yield served
    served.server.shutdown()
    served.server.server_close()


def test_whole(web: Web, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    file = File("a.bin", f"{web.url}/a.bin", SUM, len(BODY))
    assert fetch(file, tmp_path / "new", lambda done, total: told.append((done, total))) == SUM
    assert told[-1] == (len(BODY), len(BODY))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["a.bin"]


def test_a_cut_is_said_and_taken_up_again(web: Web, tmp_path: Path) -> None:
    file = File("a.bin", f"{web.url}/a.bin", SUM, len(BODY))
    web.cut = 100_000
    with pytest.raises(Problem, match=r"cut after 100,000 of 300,000 bytes; run again"):
        fetch(file, tmp_path)
    assert (tmp_path / "a.bin.part").stat().st_size == 100_000
    with pytest.raises(Problem, match="cut after 200,000"):
        fetch(file, tmp_path)
    web.cut = None
    fetch(file, tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == BODY
    assert web.asked == [None, "bytes=100000-", "bytes=200000-"]


def test_a_server_without_ranges_starts_again(web: Web, tmp_path: Path) -> None:
    web.ranges = False
    (tmp_path / "a.bin.part").write_bytes(b"something else")
    fetch(File("a.bin", f"{web.url}/a.bin", SUM), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == BODY


@pytest.mark.parametrize("size", [None, len(BODY)])
@pytest.mark.parametrize("part", [BODY, BODY + b"more"])
def test_a_part_that_is_whole_or_too_long(web: Web, tmp_path: Path, size: int | None, part: bytes) -> None:
    (tmp_path / "a.bin.part").write_bytes(part)
    fetch(File("a.bin", f"{web.url}/a.bin", SUM, size), tmp_path)
    assert (tmp_path / "a.bin").read_bytes() == BODY


def test_a_wrong_checksum_removes_the_file(web: Web, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="it was deleted"):
        fetch(File("a.bin", f"{web.url}/a.bin", "0" * 64), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_such_file_no_such_server_no_such_address(web: Web, tmp_path: Path) -> None:
    with pytest.raises(Problem, match="answered 404"):
        fetch(File("b.bin", f"{web.url}/b.bin"), tmp_path)
    with pytest.raises(Problem, match="no connection to"):
        fetch(File("a.bin", "http://127.0.0.1:9/a.bin"), tmp_path)
    with pytest.raises(Problem, match="not a web address"):
        fetch(File("a.bin", "file:///a.bin"), tmp_path)


def test_no_space_and_no_permission(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = File("a.bin", f"{web.url}/a.bin", SUM)
    (tmp_path / "taken").write_text("")
    with pytest.raises(Problem, match="cannot write"):
        fetch(file, tmp_path / "taken" / "folder")

    def refuse(*_: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(Problem, match=r"cannot write .*Permission denied"):
            fetch(file, tmp_path)
    (tmp_path / "a.bin.part").unlink()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(Problem, match="no disk space left"):
        fetch(file, tmp_path)


def test_get_from_another_source(web: Web, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCES["omniglot"]
    web.files = dict.fromkeys(images.OMNIGLOT, BODY)
    with pytest.raises(Problem, match="has checksum"):  # pinned: another file is no substitute
        registry.get("omniglot", source=web.url)
    loose = tuple(replace(file, sha256=None, size=None) for file in source.files)
    monkeypatch.setitem(SOURCES, "omniglot", replace(source, files=loose))
    found = registry.get("omniglot", source=web.url + "/")
    assert (found["state"], found["folder"]) == ("downloaded", str(cache / "omniglot"))
    assert found["files"] == [{"name": name, "sha256": SUM, "pinned": False} for name in images.OMNIGLOT]
    assert registry.get("omniglot")["state"] == "here"
    asked = len(web.asked)
    assert registry.get("omniglot", folder=tmp_path / "mine", source=web.url)["folder"] == str(
        tmp_path / "mine/omniglot"
    )
    assert len(web.asked) == asked + 2


def test_get_packs_text_into_bits(web: Web, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SOURCES["binarized-mnist"]
    web.files = dict.fromkeys(images.AMAT, (b"0 1 " * 392 + b"\n") * 3)
    loose = tuple(replace(file, sha256=None, size=None) for file in source.files)
    monkeypatch.setitem(SOURCES, "binarized-mnist", replace(source, files=loose))
    registry.get("binarized-mnist", source=web.url)
    assert [path.name for path in (cache / "binarized_mnist").iterdir()] == [images.STATIC]
    assert registry.load("binarized-mnist").x([0]).mean() == 0.5


def test_a_server_that_sends_more_than_the_file_has(web: Web, tmp_path: Path) -> None:
    with pytest.raises(Problem, match=r"offers 300,000 bytes, but the file has 1,000"):
        fetch(File("a.bin", f"{web.url}/a.bin", size=1000), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_server_that_never_stops(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a length, and with more than the known size: what is read stops there, and nothing is kept."""

    class Endless(io.BytesIO):
        status, headers = 200, dict[str, str]()

    monkeypatch.setattr("elboroom.data.download.urllib.request.urlopen", lambda *a, **k: Endless(b"x" * 3_000_000))
    with pytest.raises(Problem, match=r"sends more than the 1,000 bytes"):
        fetch(File("a.bin", f"{web.url}/a.bin", size=1000), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url", ["http://", "http://a b/c", "http://a\nb", "http://[", "http://x:99999999/a", "file:///etc/passwd"]
)
def test_a_broken_address_is_one_sentence(tmp_path: Path, url: str) -> None:
    with pytest.raises(Problem):
        fetch(File("a.bin", url), tmp_path)
