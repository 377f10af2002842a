"""What a stranger may try on the explorer, and what becomes of it."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import httpx2
import pytest
from starlette.testclient import TestClient

from elboroom.core.problem import Problem
from elboroom.explorer import picture
from elboroom.explorer.app import QUESTION, application
from elboroom.explorer.guard import TOKEN, Guard, host_of
from elboroom.explorer.serve import bound, explorer
from elboroom.explorer.shelf import Shelf, found
from elboroom.explorer.worker import Busy, Worker

BYTES = {"content-type": "application/octet-stream"}


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8421", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_another_name_of_the_host_is_refused(client: TestClient, host: str) -> None:
    """A name of someone else that was bound to this machine: DNS rebinding."""
    assert client.get("/api/runs", headers={"host": host}).status_code == 400
    assert client.get("/static/app.js", headers={"host": host}).status_code == 400


@pytest.mark.parametrize("host", ["127.0.0.1:8421", "localhost:8421", "[::1]:8421"])
def test_the_names_of_this_machine_are_not(client: TestClient, host: str) -> None:
    assert client.get("/api/runs", headers={"host": host}).status_code == 200


def test_another_address_is_known_by_its_own_name_only() -> None:
    shared = Guard(frozenset({"127.0.0.1", "box"}), anywhere=True)
    assert shared._knows("box")
    assert shared._knows("192.168.1.20")
    assert not shared._knows("evil.example")
    assert not Guard()._knows("192.168.1.20")
    assert [host_of(h) for h in ("A:1", "[::1]:80", "b")] == ["a", "::1", "b"]


@pytest.mark.parametrize("token", ["", "wrong", "é"])
def test_without_the_token_of_this_launch_nothing_is_told(pictures: Path, token: str) -> None:
    guard = Guard()
    stranger = TestClient(application(Shelf([pictures]), guard), "http://127.0.0.1:8421")
    headers = {TOKEN: token.encode()}
    assert stranger.get("/api/runs", headers=headers).status_code == 403
    assert stranger.post("/api/runs/0/sheet", headers=headers, json={}).status_code == 403
    page = stranger.get("/", params={"token": token})
    assert page.status_code == 403
    assert guard.token not in page.text
    assert stranger.get(f"/api/runs?token={guard.token}").status_code == 403, "an address alone could be a picture's"
    assert guard.token in stranger.get("/", params={"token": guard.token}).text
    assert guard.token not in repr(guard)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:8421", "http://127.0.0.1:9999"])
def test_a_foreign_origin_is_refused(client: TestClient, origin: str) -> None:
    response = client.get("/api/runs", headers={"origin": origin})
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers
    asked = {"origin": origin, "access-control-request-method": "POST", "access-control-request-headers": TOKEN}
    assert client.options("/api/runs/0/sheet", headers=asked).status_code == 403
    assert client.get("/api/runs", headers={"origin": "http://127.0.0.1:8421"}).status_code == 200


def test_another_site_may_not_lead_here(client: TestClient, guard: Guard, pictures: Path) -> None:
    for site in ("cross-site", "same-site"):
        assert client.get("/api/runs", headers={"sec-fetch-site": site}).status_code == 403
        assert client.get("/", params={"token": guard.token}, headers={"sec-fetch-site": site}).status_code == 403
    framed = TestClient(application(Shelf([pictures]), Guard(framed=True, token="t")), "http://127.0.0.1:8421")
    inside = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "iframe"}
    assert framed.get("/?token=t", headers=inside).status_code == 200
    assert framed.get("/api/runs", headers=inside | {TOKEN: "t"}).status_code == 403


def test_a_page_may_load_nothing_from_elsewhere(client: TestClient, guard: Guard) -> None:
    headers = client.get("/", params={"token": guard.token}).headers
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert client.get("/static/app.js").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/..%2fapp.py", "/static/%2e%2e/app.py", "/static//etc/passwd",
        "/static/....//app.py", "/api/runs/../../etc/sheet", "/api/runs/0%2f..%2f1/sheet", "/static/app.js%00",
    ],
)  # fmt: skip
def test_no_path_leads_out(client: TestClient, path: str) -> None:
    assert client.get(path).status_code in (403, 404, 405)


@pytest.mark.parametrize("number", ["7", "-1", "99999999999999999999", "run", "%2e%2e"])
def test_runs_have_numbers_and_no_names(client: TestClient, number: str) -> None:
    response = client.post(f"/api/runs/{number}/sheet", json={})
    assert response.status_code in (404, 422)
    assert "Traceback" not in response.text


def huge(width: int, height: int) -> bytes:
    """A PNG of so many pixels in a few kilobytes: rows of zeros."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (height * (1 + width // 8)), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_a_picture_of_a_hundred_megapixels_is_not_unpacked(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture.Photos, "pixels", lambda *_: pytest.fail("it was unpacked"))
    response = client.post("/api/runs/0/read", content=huge(10_000, 10_000), headers=BYTES)
    assert response.status_code == 422
    assert "10,000 x 10,000 pixels" in response.json()["problem"]


