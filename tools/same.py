"""Does the work tree train, measure and draw what another commit does, bit for bit?

    python tools/same.py COMMIT            trains every method and pair of posterior and prior, in both
    python tools/same.py COMMIT --runs     trains three runs at COMMIT; measures, draws and reports them with both

A case is trained at COMMIT first. Every option that its spec.json then holds is passed explicitly to the work tree, so that
a change of defaults is no difference. States are compared tensor by tensor, by value: a module that moved has new names.
What one of them refuses the other must refuse; in which words is printed (--words) and not compared. A method that needs a
base has one, trained in the same tree with the options of that case. A difference that is meant is named in EXCEPTIONS.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "runs" / "same"  # what was made at other commits
SMALL: dict[str, Any] = {
    "steps": 4,
    "batch_size": 8,
    "latent": 3,
    "lr": 1e-3,
    "log_every": 1,
    "threads": 1,
    "device": "cpu",
}
EARLIER = {"ae-pretrained-free-bits": {"first": "draw"}}  # options that came later, as everything was before them
EVERY = {"decay": "none"}  # and those of every method
OF_TEXT = {"dropout": 0.5}  # and of every method, for text
TEXT = {"embed": 6, "hidden": 7, "latent": 4}
AT_WORK: dict[str, dict[str, Any]] = {  # options that put memory and second stages to work within four steps
    "control-vae": {"target": 0.6, "ki": 0.01, "ramp": 0.0},
    "mdr-vae": {"rate": 200.0},
    "lm": {"latent": None},
    "vae-cyclical": {"cycles": 1},
    "seq2seq": {"latent": None},
    "bst": {"latent": None, "pretraining": 0.5},
    "style-vae": {"latent": None, "style_size": 2, "content_size": 3},
    "style-ae": {"latent": None, "style_size": 2, "content_size": 3},
    "emb2emb": {"to": "1", "pretraining": 0.5},
    "ae-pretrained-free-bits": {"pretraining": 0.5, "target": 0.01},
    "free-bits": {"target": 0.01},
    "lagging-vae": {"at_most": 1, "look": 0.25, "start": 1000.0, "warmup": 1.0},
}
READ: dict[str, dict[str, str]] = {  # how a kind of data is read, where that has to be said
    "tokens": {"label_column": "label"},
    "replies": {"label_column": "label", "context_column": "context"},
    "pairs": {"label_column": "label", "target_column": "target"},
}
# Differences that are meant: cases, or files of the three runs, by a pattern, each with its reason.
EXCEPTIONS = {
    "replies/*": "the rows of a dialogue are held out together, so that other rows are trained on",
    "pairs/*": "the targets of a source are held out together, so that other rows are trained on",
}


# -- what runs inside either tree: only names that users have, or looked for in both places ------------------------------


def _find(name: str, *modules: str) -> Any:
    """A name that was moved from one module to another."""
    for module in modules:
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise SystemExit(f"{name} is in none of {', '.join(modules)}")


def _data(folder: Path) -> dict[str, str]:
    """Small files of every kind of data."""
    import numpy as np

    rng, n = np.random.default_rng(0), 120
    grid, centre = np.stack(np.meshgrid(np.arange(16), np.arange(16), indexing="ij")), rng.uniform(3, 13, (n, 2, 1, 1))
    discs = 1 / (1 + np.exp(np.sqrt(((grid - centre) ** 2).sum(1)) - 4))
    label = np.arange(n) % 3
    np.savez(folder / "pixels.npz", x=(discs * 255).round().astype(np.uint8), label=label)
    np.savez(folder / "vectors.npz", x=rng.normal(size=(n, 6)) @ rng.normal(size=(6, 6)) + 1, label=label)
    drawn = [rng.integers(0, 20, rng.integers(2, 9)) for _ in range(n)]
    texts = (([f"w{i}" for i in row], [f"m{i}" for i in row], [f"w{i}" for i in row[::-1]]) for row in drawn)
    rows = [[" ".join(words) for words in three] for three in texts]  # x, its context, its target
    lines = ("\t".join([x, str(y), *beside]) + "\n" for (x, *beside), y in zip(rows, label, strict=True))
    (folder / "words.tsv").write_text("text\tlabel\tcontext\ttarget\n" + "".join(lines))
    return {"pixels": "pixels.npz", "vectors": "vectors.npz"} | dict.fromkeys(READ, "words.tsv")


def _cards() -> dict[str, Any]:
    """Every method of the tree."""
    import elboroom.methods  # noqa: F401

    cards: dict[str, Any] = _find("cards", "elboroom.build.registry", "elboroom.methods.registry")()
    return cards


def _cases(wide: bool) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(name, method, kind of data, options)."""
    cards = _cards()
    axes = ("elboroom.build.axes", "elboroom.methods.axes")
    posteriors, priors = list(_find("POSTERIORS", *axes)), list(_find("PRIORS", *axes))
    for kind in ("pixels", "tokens", "vectors"):
        for name in cards:
            yield f"{kind}/{name}", name, kind, {}
            yield f"{kind}/{name}/given", name, kind, {"given": "label"}
    for name in cards:
        if _of(cards[name], "needs_context"):
            yield f"replies/{name}", name, "replies", {}
            yield f"replies/{name}/given", name, "replies", {"given": "label"}
        elif _of(cards[name], "needs_base"):
            yield f"pairs/{name}", name, "pairs", {"to": None, "pretraining": None}
    yield "replies/vae/given=context", "vae", "replies", {"given": "context"}
    for kind in ("pixels", "tokens"):
        for q in posteriors:
            for p in priors:
                yield f"{kind}/vae/{q}/{p}", "vae", kind, {"posterior": q, "prior": p}
    if wide:
        for name in cards:
            for axis, values in (("posterior", posteriors), ("prior", priors)):
                for value in values:
                    yield f"pixels/{name}/{axis}={value}", name, "pixels", {axis: value}


