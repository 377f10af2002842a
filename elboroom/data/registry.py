"""The data sets by name: loaded, listed, fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from elboroom.core.problem import Problem, unknown
from elboroom.data import archives, arrays, dsprites, folder, frames, lines, pairs, places, remote, rows, tables, text
from elboroom.data.dataset import DataSet
from elboroom.data.download import Progress, checksum, fetch
from elboroom.data.fields import said_kinds
from elboroom.data.labels import chosen, of_rows
from elboroom.data.photos import SUFFIXES, Photos
from elboroom.data.sources import SOURCES, Source
from elboroom.data.text import Reading

BINARY = (".npy", ".npz", ".zip", ".gz", ".tar", ".pt", ".safetensors", ".pkl", ".mat", ".h5", *frames.SUFFIXES)


def names() -> list[str]:
    """The names of the data sets that can be loaded."""
    return [source.name for source in SOURCES.values() if source.load or source.read]


def listing() -> list[dict[str, Any]]:
    """What there is: name, kind, shape, counts, licence, where it was found or "not here", and how to get it."""
    rows = []
    for source in SOURCES.values():
        found = source.where()
        rows.append(
            {
                "name": source.name,
                "kind": source.kind,
                "shape": source.shape,
                "counts": source.counts,
                "licence": source.licence,
                "where": str(found) if found else "here" if source.make and not source.forms else "not here",
                "how": source.how,
            }
        )
    return rows


def load(
    source: Any,
    size: int | None = None,
    progress: Progress | None = None,
    reading: Reading | None = None,
    labels: Any = None,
    label_kinds: str | Mapping[str, str] | None = None,
    levels: int | None = None,
    photos: Photos | None = None,
) -> DataSet:
    """The data set of a registered name, a file or folder of text or images, a .npy or .npz, an array, or sentences.

    `file.npz:key` names one array of several. `size` is of images, and `reading` of text: how it becomes tokens. `labels`
    is a table of the labels of a folder of images or an array, or the labels themselves; `(examples, labels)` says both at
    once. A data frame is read as a table is, and so are .parquet, .arrow and .feather. `hf:org/name` is a data set of the
    Hugging Face Hub, an address (s3://, gs://, ...) what lies there, and a torch Dataset or DataLoader its examples.
    `label_kinds` is what labels are: `male=binary,age=ordinal`.
    `levels` is how many values the pixels of an array may have, where they do not tell. A table of numbers is vectors.
    `photos` is how the pictures of a folder are read.
    """
    kinds = said_kinds(label_kinds)
    source, labels = remote.here(source), remote.here(labels)
    if is_pair(source):
        if labels is not None:
            raise Problem("the labels are said twice, as labels and beside the examples; leave one of them out")
        source, labels = source
    if labels is not None and not isinstance(labels, str | Path):
        data = _with_labels(
            source, labels, lambda: _load(source, size, progress, reading, None, levels, photos), reading
        )
    else:
        data = _load(source, size, progress, reading, labels, levels, photos)
    told = type(photos) is Photos and [*photos.model_dump(exclude_defaults=True)]
    if told and not (_is_folder(source) or rows.is_named(source)):
        name = told[0].replace("_", "-")
        raise Problem(f"--{name} is only for folders of images, which '{data.draft.name}' is not; remove it")
    if levels is not None and data.draft.levels != levels:
        raise Problem(f"--levels is for images of whole numbers, which '{data.draft.name}' is not; remove it")
    if kinds and not data.draft.labels:
        raise Problem(f"'{data.draft.name}' has no labels, so --label-kinds has no effect; remove it")
    return data.with_kinds(kinds)


def _load(
    source: Any,
    size: int | None,
    progress: Progress | None,
    reading: Reading | None,
    labels: str | Path | None,
    levels: int | None,
    photos: Photos | None,
) -> DataSet:
    if rows.is_named(source):
        return _labelled(rows.named(source, size, reading, photos), labels, reading)
    known = SOURCES.get(source) if isinstance(source, str) else None
    path = Path(source).expanduser() if isinstance(source, str | Path) and known is None else None
    numeric = path is not None and tables.is_numeric(path, reading)
    is_text = known.read is not None if known else path is not None and not numeric and _is_text(path)
    if chosen(labels) and (known is not None or isinstance(source, DataSet)):
        name = known.name if known else "a DataSet"
        raise Problem(f"{name} has its own labels; --labels is only for folders of images and for arrays")
    if chosen(labels) and (is_text or isinstance(source, list | tuple)):
        raise Problem("the labels of text are columns of its file; name them with --label-column, not --labels")
    if isinstance(source, list | tuple):
        return text.handed(source, None, reading)
    if numeric and path is not None:
        return _labelled(tables.load(path, reading), labels, reading)
    tabular = frames.is_frame(source) or (path is not None and frames.is_file(path))
    foreign = not isinstance(source, str | Path | np.ndarray | Tensor | DataSet) and not tabular
    if foreign and rows.is_handed(source):
        return _labelled(rows.handed(source, size, reading, photos), labels, reading)
    pictures = path if path is not None and path.is_dir() and not is_text else None
    asked = reading or Reading()
    beside = asked.model_copy(update={"encoding": lines.UTF8}) if chosen(labels, pictures) else asked
    if beside != Reading() and not is_text and not tabular:
        raise Problem("the options for tokens, vocabulary and columns are only for text; remove them")
    if pictures is not None:
        return folder.load(pictures, size, progress, labels, photos, asked.encoding, levels)
    if size is not None and not (known is not None and known.sizes):
        raise Problem("--size is only for folders of images and for omniglot; remove it")
    if isinstance(source, DataSet):
        return source
    if frames.is_frame(source):
        return _labelled(frames.load(source, reading), labels, reading)
    if path is not None and frames.is_file(path):
        return _labelled(frames.read(path, reading), labels, reading)
    if isinstance(source, np.ndarray | Tensor):
        return _labelled(arrays.dataset(source, levels=levels), labels, reading)
    if known is not None:
        return _named(known, size, progress, reading)
    if path is None:
        raise Problem(f"a data set must be a name, a path, an array or a torch Dataset, not {type(source).__name__}")
    if is_text and (why := _why_no_numbers(path, reading or Reading())):
        raise Problem(why)
    if is_text:
        paired = path.is_dir() and pairs.is_paired(path)
        return pairs.load(path, reading) if paired else text.load(path, reading)
    file, colon, key = str(path).rpartition(":")
    if colon and file.endswith(".npz"):
        return _labelled(archives.read(Path(file), key, levels), labels, reading)
    if path.suffix in (".npy", ".npz"):
        return _labelled(archives.read(path, levels=levels), labels, reading)
    if path.is_file():
        raise Problem(f"{path} is not a folder of images, a .npy or .npz file, or text")
    if len(path.parts) > 1 or path.suffix or isinstance(source, Path) or str(source).endswith(("/", "\\")):
        raise Problem(f"{source} does not exist{_near(path)}")
    raise unknown("data set", str(source), names())


def _near(path: Path) -> str:
    """`; did you mean photos/?` for the closest name beside a path that is not there, or nothing."""
    if not path.parent.is_dir():
        return ""
    close = get_close_matches(path.name, [found.name for found in path.parent.iterdir()], n=1)
    found = path.parent / close[0] if close else None
    return f"; did you mean {found}{'/' * found.is_dir()}?" if found else ""


def _why_no_numbers(path: Path, asked: Reading) -> str:
    """What keeps a table from being one of numbers, where nobody said which column is the text."""
    if asked.text_column or asked.columns:
        return ""
    return lines.why_no_numbers(path, asked.label_column, asked.encoding)


def is_pair(source: object) -> bool:
    """Whether this is `(examples, labels)`, and no list of two sentences."""
    return isinstance(source, tuple) and len(source) == 2 and not isinstance(source[0], str)


def _with_labels(source: Any, labels: Any, load: Callable[[], DataSet], reading: Reading | None) -> DataSet:
    """Data with labels that were handed in: a column, a table (N, K), or columns by name."""
    if isinstance(source, list | tuple):
        if isinstance(labels, Mapping) or np.ndim(labels) != 1:
            raise Problem("the labels of sentences are a list, one for each sentence")
        return text.handed(source, list(labels), reading)
    data = load()
    if frames.is_frame(labels):
        labels = {str(name): labels[name] for name in labels.columns}
    columns = {name: np.asarray(c) for name, c in labels.items()} if isinstance(labels, Mapping) else np.asarray(labels)
    return data.with_labels(*arrays.label_columns(columns, len(data), data.draft.name))


def _is_folder(source: object) -> bool:
    return isinstance(source, str | Path) and Path(source).expanduser().is_dir()


def _labelled(data: DataSet, labels: str | Path | None, reading: Reading | None) -> DataSet:
    """Data with the labels of a table beside its own, a row for each example."""
    table, encoding = chosen(labels), (reading or Reading()).encoding
    return data if table is None else data.with_labels(*of_rows(table, len(data), data.about.name, encoding))


def lasting(source: str | Path) -> str:
    """The name of a data set as it is, a path so that it holds from anywhere."""
    if remote.is_address(source):
        return str(source)
    if rows.is_named(source):
        place = Path(str(source).removeprefix(rows.SCHEME))
        return f"{rows.SCHEME}{place.resolve()}" if place.exists() else str(source)
    file, colon, key = str(source).rpartition(":")
    if str(source) in names() or not (Path(source).exists() or (colon and Path(file).exists())):
        return str(source)
    return str(Path(source).resolve()) if Path(source).exists() else f"{Path(file).resolve()}:{key}"


def _is_text(path: Path) -> bool:
    """Whether a file, by its name, or what a folder holds is to be read as text; a folder with an image in it is not."""
    if not path.is_dir():
        return path.is_file() and path.suffix.lower() not in (*SUFFIXES, *BINARY)
    if any(file.suffix.lower() in SUFFIXES for file in path.rglob("*")):
        return False
    if lines.files(path) or pairs.is_paired(path):
        return True
    raise Problem(f"{path} has no images and no text ({', '.join(s[1:] for s in (*SUFFIXES, *lines.SUFFIXES))})")


def _named(source: Source, size: int | None, progress: Progress | None, reading: Reading | None) -> DataSet:
    if source.load is None and source.read is None:
        raise Problem(f"'{source.name}' is {source.note}")
    where = source.where()
    if where is None and source.files:
        raise Problem(source.missing)
    if source.load is not None:
        return source.load(where or places.cache(), size, progress)
    assert source.read is not None
    if reading is not None and (
        reading.text_column
        or reading.label_column
        or reading.columns
        or reading.turn_separator
        or reading.dialogue_column
    ):
        raise Problem(
            f"the columns of {source.name} are fixed; --text-column, --label-column and the like are only for your own files"
        )
    return source.read(where or places.cache(), reading)


def get(
    name: str, folder: Path | None = None, progress: Progress | None = None, source: str | None = None
) -> dict[str, Any]:
    """Makes sure that a data set is here: found, or else downloaded under `folder` (the cache) and checked.

    `source` is another folder on the web to take its files from. A checksum that is not pinned is told.
    """
    if name not in SOURCES:
        raise unknown("data set", name, SOURCES)
    wanted = SOURCES[name]
    if wanted.make is not None:
        made = wanted.make(progress)
        state = "rendered" if made else "built in"
        return {"name": name, "folder": str(made) if made else "no files", "state": state, "files": []}
    found = wanted.where() if folder is None else None
    if found is not None:
        return {"name": name, "folder": str(found), "state": "here", "files": []}
    if wanted.by_hand and source is None:
        raise Problem(wanted.missing)
    target = (folder or places.cache()) / wanted.folder
    files = []
    for file in wanted.files:
        kept = target / file.name
        _make_room(kept.parent)
        digest = checksum(kept) if kept.is_file() else None
        if digest is None or (file.sha256 is not None and digest != file.sha256):
            digest = fetch(file, target, progress, source)
        files.append({"name": file.name, "sha256": digest, "pinned": file.sha256 is not None})
    if wanted.after is not None:
        wanted.after(target)
    return {"name": name, "folder": str(target), "state": "downloaded", "files": files}


def _make_room(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Problem(f"cannot write {folder} ({error.strerror or error}); choose another folder") from error


def check(name: str, against: Path | None = None) -> dict[str, Any]:
    """dSprites against its original images; any other set against the checksums of its files."""
    if name not in SOURCES:
        raise unknown("data set", name, SOURCES)
    wanted = SOURCES[name]
    if name == "dsprites":
        return dsprites.check(against)
    if against is not None:
        raise Problem("--against is only for dsprites, which is rendered; other data sets are checked by checksum")
    where = wanted.where()
    if where is None and not wanted.files:
        raise Problem(f"{name} is {wanted.note}, so there is nothing to check")
    if where is None:
        raise Problem(f"{name} is not downloaded; run: elbo data get {name}")
    found: dict[str, Any] = {"name": name, "folder": str(where)}
    for file in wanted.files:
        digest = checksum(where / file.name) if (where / file.name).is_file() else None
        state = "not here" if digest is None else "not pinned" if file.sha256 is None else "ok"
        found[file.name] = "differs" if digest and file.sha256 and digest != file.sha256 else state
    return found