def test_a_text_that_is_called_a_picture_is_none(client: TestClient) -> None:
    for content in (b"hello, I am a.png", b"", b"<svg xmlns='http://www.w3.org/2000/svg'/>", huge(8, 8)[:40]):
        response = client.post("/api/runs/0/read", content=content, headers=BYTES)
        assert response.status_code == 422
        assert "not an image" in response.json()["problem"]


def test_what_is_too_large_is_not_read(client: TestClient) -> None:
    assert client.post("/api/runs/1/read", json={"text": "a" * 10_000_000}).status_code == 413
    assert client.post("/api/runs/0/read", content=bytes(picture.BYTES + 1), headers=BYTES).status_code == 413

    def dripping() -> Any:
        for _ in range(QUESTION // 65_536 + 2):
            yield bytes(65_536)

    assert client.post("/api/runs/1/read", content=dripping()).status_code == 413, "without a length said before"
    long = client.post("/api/runs/1/read", json={"text": "a b " * 1000})
    assert long.status_code == 422
    assert "2,000 characters" in long.json()["problem"]


@pytest.mark.parametrize(
    ("verb", "asked"),
    [
        ("move", {"z": [1, 2], "dim": 0, "value": 1}), ("move", {"z": [0, 0, 0, 0], "dim": 4, "value": 1}),
        ("move", {"z": [0, 0, 0, 0], "dim": 0, "value": 1e9}), ("decode", {"z": [[0] * 4] * 129}),
        ("decode", {"z": [["x"] * 4]}), ("decode", {"z": []}), ("path", {"a": [0] * 4, "b": [0] * 4, "points": 10**9}),
        ("select", {"rows": [10**6]}), ("select", {"rows": []}), ("example", {"row": 10**9}), ("chart", {"view": "9,9"}),
        ("labels", {"label": "../x"}), ("vector", {"label": "half", "value": "none"}), ("__class__", {}),
        ("sheet", {"atlas": 1}), ("edit", {"z": [0] * 4, "vector": [0] * 3}), ("alternatives", {"z": [0] * 4}),
        ("spot", {"view": "tsne", "x": 0, "y": 0, "z": [0] * 4}),
    ],
)  # fmt: skip
def test_a_wrong_question_gets_a_sentence(client: TestClient, verb: str, asked: dict[str, Any]) -> None:
    response = client.post(f"/api/runs/0/{verb}", json=asked)
    assert response.status_code == 422, response.text
    assert 0 < len(response.json()["problem"]) < 500


@pytest.mark.parametrize("content", [b"[]", b"{", b"\xff", b"null", b"[" * 100_000])
def test_a_question_is_an_object(client: TestClient, content: bytes) -> None:
    assert client.post("/api/runs/0/sheet", content=content).status_code == 422


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"1e400", b'"x"', b"null"])
def test_a_number_is_finite(client: TestClient, number: bytes) -> None:
    content = b'{"z": [0, 0, 0, 0], "dim": 0, "value": ' + number + b"}"
    assert client.post("/api/runs/0/move", content=content).status_code == 422


