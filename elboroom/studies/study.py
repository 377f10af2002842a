"""Study: the runs that its tables say, as a value that can be counted, scaled and kept."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from elboroom.core.calls import asked
from elboroom.core.files import read_json, refuse_links, write_json
from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.disentanglement import metrics
from elboroom.methods import card
from elboroom.studies import schema as tables_
from elboroom.studies.along import presets as presets
from elboroom.studies.schema import Measure, Search, Tables
from elboroom.studies.space import ZIP, Block, Cell, lasting, shown, source
from elboroom.training.fit import Fit

FILE = "study.json"
MOST = 1_000_000  # seeds of a setting
WHOLE = 500  # settings up to which every combination is tried before the first run; above, every value of every axis


@dataclass(frozen=True)
class Study:
    """A study as a value: its tables and the blocks that they say."""

    tables: Tables
    where: str = "study"  # the file that an error names
    blocks: tuple[Block, ...] = field(init=False)

    def __post_init__(self) -> None:
        made = (self._block(number, entry) for number, entry in enumerate(self.tables.runs))
        object.__setattr__(self, "blocks", tuple(made))

    @property
    def name(self) -> str:
        """What it is called."""
        return self.tables.name or Path(self.where).stem

    @property
    def measure(self) -> Measure:
        """How its runs are measured; what is searched for is measured too."""
        measure, sought = self.tables.measure, self.search.metric if self.search else ""
        if sought not in metrics() or sought in measure.metrics:
            return measure
        return measure.model_copy(update={"metrics": [*measure.metrics, sought]})

    @property
    def search(self) -> Search | None:
        """What it searches for, if it does."""
        return self.tables.search

    @property
    def seeds(self) -> list[int]:
        """The seeds of every setting, unless its block says others."""
        return _seeds(self.tables.seeds)

    @property
    def count(self) -> int:
        """How many runs it has; none is made to say so."""
        if self.search:
            return self.search.trials * max((len(block.axes[-1]) for block in self.blocks), default=0)
        return sum(block.count for block in self.blocks)

    def _block(self, number: int, entry: Mapping[str, Any]) -> Block:
        tables, own = self.tables, dict(entry)
        seeds = _seeds(own.pop("seeds", tables.seeds))
        zipped = own.get("zip", {})
        if not isinstance(zipped, Mapping):
            raise Problem(f"{self.where}: [[runs]] {number + 1}: {ZIP}")
        every = {key: value for key, value in tables.every.items() if key not in zipped}
        if "method" not in {**every, **own}:
            raise Problem(f"{self.where}: [[runs]] {number + 1} has no method")
        places: dict[str, Any] = {"data": tables.data, "size": tables.size, "seed": seeds}
        places = {key: value for key, value in places.items() if value is not None and key not in zipped}
        whole = {"method": "", "threads": 1} | every | places | own
        try:
            block = Block.of(whole, seed=tables.draw_seed + number)
        except Problem as problem:
            raise Problem(f"{self.where}: [[runs]] {number + 1}: {problem}") from None
        return block if tables.search is None else replace(block, draws=1 if block.ranges else 0)

    def cells(self) -> list[Cell]:
        """Every run, in the order of the file; seeds vary fastest."""
        found = [cell for block in self.blocks for cell in block.cells()]
        names: dict[str, Cell] = {}
        for cell in found:
            if names.setdefault(cell.name, cell) is not cell:
                raise Problem(f"{self.where} has one run twice: {cell.name.rpartition('-')[0]}")
        return found

    @asked
    def scaled(self, steps: int | None = None, seeds: int | None = None) -> Study:
        """The same with another length of its runs, or number of seeds; runs longer than others stay so in proportion."""
        for flag, number in (("steps", steps), ("seeds", seeds)):
            if number is not None and number < 1:
                raise Problem(f"--{flag} {number}: must be at least 1")
        every, runs = dict(self.tables.every), [dict(entry) for entry in self.tables.runs]
        if steps is not None:
            usual = every.get("steps", Fit().steps)
            if not _is_count(usual):
                raise Problem("--steps needs one number of steps in [every]")
            every["steps"] = usual
            for table in (every, *runs):
                table.pop("epochs", None)
                zipped = table.get("zip")
                for inner in (table, *([dict(zipped)] if isinstance(zipped, Mapping) and "steps" in zipped else [])):
                    if "steps" in inner:
                        inner["steps"] = _in_proportion(inner["steps"], steps / usual)
                    if inner is not table:
                        table["zip"] = inner
        if seeds is not None:
            runs = [{key: value for key, value in entry.items() if key != "seeds"} for entry in runs]
        update = {"runs": runs, "every": every} | ({} if seeds is None else {"seeds": seeds})
        return Study(self.tables.model_copy(update=update), self.where)

    def searching(self, **said: Any) -> Study:
        """The same as a search, or with another goal."""
        kept = self.search.model_dump(exclude_unset=True) if self.search else {}
        if said.get("metric") not in (None, kept.get("metric")):
            kept.pop("goal", None)  # which was for another metric
        search = tables_.read(Search, kept | {key: value for key, value in said.items() if value is not None}, "search")
        return Study(self.tables.model_copy(update={"search": search}), self.where)

    def write(self, folder: Path) -> None:
        """Keeps it in its folder."""
        write_json(folder / FILE, {"format": 1, "name": self.name} | self.kept)

    @property
    def kept(self) -> dict[str, Any]:
        """Its tables as they are kept: plain, and with paths to data that hold wherever they are read."""
        tables = self.tables.model_dump(exclude={"name"})
        runs = [_settled(entry) for entry in tables["runs"]]
        return _settled(tables) | {"every": _settled(tables["every"]), "runs": runs}

    @classmethod
    @asked
    def read(cls, source: str | Path) -> Study:
        """The study of a .toml file, of the folder of a study, or a preset by its name."""
        path = Path(source)
        if (path / FILE).exists():
            refuse_links(path)
            try:
                entry = read_json(path / FILE)
            except Problem as problem:
                raise Problem(f"{problem}; run again with the .toml file of the study and --out {path}") from None
            return cls.of({key: value for key, value in entry.items() if key != "format"}, str(path / FILE))
        if path.is_dir():
            raise Problem(f"{path} is not the folder of a study; it has no {FILE}")
        if path.is_file():
            try:
                return cls._parsed(path.read_text(encoding="utf-8"), str(path))
            except UnicodeDecodeError as error:
                raise Problem(f"{path} is not UTF-8 text ({error.reason} at byte {error.start})") from None
        if str(source) in presets():
            text = (files("elboroom.studies") / "presets" / f"{source}.toml").read_text(encoding="utf-8")
            return cls._parsed(text, str(source))
        if path.suffix == ".toml" or len(path.parts) > 1:
            raise Problem(f"{path} does not exist")
        raise unknown("study", str(source), presets())

    @classmethod
    def _parsed(cls, text: str, where: str) -> Study:
        try:
            return cls.of(tomllib.loads(text), where)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise Problem(f"{where} is not valid TOML: {error}") from None

    @classmethod
    @asked
    def of(cls, tables: Mapping[str, Any], where: str = "study") -> Study:
        """The study of plain tables, as they stand in a file."""
        return cls(tables_.read(Tables, tables, where), where)


def _settled(table: dict[str, Any]) -> dict[str, Any]:
    """A table whose paths hold wherever it is read."""
    said = {key: value for key, value in table.items() if key in ("data", "zip") and value}
    for key in ("labels", "base", "recipe"):
        if isinstance(value := table.get(key), str | list):
            said[key] = [lasting(key, each) for each in value] if isinstance(value, list) else lasting(key, value)
    if isinstance(said.get("zip"), dict):
        said["zip"] = _settled(said["zip"])
    if "data" in said:
        said["data"] = [source(d) for d in said["data"]] if isinstance(said["data"], list) else source(said["data"])
    return table | said


def axes(cells: list[Cell]) -> dict[str, tuple[str, ...]]:
    """By method, the options that tell its settings apart: those that vary, or else those of its own that were said."""
    found: dict[str, tuple[str, ...]] = {}
    for method in dict.fromkeys(cell.method for cell in cells):
        said = [cell.options for cell in cells if cell.method == method]
        names = list(dict.fromkeys(name for options in said for name in options))
        varied = [name for name in names if len({shown(options.get(name)) for options in said}) > 1]
        own = {option.name for option in card(method).options}
        found[method] = tuple(varied or [name for name in names if name in own])
    return found


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _in_proportion(said: Any, share: float) -> Any:
    """Numbers of steps, all scaled alike."""
    if not all(_is_count(n) for n in (said if isinstance(said, list) else [said])):
        raise Problem(f"--steps can scale only numbers of steps, not {said!r}")
    few = [max(1, round(n * share)) for n in (said if isinstance(said, list) else [said])]
    return few if isinstance(said, list) else few[0]


def _seeds(said: Any) -> list[int]:
    many = isinstance(said, int) and not isinstance(said, bool)
    if many and not 0 <= said <= MOST:
        raise Problem(f"seeds must be 0 to {MOST:,}, not {said:,}")
    seeds = list(range(said)) if many else said
    whole = isinstance(seeds, list) and all(type(s) is int and 0 <= s < 2**63 for s in seeds)
    if not whole:
        raise Problem(f"seeds must be a number of seeds or a list of them, not {said!r}")
    return list(seeds)


def settings(study: Study) -> Iterator[Cell]:
    """One cell of each setting to be tried before the first run: all of them, or every value of every axis."""
    for block in study.blocks:
        if block.count // max(1, len(block.axes[-1])) <= WHOLE:
            yield from {cell.setting: cell for cell in block.cells()}.values()
            continue
        drawn, first = block.drawn()[0], [axis[:1] for axis in block.axes]
        for name, end in ((name, end) for name, r in block.ranges.items() for end in r.ends):
            yield from replace(block, axes=tuple(first)).cells({**drawn, name: end})
        for place, axis in enumerate(block.axes):
            for choice in axis if "seed" not in axis[0] else ():
                yield from replace(block, axes=(*first[:place], (choice,), *first[place + 1 :])).cells(drawn)