def _of(card: Any, name: str) -> bool:
    """What a method says of itself; a tree that did not know it yet says no."""
    return bool(getattr(card, name, False))


def _base_of(card: Any, kind: str, more: dict[str, Any]) -> tuple[str, str, str]:
    """The case on whose run a method stands, as (name, method, kind of data): one that reads contexts, where it has to."""
    if _of(card, "needs_context"):
        return "replies/seq2seq", "seq2seq", "replies"
    kind = "tokens" if kind == "pairs" else kind
    return (f"{kind}/vae/given" if more.get("given") else f"{kind}/vae"), "vae", kind


def _state(folder: Path) -> list[str]:
    """Every tensor of the newest checkpoint as dtype, shape and digest, in no order."""
    from safetensors.torch import load_file

    newest = max(folder.glob("checkpoints/step-*.safetensors"))
    alias = json.loads(newest.with_suffix(".json").read_text())["alias"]
    state = load_file(newest)
    state.update({name: state[kept] for name, kept in alias.items()})
    return sorted(
        f"{t.dtype} {tuple(t.shape)} {hashlib.sha256(t.contiguous().numpy().tobytes()).hexdigest()[:16]}"
        for t in state.values()
    )


def _one(method: str, source: str, out: Path, options: dict[str, Any], base: Path | None = None) -> dict[str, Any]:
    """Trains a case. An option that has no effect is dropped: it was the default when it was written down."""
    import elboroom

    options = dict(options)
    on = {} if base is None else {"base": base}
    while True:
        shutil.rmtree(out, ignore_errors=True)
        try:
            elboroom.train(method, source, out, **on, **options)
        except elboroom.Problem as problem:
            idle = re.match(r"(?:--)?([\w-]+)[^:;]* has no effect here", str(problem))
            if idle and idle[1].replace("-", "_") in options and idle[1] != "given":
                del options[idle[1].replace("-", "_")]
                continue
            return {"refused": str(problem).replace(f"{out.parent}{os.sep}", "")}
        spec = json.loads((out / "spec.json").read_text())
        said = {k: v for part in ("options", "model", "fit") for k, v in spec[part].items()}
        log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        return {"spec": {k: v for k, v in said.items() if v is not None}, "log": log, "state": _state(out)}


