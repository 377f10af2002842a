"""Search: Optuna proposes settings, a trial is the runs of one setting over the seeds, its storage is a file of the study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from elboroom.core.problem import Problem, unknown
from elboroom.evaluate.registry import find
from elboroom.studies.driver import whole
from elboroom.studies.engines.work import numbers_of
from elboroom.studies.space import Block, Cell, shown
from elboroom.studies.store.index import Entry
from elboroom.studies.study import Study

STORAGE = "search.log"


class Trials:
    """The cells of a search, each when it is asked for; what was proposed before a stop is done first."""

    def __init__(self, study: Study, folder: Path, retry: bool = False) -> None:
        try:
            import optuna
        except ImportError:
            raise Problem("--search optuna needs Optuna; pip install 'elboroom[optuna]'") from None
        assert study.search is not None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.optuna: Any = optuna
        self.study, self.goal, self.folder, self.retry = study, study.search, folder, retry
        self.waiting: dict[int, dict[str, float | None]] = {}  # trial -> run -> its value, once it is known
        self.finished: set[str] = set()
        self.sought: Any = None
        known = [
            *find("likelihood").gives,
            *study.measure.metrics,
            *(f"downstream-{size}" for size in study.measure.labels),
        ]
        if self.goal.metric not in known:
            raise unknown("metric", self.goal.metric, known)
        goal = self.goal.model_dump()["goal"]
        if goal is None:
            raise Problem(f"{self.goal.metric} has no better direction; give --goal min or --goal max")
        self.direction = {"max": "maximize", "min": "minimize"}[goal]
        if any(len(axis) > 1 and "data" in axis[0] for block in study.blocks for axis in block.axes):
            raise Problem("a search needs one data set; values on different data sets cannot be compared")

    def _open(self) -> Any:
        """The search as it was left; noise of the sampler goes on, so that nothing is proposed twice."""
        from optuna.samplers import TPESampler
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        storage = JournalStorage(JournalFileBackend(str(self.folder / STORAGE)))
        found = self.optuna.create_study(
            storage=storage, study_name=self.study.name, direction=self.direction, load_if_exists=True
        )
        found.sampler = TPESampler(seed=self.goal.seed + len(found.trials), constant_liar=True)
        return found

    def cells(self, entries: dict[str, Entry]) -> Iterator[Cell]:
        """The runs of trials that were cut off, then those of new ones."""
        self.sought = self._open()
        self.finished = whole(self.folder, entries, self.study.measure)
        states = self.optuna.trial.TrialState
        for trial in self.sought.get_trials(states=(states.RUNNING, states.FAIL) if self.retry else (states.RUNNING,)):
            if trial.state == states.FAIL:
                self.sought.enqueue_trial(trial.params)
                continue
            yield from self._begin(trial.number, self._proposed(self.optuna.trial.FixedTrial(trial.params)))
        while len(self.sought.trials) < self.goal.trials or self._queued():
            trial = self.sought.ask()
            yield from self._begin(trial.number, self._proposed(trial))

    def _queued(self) -> bool:
        return bool(self.sought.get_trials(deepcopy=False, states=(self.optuna.trial.TrialState.WAITING,)))

    def _proposed(self, trial: Any) -> list[Cell]:
        """The runs of a trial: one choice on every axis but the seeds, one value of every range."""
        blocks = self.study.blocks
        names = [str(number + 1) for number in range(len(blocks))]
        number = names.index(trial.suggest_categorical("runs", names)) if len(blocks) > 1 else 0
        block: Block = blocks[number]
        axes: list[tuple[dict[str, Any], ...]] = []
        for axis in block.axes:
            labels = {"+".join(map(shown, choice.values())): choice for choice in axis}
            if len(axis) > 1 and "seed" not in axis[0]:
                chosen = trial.suggest_categorical(f"{number + 1}/{'+'.join(axis[0])}", list(labels))
                axes.append((labels[chosen],))
            else:
                axes.append(axis)
        drawn: dict[str, Any] = {}
        for key, r in block.ranges.items():
            name = f"{number + 1}/{key}"
            if r.whole:
                drawn[key] = trial.suggest_int(name, int(r.low), int(r.high), log=r.log)
            else:
                drawn[key] = float(f"{trial.suggest_float(name, r.low, r.high, log=r.log):.4g}")
        return list(replace(block, axes=tuple(axes)).cells(drawn))

    def _begin(self, number: int, cells: list[Cell]) -> Iterator[Cell]:
        """The runs of a trial that are neither done nor under way for another one."""
        under_way = {name for values in self.waiting.values() for name, value in values.items() if value is None}
        self.waiting[number] = dict.fromkeys(cell.name for cell in cells)
        for cell in cells:
            if cell.name in self.finished:
                self.done(cell, self.folder / "runs" / cell.name)
            elif cell.name not in under_way:
                yield cell

    def done(self, cell: Cell, folder: Path) -> None:
        """Tells every trial that waits for this run; one that has all its runs gets their median."""
        self.finished.add(cell.name)
        entry = numbers_of(folder).get(self.goal.metric, {})
        if entry.get("value") is None:
            return self.failed(cell)
        for number in [n for n, values in self.waiting.items() if cell.name in values]:
            self.waiting[number][cell.name] = float(entry["value"])
            values = list(self.waiting[number].values())
            if None not in values:
                self.sought.tell(number, median(v for v in values if v is not None))
                del self.waiting[number]

    def failed(self, cell: Cell) -> None:
        """A trial that lost a run has no value."""
        for number in [n for n, values in self.waiting.items() if cell.name in values]:
            self.sought.tell(number, state=self.optuna.trial.TrialState.FAIL)
            del self.waiting[number]

    @property
    def best(self) -> dict[str, Any] | None:
        """The best trial so far: its number, value and settings."""
        complete = [t for t in self.sought.trials if t.value is not None] if self.sought else []
        if not complete:
            return None
        trial = self.sought.best_trial
        cells = self._proposed(self.optuna.trial.FixedTrial(trial.params))
        return {"trial": trial.number, "value": trial.value, "method": cells[0].method, "options": cells[0].options}
