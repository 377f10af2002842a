"""Does the work tree train, measure and draw what another commit does, bit for bit?

    python tools/same.py COMMIT            trains every method and pair of posterior and prior, in both
    python tools/same.py COMMIT --runs     trains three runs at COMMIT; measures, draws and reports them with both

A case is trained at COMMIT first. Every option that its spec.json then holds is passed explicitly to the work tree, so that
a change of defaults is no difference. States are compared tensor by tensor, by value: a module that moved has new names.
What one of them refuses the other must refuse; in which words is printed (--words) and not compared.
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
    "ae-pretrained-free-bits": {"pretraining": 0.5, "target": 0.01},
    "free-bits": {"target": 0.01},
    "lagging-vae": {"at_most": 1, "look": 0.25, "start": 1000.0, "warmup": 1.0},
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
    words = [" ".join(f"w{i}" for i in rng.integers(0, 20, rng.integers(2, 9))) for _ in range(n)]
    (folder / "words.tsv").write_text(
        "text\tlabel\n" + "".join(f"{w}\t{y}\n" for w, y in zip(words, label, strict=True))
    )
    return {"pixels": "pixels.npz", "vectors": "vectors.npz", "tokens": "words.tsv"}


def _cases(wide: bool) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """(name, method, kind of data, options)."""
    import elboroom.methods  # noqa: F401

    cards = _find("cards", "elboroom.build.registry", "elboroom.methods.registry")()
    axes = ("elboroom.build.axes", "elboroom.methods.axes")
    posteriors, priors = list(_find("POSTERIORS", *axes)), list(_find("PRIORS", *axes))
    for kind in ("pixels", "tokens", "vectors"):
        for name in cards:
            yield f"{kind}/{name}", name, kind, {}
            yield f"{kind}/{name}/given", name, kind, {"given": "label"}
    for kind in ("pixels", "tokens"):
        for q in posteriors:
            for p in priors:
                yield f"{kind}/vae/{q}/{p}", "vae", kind, {"posterior": q, "prior": p}
    if wide:
        for name in cards:
            for axis, values in (("posterior", posteriors), ("prior", priors)):
                for value in values:
                    yield f"pixels/{name}/{axis}={value}", name, "pixels", {axis: value}


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


def _one(method: str, source: str, out: Path, options: dict[str, Any]) -> dict[str, Any]:
    """Trains a case. An option that has no effect is dropped: it was the default when it was written down."""
    import elboroom

    options = dict(options)
    while True:
        shutil.rmtree(out, ignore_errors=True)
        try:
            elboroom.train(method, source, out, **options)
        except elboroom.Problem as problem:
            idle = re.match(r"(?:--)?([\w-]+)[^:;]* has no effect here", str(problem))
            if idle and idle[1].replace("-", "_") in options and idle[1] != "given":
                del options[idle[1].replace("-", "_")]
                continue
            return {"refused": str(problem)}
        spec = json.loads((out / "spec.json").read_text())
        said = {k: v for part in ("options", "model", "fit") for k, v in spec[part].items()}
        log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        return {"spec": {k: v for k, v in said.items() if v is not None}, "log": log, "state": _state(out)}


def work(out: Path, like: Path | None, shard: str, wide: bool) -> None:
    """Trains this shard of the cases, with the options that they had in `like`."""
    warnings.simplefilter("ignore")
    number, of = map(int, shard.split("/"))
    before = json.loads(like.read_text()) if like else {}
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        files = _data(folder)
        for i, (case, method, kind, more) in enumerate(_cases(wide)):
            if i % of != number:
                continue
            options = {**SMALL, **(TEXT if kind == "tokens" else {}), **AT_WORK.get(method, {}), **more}
            told = before.get(case, {}).get("spec")
            told = told and EVERY | (OF_TEXT if kind == "tokens" else {}) | EARLIER.get(method, {}) | told
            try:
                results[case] = _one(method, files[kind], folder / "run", told or options)
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


def compare_cases(commit: str, wide: bool, jobs: int, words: bool) -> int:
    """Trains every case in both trees; how many differ."""
    kept = KEPT / commit / ("wide.json" if wide else "cases.json")
    before = json.loads(kept.read_text()) if kept.exists() else _train_all(_tree(commit), kept, None, wide, jobs)
    now = _train_all(ROOT, KEPT / "now.json", kept, wide, jobs)
    different = {
        case: told for case in before if (told := _difference(before[case], now.get(case, {"failed": "gone"})))
    }
    for case, told in different.items():
        print(f"{case}: {told}")
    for case in before.keys() & now.keys() if words else ():
        if (old := before[case].get("refused", "")) != (new := now[case].get("refused", "")):
            print(f"{case}\n  - {old}\n  + {new}")
    kinds = Counter(map(_outcome, before.values()))
    print(f"{len(before)} cases: {kinds['state']} trained, {kinds['refused']} refused; {len(different)} differ")
    return len(different)


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
    different = [f"{name}: only {'before' if name in old else 'now'}" for name in sorted(old.keys() ^ new.keys())]
    different += [f"{name}: differs" for name in old.keys() & new.keys() if _numbers(old[name]) != _numbers(new[name])]
    print("\n".join([*different, f"{len(old)} files of three runs; {len(different)} differ"]))
    return len(different)


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