class Bench:
    """Trains cases in a folder, with the options that they had before, and the runs on which some of them stand."""

    def __init__(self, folder: Path, before: dict[str, Any]) -> None:
        self.folder, self.before, self.files = folder, before, _data(folder)
        self.cards = _cards()

    def train(self, case: str, method: str, kind: str, more: dict[str, Any], out: str = "run") -> dict[str, Any]:
        """The result of a case."""
        base = None
        if _of(self.cards[method], "needs_base"):
            name, of, data = _base_of(self.cards[method], kind, more)
            base = self.folder / f"base-{name.replace('/', '-')}"
            if not base.exists():
                given = {"given": "label"} if name.endswith("/given") else {}
                self.train(name, of, data, given, base.name)
        options = self._options(case, method, kind, more)
        return _one(method, self.files[kind], self.folder / out, options, base)

    def _options(self, case: str, method: str, kind: str, more: dict[str, Any]) -> dict[str, Any]:
        text, told = kind in READ, self.before.get(case, {}).get("spec")
        if told is not None:
            options = EVERY | (OF_TEXT if text else {}) | EARLIER.get(method, {}) | told
        else:
            options = SMALL | (TEXT if text else {}) | AT_WORK.get(method, {}) | more
        return {name: value for name, value in options.items() if value is not None} | READ.get(kind, {})


def work(out: Path, like: Path | None, shard: str, wide: bool) -> None:
    """Trains this shard of the cases, with the options that they had in `like`."""
    warnings.simplefilter("ignore")
    number, of = map(int, shard.split("/"))
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        bench = Bench(Path(name), json.loads(like.read_text()) if like else {})
        for i, (case, method, kind, more) in enumerate(_cases(wide)):
            if i % of != number:
                continue
            try:
                results[case] = bench.train(case, method, kind, more)
            except Exception as error:
                results[case] = {"failed": f"{type(error).__name__}: {error}"}
    out.write_text(json.dumps(results))


# -- the two trees ------------------------------------------------------------------------------------------------------


def _python(tree: Path, arguments: list[str], **more: Any) -> subprocess.Popen[bytes]:
    environment = os.environ | {
        "PYTHONPATH": str(tree),
        "OMP_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
        "COLUMNS": "200",
    }
    return subprocess.Popen([sys.executable, *arguments], env=environment, **more)


def _tree(commit: str) -> Path:
    """The commit, checked out beside the work tree."""
    path = KEPT / commit / "tree"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        content = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        path.mkdir()
        subprocess.run(["tar", "x", "-C", path], input=content, check=True)
    return path


def _train_all(tree: Path, out: Path, like: Path | None, wide: bool, jobs: int) -> dict[str, Any]:
    out.parent.mkdir(parents=True, exist_ok=True)
    parts = [out.with_name(f"{out.stem}-{i}.json") for i in range(jobs)]
    here = str(Path(__file__).resolve())
    running = [
        _python(tree, [here, "--work", str(part), "--shard", f"{i}/{jobs}", *(["--like", str(like)] if like else []),
                       *(["--wide"] if wide else [])])
        for i, part in enumerate(parts)
    ]  # fmt: skip
    if any(code for code in [process.wait() for process in running]):
        raise SystemExit(f"a process in {tree} failed")
    results = {k: v for part in parts for k, v in json.loads(part.read_text()).items()}
    out.write_text(json.dumps(results))
    for part in parts:
        part.unlink()
    return results


def _outcome(result: dict[str, Any]) -> str:
    return next(kind for kind in ("refused", "failed", "state") if kind in result)


