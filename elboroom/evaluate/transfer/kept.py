"""What judges transfer is made once a data set and kept in the cache, under a hash of all that it is made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elboroom.data import places

Made = tuple[dict[str, Tensor], dict[str, Any]]  # tensors, and what JSON can hold


def digest(*parts: Any, sentences: Iterable[str] = ()) -> str:
    """A hash of settings and sentences."""
    whole = hashlib.sha256(repr(parts).encode())
    for sentence in sentences:
        whole.update(f"{sentence}\n".encode())
    return whole.hexdigest()[:24]


def kept(kind: str, key: str, make: Callable[[], Made]) -> Made:
    """What was made under this key before, or else is made now; a file that cannot be read is made anew."""
    path = places.cache() / "transfer" / f"{kind}-{key}.safetensors"
    if path.is_file():
        try:
            with safe_open(path, framework="pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["about"])  # noqa: SIM118
        except (SafetensorError, KeyError, ValueError, TypeError):
            path.unlink(missing_ok=True)
    tensors, about = make()
    with places.writing(path) as part:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, part, {"about": json.dumps(about)})
    return tensors, about
