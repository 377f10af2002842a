"""Places that runs are sent to and taken from: a repository of the Hugging Face Hub, or a folder at any fsspec address."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import fsspec

from elboroom.core.files import MOST
from elboroom.core.problem import Problem

REPOSITORY = re.compile(r"(?:hf://)?([\w-][\w.-]*/[\w-][\w.-]*)(?:@([^\s@]+))?")
SCHEME = "hf://"
DEEP = 3  # runs that may stand on one another under a run
UNDER = tuple("base/" * depth for depth in range(DEEP + 1))  # where a run lies, the one it stands on, and so on
ALLOWED = re.compile(
    r"metrics\.json|report\.html|README\.md"
    rf"|(base/){{0,{DEEP}}}(spec\.json|tokeniser(-[a-z]+)?\.json|checkpoints/(best|step-\d{{1,12}})\.(safetensors|json))"
)


def outdated(there: Iterable[str], files: Mapping[str, bytes]) -> list[str]:
    """What is left of the run that was there before: files of known names that are not sent again."""
    return [name for name in there if ALLOWED.fullmatch(name) and name not in files]


class Entry(NamedTuple):
    """A file of a place."""

    name: str
    size: int


class Place(Protocol):
    """Where a run may lie."""

    address: str

    def send(self, files: Mapping[str, bytes], private: bool) -> str: ...  # gives where it is now

    def listing(self) -> list[Entry]: ...

    def read(self, name: str) -> bytes: ...

    def version(self) -> str: ...  # what changes whenever its run does


def place(address: str | Path, revision: str | None = None) -> Place:
    """The Hub by user/name or hf://user/name, `@` before a revision; else a folder, by ./ or / or an fsspec address."""
    said = str(address)
    found = REPOSITORY.fullmatch(said) if isinstance(address, str) else None
    if found is not None:
        if found[2] and revision and found[2] != revision:
            raise Problem(f"two revisions are said, {found[2]} and {revision}; leave one of them out")
        return Hub(found[1], found[2] or revision)
    if said.startswith(SCHEME):
        raise Problem(f"{said} is no address of the Hub; say hf://user/name or hf://user/name@revision")
    if revision is not None:
        raise Problem(f"--revision is for the Hub, and {said} is a folder; remove it")
    return Files(said)


def is_address(source: object) -> bool:
    """Whether this is an address rather than the path of a folder."""
    return isinstance(source, str) and "://" in source