def _difference(a: dict[str, Any], b: dict[str, Any]) -> str:
    """What differs between two results of a case, or nothing."""
    kinds = [_outcome(r) for r in (a, b)]
    if kinds[0] != kinds[1]:
        why = next(r[kind] for kind, r in zip(kinds, (a, b), strict=True) if kind != "state")
        return f"{kinds[0]} before, {kinds[1]} now: {why}"
    if kinds[0] != "state":
        return ""
    if a["state"] != b["state"]:
        gone, new = Counter(a["state"]) - Counter(b["state"]), Counter(b["state"]) - Counter(a["state"])
        return f"{sum(gone.values())} of {len(a['state'])} tensors differ, {sum(new.values())} are new"
    return "" if a["log"] == b["log"] else "the log differs"


def _kept(commit: str, wide: bool) -> Path:
    """Where the results of another commit are kept: what another edition of this file trained is not taken for them."""
    edition = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]
    return KEPT / commit / f"{'wide' if wide else 'cases'}-{edition}.json"


def _meant(different: dict[str, str]) -> dict[str, str]:
    """Prints the differences, those that are meant with their reason; the others are returned."""
    reasons = {name: next((why for p, why in EXCEPTIONS.items() if fnmatchcase(name, p)), "") for name in different}
    for name, told in different.items():
        print(f"{name}: {told}" + (f" (meant: {reasons[name]})" if reasons[name] else ""))
    return {name: told for name, told in different.items() if not reasons[name]}


def compare_cases(commit: str, wide: bool, jobs: int, words: bool) -> int:
    """Trains every case in both trees; how many differ."""
    kept = _kept(commit, wide)
    before = json.loads(kept.read_text()) if kept.exists() else _train_all(_tree(commit), kept, None, wide, jobs)
    now = _train_all(ROOT, KEPT / "now.json", kept, wide, jobs)
    different = {
        case: told for case in before if (told := _difference(before[case], now.get(case, {"failed": "gone"})))
    }
    unmeant = _meant(different)
    for case in before.keys() & now.keys() if words else ():
        if (old := before[case].get("refused", "")) != (new := now[case].get("refused", "")):
            print(f"{case}\n  - {old}\n  + {new}")
    for case in (case for case in before if "failed" in before[case] and case not in different):
        print(f"{case}: failed in both: {before[case]['failed']}")
    if idle := _never_trained(before):
        print(f"no case trains {', '.join(idle)}: say in AT_WORK what they need")
    kinds = Counter(map(_outcome, before.values()))
    trained = f"{kinds['state']} trained, {kinds['refused']} refused, {kinds['failed']} failed"
    print(f"{len(before)} cases: {trained}; {len(unmeant)} differ, {len(different) - len(unmeant)} more as meant")
    return len(unmeant)


def _never_trained(results: dict[str, Any]) -> list[str]:
    """The methods of which every case was refused or failed."""
    trained, tried = set[str](), set[str]()
    for case, result in results.items():
        method = case.split("/")[1:2]
        tried.update(method)
        trained.update(method if "state" in result else ())
    return sorted(tried - trained)


# -- three runs, measured, drawn and reported with both -------------------------------------------------------------------

TRAIN = {
    "dsprites": "train beta-tcvae --data dsprites --steps 150 --batch-size 32 --lr 1e-3 --threads 1 --out {folder}/dsprites",
    "ptb": "train vae-annealed --data ptb --steps 60 --embed 32 --hidden 32 --latent 8 --threads 1 --out {folder}/ptb",
    "study": "study run {folder}/study.toml --out {folder}/study",
}
STUDY = """
data = "freyfaces"
seeds = 2
[every]
steps = 60
batch_size = 16
threads = 1
[[runs]]
method = "beta-vae"
beta = [1, 4]
[measure]
metrics = ["gaussian-tc", "mean-mi"]
samples = 10
most = 500
codes = 500
"""
MEASURE = {
    "dsprites": [
        "eval {run} --metrics likelihood,mig,sap --samples 20 --most 1000 --iw-most 100",
        "report {run}",
    ],
    "ptb": ["eval {run} --metrics likelihood --samples 20 --most 300 --iw-most 100", "report {run}"],
    "study": ["study report {run}"],
}

FIGURES = {  # that no report shows
    "dsprites": ["manifold", "rate-distortion"],
    "ptb": ["rate-distortion"],
}