def test_html_of_labels_and_sentences_is_never_put_into_a_page(client: TestClient, guard: Guard, ask: Any) -> None:
    """Answers are data that a browser will not take for a page; the page itself holds nothing of a run."""
    sheet, _ = ask(0, "sheet")
    assert any("<img" in name for name in sheet["labels"]["half"])
    raw = client.post("/api/runs/0/sheet", json={})
    assert raw.headers["content-type"] == "application/octet-stream"
    assert "<img" not in client.get("/", params={"token": guard.token}).text
    static = Path(application.__code__.co_filename).parent / "static"
    for file in static.glob("*.js"):
        text = file.read_text()
        assert not any(
            word in text for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(")
        )


def test_fifty_clients_at_once_are_all_answered(client: TestClient, pictures: Path) -> None:
    served = explorer([pictures], port=0, points=50).beside()
    where = urlparse(served.url)
    token = parse_qs(where.query)["token"][0]
    gate = threading.Barrier(50)

    def one(value: int) -> int:
        gate.wait()
        asked = {"z": [0, 0, 0, 0], "dim": value % 4, "value": value / 50}
        url = f"http://{where.netloc}/api/runs/0/move"
        return httpx2.post(url, json=asked, headers={TOKEN: token}, timeout=60).status_code

    with ThreadPoolExecutor(50) as pool:
        assert set(pool.map(one, range(50))) == {200}
    served.stop()


def test_more_than_can_be_answered_is_refused() -> None:
    go = threading.Event()
    worker = Worker("slow", most=2)
    first = worker.submit(go.wait)
    asked = [lambda: worker.submit(go.wait)] * 4
    with pytest.raises(Busy):
        [ask() for ask in asked]
    go.set()
    assert first.result(5)


def test_a_folder_that_disappears_is_told(pictures: Path, tmp_path: Path, guard: Guard) -> None:
    shutil.copytree(pictures, tmp_path / "run")
    mine = TestClient(
        application(Shelf([tmp_path / "run"], 50), guard), "http://127.0.0.1:8421", headers={TOKEN: guard.token}
    )
    assert mine.post("/api/runs/0/sheet", json={}).status_code == 200
    shutil.rmtree(tmp_path / "run")
    gone = mine.post("/api/runs/0/zero", json={})
    assert gone.status_code == 410
    assert "no longer there" in gone.json()["problem"]
    assert "does not exist" in mine.get("/api/runs").json()[0]["problem"]


@pytest.mark.slow
def test_a_checkpoint_that_is_replaced_asks_to_reload(
    pictures: Path, tmp_path: Path, guard: Guard, read_message: Any
) -> None:
    shutil.copytree(pictures, tmp_path / "run")
    mine = TestClient(
        application(Shelf([tmp_path / "run"], 50), guard), "http://127.0.0.1:8421", headers={TOKEN: guard.token}
    )

    def zero() -> tuple[dict[str, Any], bytes]:
        found: tuple[dict[str, Any], bytes] = read_message(mine.post("/api/runs/0/zero", json={}).content)
        return found

    first, before = zero()
    assert not first["stale"]
    subprocess.run(
        [sys.executable, "-m", "elboroom", "resume", str(tmp_path / "run"), "--steps", "30"],
        check=True,
        capture_output=True,
    )
    stale, same = zero()
    assert stale["stale"]
    assert same == before, "what is open stays as it is"
    assert mine.post("/api/runs/0/reload", json={}).status_code == 200
    fresh, after = zero()
    assert not fresh["stale"]
    assert after != before


def test_a_port_that_is_taken_and_places_that_hold_no_run_are_told(pictures: Path, tmp_path: Path) -> None:
    with bound("127.0.0.1", 0) as taken, pytest.raises(Problem, match="cannot listen"):
        bound("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(Problem, match=r"no spec\.json"):
        found([tmp_path])
    with pytest.raises(Problem, match="does not exist"):
        found([tmp_path / "none"])
    (tmp_path / "study" / "runs").mkdir(parents=True)
    for name in ("a", "b"):
        shutil.copytree(pictures, tmp_path / "study" / "runs" / name)
    assert [path.name for path in found([tmp_path / "study"])] == ["a", "b"]
    with (made := explorer([pictures], port=0, view="#run=0&map=pca")).socket:
        assert made.url.endswith("#run=0&map=pca")
    with pytest.raises(Problem, match="points"):
        explorer([pictures], points=10**6)