class Files:
    """A folder, or an fsspec address: s3://, gs://, file://, ..."""

    def __init__(self, address: str) -> None:
        self.address = address
        try:
            self.system, self.root = fsspec.core.url_to_fs(
                str(Path(address).expanduser()) if "://" not in address else address
            )
        except (ValueError, ImportError) as error:
            raise Problem(f"{address} cannot be opened: {error}") from None

    def send(self, files: Mapping[str, bytes], private: bool) -> str:
        """Writes all files, spec.json last, which says that a run is there; refuses a place that holds something else."""
        if private:
            raise Problem("--private is for the Hub; who may read a folder is said by its owner")
        with self._trouble("written"):
            there = {path.rpartition("/")[2] for path in self._inside(self.root)}
            if there and "spec.json" not in there:
                raise Problem(f"{self.address} holds something that is no run; choose another place")
            for name in sorted(files, key=lambda name: name == "spec.json"):
                path = f"{self.root}/{name}"
                self.system.makedirs(path.rpartition("/")[0], exist_ok=True)
                self.system.pipe_file(path, files[name])
            for name in outdated(self._sizes(), files):
                self.system.rm_file(f"{self.root}/{name}")
        return self.address

    def listing(self) -> list[Entry]:
        """The files of a run that are at the address."""
        with self._trouble("read"):
            return [Entry(name, size) for name, size in self._sizes().items()]

    def _sizes(self) -> dict[str, int]:
        """The files of known names by their size; no other folder is looked into."""
        folders = [f"{under}{inside}" for under in UNDER for inside in ("", "checkpoints/")]
        found = {
            f"{folder}{path.rpartition('/')[2]}": size
            for folder in folders
            for path, size in self._inside(f"{self.root}/{folder}".rstrip("/")).items()
        }
        return {name: size for name, size in found.items() if ALLOWED.fullmatch(name)}

    def _inside(self, folder: str) -> dict[str, int]:
        """What a folder holds, itself and not below, by its size; nothing where it is not there."""
        try:
            found = self.system.ls(folder, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        sizes = {str(item["name"]).rstrip("/"): int(item.get("size") or 0) for item in found}
        return {path: size for path, size in sizes.items() if path.strip("/") != folder.strip("/")}  # its own mark

    def read(self, name: str) -> bytes:
        """One file."""
        with self._trouble("read"):
            return bytes(self.system.cat_file(f"{self.root}/{name}"))

    def version(self) -> str:
        """What it says of itself, and the sums that vouch for its checkpoints."""
        vouch = [entry for entry in self.listing() if entry.name.endswith(".json") and entry.size <= MOST]
        return "".join(f"{entry.name}{entry.size}{self.read(entry.name).hex()}" for entry in vouch)

    @contextmanager
    def _trouble(self, what: str) -> Iterator[None]:
        try:
            yield
        except Problem:
            raise
        except Exception as error:  # every file system has errors of its own
            raise Problem(f"{self.address} cannot be {what}: {type(error).__name__}: {error}") from None


class Hub:
    """A model repository of the Hugging Face Hub, or of what answers at HF_ENDPOINT in its place."""

    def __init__(self, name: str, revision: str | None) -> None:
        try:
            import huggingface_hub
        except ImportError:
            raise Problem("the Hub needs huggingface_hub: pip install 'elboroom[hub]'") from None
        self.name, self.revision, self.library = name, revision, huggingface_hub
        self.address = f"{SCHEME}{name}" + (f"@{revision}" if revision else "")
        self.endpoint = os.environ.get("HF_ENDPOINT") or None
        self.api = huggingface_hub.HfApi(endpoint=self.endpoint, library_name="elboroom")
        self._info: Any = None

    def send(self, files: Mapping[str, bytes], private: bool) -> str:
        """One commit with all files, and without what is left of a run that was there before."""
        add, remove = self.library.CommitOperationAdd, self.library.CommitOperationDelete
        with self._trouble("written"):
            self.api.create_repo(self.name, private=private or None, exist_ok=True)
            if self.revision:
                self.api.create_branch(self.name, branch=self.revision, exist_ok=True)
            there = self.api.model_info(self.name, revision=self.revision).siblings or []
            old = outdated([file.rfilename for file in there], files)
            operations: list[Any] = [
                *(add(name, content) for name, content in files.items()),
                *(remove(name) for name in old),
            ]
            done = self.api.create_commit(
                self.name, operations, commit_message="A run of elboroom", revision=self.revision
            )
        return str(done.repo_url)

    @property
    def info(self) -> Any:
        """What the Hub says of the repository at this revision, asked once."""
        if self._info is None:
            with self._trouble("read"):
                self._info = self.api.model_info(self.name, revision=self.revision, files_metadata=True)
        return self._info

    def listing(self) -> list[Entry]:
        """The files of the revision."""
        return [Entry(file.rfilename, int(file.size or 0)) for file in self.info.siblings or []]

    def read(self, name: str) -> bytes:
        """One file of the commit that was listed."""
        with self._trouble("read"), tempfile.TemporaryDirectory() as folder:
            path = self.library.hf_hub_download(
                self.name,
                name,
                revision=self.info.sha,
                local_dir=folder,
                endpoint=self.endpoint,
                library_name="elboroom",
            )
            return Path(path).read_bytes()

    def version(self) -> str:
        """The commit."""
        return str(self.info.sha)

    @contextmanager
    def _trouble(self, what: str) -> Iterator[None]:
        """What goes wrong on the way, as a sentence."""
        errors = self.library.errors
        where = f"{self.address} at {self.endpoint or 'the Hub'}"
        try:
            yield
        except errors.RevisionNotFoundError:
            raise Problem(f"{where} has no revision {self.revision}") from None
        except (errors.RepositoryNotFoundError, errors.GatedRepoError):
            raise Problem(
                f"{where} is not there, or is private: check the name, or set HF_TOKEN, or run hf auth login"
            ) from None
        except errors.HfHubHTTPError as error:
            code = getattr(error.response, "status_code", "")
            why = "set HF_TOKEN, or run hf auth login" if code in (401, 403) else " ".join(str(error).split())[:200]
            raise Problem(f"{where} cannot be {what} ({code}): {why}") from None
        except errors.HFValidationError as error:
            raise Problem(f"{where}: {' '.join(str(error).split())[:200]}") from None
        except Problem:
            raise
        except Exception as error:  # of the network, by whichever library carries it
            raise Problem(
                f"{where} cannot be {what}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
            ) from None