def _elbo(tree: Path, line: str, **names: Path) -> None:
    process = _python(
        tree,
        ["-P", "-m", "elboroom.cli", *line.format(**names).split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tree,  # what it starts may look there first
    )
    error = process.communicate()[1]
    if process.returncode:
        raise SystemExit(f"elbo {line}: {error.decode()[-2000:]}")


def _numbers(path: Path) -> Any:
    """metrics.json without what a clock or a version decides; a page as its numbers and pictures; a picture as pixels."""
    if path.suffix == ".png":
        from PIL import Image

        picture = Image.open(path).convert("RGBA")
        return picture.size, hashlib.sha256(picture.tobytes()).hexdigest()
    text = path.read_text()
    if path.suffix == ".html":
        pictures = sorted(hashlib.sha256(p.encode()).hexdigest()[:12] for p in re.findall(r"data:image/[^\"')]+", text))
        bare = re.sub(r"<(style|script).*?</\1>|data:image/[^\"')]+|<[^>]*>", " ", text, flags=re.DOTALL)
        return pictures, sorted(re.findall(r"-?\d[\d,]*\.?\d*", html.unescape(bare)))
    return json.loads(text) if path.suffix == ".json" else text


def _files(folder: Path) -> dict[str, Path]:
    chosen = [
        p
        for p in folder.rglob("*")
        if p.suffix in (".png", ".html", ".csv") or p.name in ("metrics.json", "table.json")
    ]
    return {str(p.relative_to(folder)): p for p in sorted(chosen)}


def _measure(code: Path, folder: Path, base: Path) -> None:
    """Measures, draws and reports a copy of the runs; what a commit made of them is kept."""
    if folder.exists() and code != ROOT:
        return
    part = folder.with_name(f"{folder.name}.part")
    for old in (folder, part):
        shutil.rmtree(old, ignore_errors=True)
    shutil.copytree(base, part)
    for name, lines in MEASURE.items():
        for line in lines:
            _elbo(code, line, run=part / name)
    for name, kinds in FIGURES.items():
        for kind in kinds:
            _elbo(code, f"plot {kind} {{run}} --out {{run}}/plot-{kind}.png", run=part / name)
    part.rename(folder)


def compare_runs(commit: str) -> int:
    """Trains three runs at the commit; measures, draws and reports copies of them with both trees."""
    base = KEPT / commit / "runs"
    tree = _tree(commit)
    if not base.exists():
        fresh = base.with_name("runs.part")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        (fresh / "study.toml").write_text(STUDY)
        for line in TRAIN.values():
            _elbo(tree, line, folder=fresh)
        fresh.rename(base)
    places = {"before": (tree, KEPT / commit / "measured"), "now": (ROOT, KEPT / "measured")}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda place: _measure(*place, base), places.values()))
    old, new = (_files(folder) for _, folder in places.values())
    different = {name: f"only {'before' if name in old else 'now'}" for name in sorted(old.keys() ^ new.keys())}
    shared = sorted(old.keys() & new.keys())
    different |= {name: "differs" for name in shared if _numbers(old[name]) != _numbers(new[name])}
    unmeant = _meant(different)
    print(f"{len(old)} files of three runs; {len(unmeant)} differ, {len(different) - len(unmeant)} more as meant")
    return len(unmeant)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?")
    parser.add_argument("--runs", action="store_true", help="three runs, measured, drawn and reported")
    parser.add_argument("--wide", action="store_true", help="also every method with every posterior and every prior")
    parser.add_argument("--words", action="store_true", help="print refusals whose words have changed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--like", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--shard", default="0/1", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.work:
        return work(told.work.resolve(), told.like and told.like.resolve(), told.shard, told.wide)
    if not told.commit:
        parser.error("name the commit to compare with: make same BASE=commit")
    command = ["git", "rev-parse", "--verify", f"{told.commit}^{{commit}}"]
    commit = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()[:12]
    sys.exit(min(1, compare_runs(commit) if told.runs else compare_cases(commit, told.wide, told.jobs, told.words)))


if __name__ == "__main__":
    main()
