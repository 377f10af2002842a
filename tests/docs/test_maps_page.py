"""The page of maps: verdicts at equal accuracy, whose judge a row had, and times that were taken side by side."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import elboroom

RESULTS = Path(__file__).parents[2] / "docs" / "results"
STRENGTHS = (0.1, 0.5, 0.9)
TEXTS = [" ".join("abcd"[(i + j) % 4] for j in range(2 + i % 3)) for i in range(80)]


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a script of docs/results, and leaves no trace of it."""
    monkeypatch.syspath_prepend(RESULTS)
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(RESULTS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def page(imported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module: ModuleType = imported("maps_page")
    monkeypatch.setattr(module, "KEPT", tmp_path)
    return module


def said(accuracy: float, bleu: float) -> dict[str, float]:
    return {"transfer_accuracy": accuracy, "transfer_self_bleu": bleu}


def known(fgim: dict[str, float], own: dict[str, float] | None = None) -> dict[str, dict[str, Any]]:
    maps = {0.1: said(0.4, 30.0), 0.5: said(0.6, 20.0), 0.9: said(0.8, 10.0)}
    found: dict[str, dict[str, Any]] = {f"maps-yelp-{w:g}": {"edits": {"map": told}} for w, told in maps.items()}
    found["maps-yelp-0.9"]["edits"] |= {"fgim": own} if own else {}
    found["maps-yelp-0.9-alone"] = {"edits": {"map": said(0.5, 4.0)}}
    return found | {"maps-yelp-dae": {"edits": {"fgim": fgim}}}


def test_fgim_is_compared_at_its_own_accuracy(page: ModuleType) -> None:
    """On the line between two weights, from which the run without an adversary is left out."""
    told = page._expected(known(said(0.5, 10.0), said(0.7, 25.0)), STRENGTHS)
    assert "At the accuracy of FGIM, 0.500, emb2emb has self-BLEU 25.0" in told
    assert "and FGIM 10.0: emb2emb keeps more, which is as published." in told
    assert "At the accuracy of FGIM, the classifier of emb2emb, 0.700, emb2emb has self-BLEU 15.0" in told
    assert "and FGIM 25.0: FGIM keeps more, which is not as published" in told
    level = page._expected(known(said(0.5, 24.5)), STRENGTHS)
    assert "and FGIM 24.5: they keep as much of the sentence, which is not as published" in level
    assert "not between those of emb2emb, 0.400 to 0.800" in page._expected(known(said(0.9, 5.0)), STRENGTHS)


def test_times_are_those_of_one_record_or_not_there(page: ModuleType, tmp_path: Path) -> None:
    rows = known(said(0.5, 10.0))
    assert "| FGIM | 0.500 | 10.0 |  | not yet run | not yet run |" in page._sentiment(rows, STRENGTHS)
    assert "FGIM takes" not in page._expected(rows, STRENGTHS)
    own, fgim = ({"encode": 0.001, "move": move, "decode": 0.004} for move in (0.0001, 0.003))
    settings = {"clock": "CPU time", "threads": 1, "batch": 256, "statistic": "median", "turns": 9}
    (tmp_path / "maps-yelp-times").mkdir()
    (tmp_path / "maps-yelp-times" / "edits.json").write_text(
        json.dumps({"settings": settings, "ways": {"FGIM": fgim, page.OWN: own}})
    )
    told = page._sentiment(rows, STRENGTHS)
    assert "| FGIM | 0.500 | 10.0 |  | 30.0x | 1.57x |" in told
    assert "encode 1.00, move 0.10, decode 4.00" in told
    assert "FGIM takes 30.0x the time of the map to move codes and 1.57x end to end" in page._expected(rows, STRENGTHS)


def test_a_row_of_an_earlier_judge_says_so(page: ModuleType, tmp_path: Path) -> None:
    entry = {"value": 0.84, "settings": {"sentences": 31_457}, "parts": {}}
    (tmp_path / "style-yelp-vae").mkdir()
    path = tmp_path / "style-yelp-vae" / "metrics.json"
    path.write_text(json.dumps({"transfer_accuracy": entry}))
    told = page._sentiment({}, STRENGTHS)
    assert "31,457 sentences" in told
    assert "earlier judge" in told
    path.write_text(json.dumps({"transfer_accuracy": entry | {"parts": {"judge": "textcnn-2"}}}))
    assert "earlier judge" not in page._sentiment({}, STRENGTHS)


def test_steps_are_compared_in_their_own_record(page: ModuleType, tmp_path: Path) -> None:
    assert "| asset | seq2seq, from scratch | not yet run |  | not yet run |" in page._simple({})
    runs = {
        "maps-asset-emb2emb": {"step": 0.002, "encoding": 3.0},
        "maps-asset-scratch": {"step": 0.009, "encoding": 0.0},
    }
    (tmp_path / "maps-asset-times").mkdir()
    (tmp_path / "maps-asset-times" / "edits.json").write_text(json.dumps({"runs": runs}))
    told = page._simple({})
    assert "| asset | seq2seq, from scratch | not yet run |  | 4.5x |" in told
    assert "asset: 3.0 s of encoding, 2.00 ms a step" in told


@pytest.mark.unhurried
def test_edits_and_steps_are_timed_part_by_part(imported: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = imported("maps_times")
    monkeypatch.setattr(times, "TURNS", 2)
    fit: dict[str, Any] = {"batch_size": 16, "threads": 1, "device": "cpu", "steps": 6}
    rows = "".join(f"{text}\t{'long' if i % 2 else 'short'}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "data.tsv").write_text("text\tlabel\n" + rows)
    base = elboroom.train("ae", tmp_path / "data.tsv", tmp_path / "base", latent=4, embed=6, hidden=7, **fit)
    run = elboroom.train("emb2emb", tmp_path / "data.tsv", tmp_path / "run", base=base.folder, to="long", **fit)
    texts = times.negatives(base, "label", "long", 5)
    labels = dict(zip(TEXTS[::2], ["short"] * 40, strict=True))
    assert texts
    assert all(text in labels for text in texts)
    told = times.of_edits({"FGIM": (base, "fgim"), "map": (run, "map")}, texts, "label", "long")
    assert {name: list(parts) for name, parts in told["ways"].items()} == {
        name: ["encode", "move", "decode"] for name in ("FGIM", "map")
    }
    assert told["ways"]["FGIM"]["move"] > 0
    assert told["settings"]["batch"] == len(texts)
    steps = times.of_steps({"run": run.folder})["runs"]["run"]
    assert steps["step"] > 0
    assert steps["encoding"] > 0
    times.keep(tmp_path / "new" / "edits.json", told)
    assert json.loads((tmp_path / "new" / "edits.json").read_text()) == told


@pytest.mark.unhurried
def test_time_trains_what_is_gone_and_writes_the_record(
    imported: Any, page: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, times, maps = imported("records"), imported("maps_times"), imported("maps")
    monkeypatch.setattr(times, "TURNS", 1)
    for module in (records, maps):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "KEPT", tmp_path)
    rows = "".join(f"{text}\t{'positive' if i % 2 else 'negative'}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "said.tsv").write_text("text\tsentiment\n" + rows)
    fit = {"steps": 4, "threads": 1, "label_column": "sentiment"}
    sizes = {"latent": 4, "embed": 6, "hidden": 7}
    small = {
        row.name: replace(row, data=str(tmp_path / "said.tsv"), common=fit if row.base else fit | sizes)
        for row in maps.SENTIMENT
    }
    monkeypatch.setattr(maps, "SENTIMENT", list(small.values()))
    monkeypatch.setattr(maps, "SIMPLER", [])
    monkeypatch.setattr(maps, "ROWS", small)
    maps.take_times(["asset"])
    assert not (tmp_path / "maps-yelp-times").exists(), "of that table alone"
    maps.take_times(["sentiment"])
    told = json.loads((tmp_path / "maps-yelp-times" / "edits.json").read_text())
    assert list(told["ways"]) == list(page.timed_ways(maps.STRENGTHS))
    assert told["settings"]["batch"] > 0
    assert "not yet run | not yet run" not in page._sentiment(known(said(0.5, 10.0)), maps.STRENGTHS)
