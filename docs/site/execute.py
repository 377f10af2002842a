"""Executes the fenced blocks of a page, in order and in a folder of their own, and puts what they print and draw below them.

```python blocks share one interpreter; of the last expression of a block its picture or its text is shown. ```sh blocks are
run by bash, `python` and `elbo` being those of this interpreter. A block that fails ends the build. With
ELBOROOM_DOCS_STEPS=2 every number of steps in the blocks is 2: for tests, which ask whether a page runs and not what it finds.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
STEPS = re.compile(r"""(--steps[ =]|\bsteps"?(?: ?= ?|: ))[\d_]+""")
EPOCHS = re.compile(r"--epochs [\d.]+|\bepochs ?= ?[\d.]+")
NOISE = re.compile(r"(time: about|trained to step|step +[\d,]+/)")  # lines of progress, which are not the point


def shortened(code: str, steps: str | None = None) -> str:
    """The same with a budget of so many steps, where one is said or the environment says so."""
    steps = steps or os.environ.get("ELBOROOM_DOCS_STEPS")
    if not steps:
        return code
    code = EPOCHS.sub(lambda found: f"--steps {steps}" if "--" in found.group() else f"steps={steps}", code)
    return STEPS.sub(lambda found: found.group(1) + steps, code)


def executed(page: Path, out: Path) -> None:
    """Writes the page with its outputs, and its pictures, into a folder; runs it within a folder of its own there."""
    work = out / f"{page.stem}-work"
    work.mkdir(parents=True, exist_ok=True)
    text, parts, at, names, number = page.read_text(encoding="utf-8"), list[str](), 0, dict[str, Any](), 0
    sys.path.insert(0, str(work))  # a block may import what another wrote
    with contextlib.chdir(work):
        for block in FENCE.finditer(text):
            kind, code = block.groups()
            number += 1
            try:
                shown, pictures = _python(shortened(code), names) if kind == "python" else (_shell(shortened(code)), [])
            except Exception as error:
                said = getattr(error, "output", "") or "".join(traceback.format_exception(error))
                raise SystemExit(f"{page.name}, block {number}:\n{code}\n{said}") from None
            parts += [text[at : block.end()], *([f"\n\n```text\n{shown}\n```"] if shown else [])]
            for picture in pictures:
                name = f"{page.stem}-{number}-{pictures.index(picture)}.png"
                (out / name).write_bytes(picture)
                parts.append(f"\n\n![what the block above draws]({name})")
            at = block.end()
    (out / page.name).write_text("".join([*parts, text[at:]]), encoding="utf-8")


def _python(code: str, names: dict[str, Any]) -> tuple[str, list[bytes]]:
    """Runs a block as a cell of a notebook."""
    tree, last, said = ast.parse(code), None, io.StringIO()
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "<page>", "exec"), names)
        value = eval(compile(last, "<page>", "eval"), names) if last is not None else None
    figure = getattr(value, "figure", None)
    if figure is not None and hasattr(figure, "savefig"):
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=110)
        return said.getvalue().rstrip(), [content.getvalue()]
    return (said.getvalue() + ("" if value is None else repr(value))).rstrip(), []


def _shell(code: str) -> str:
    """Runs a block by bash: what it prints, without the lines of progress."""
    head = f'set -eo pipefail\npython() {{ "{sys.executable}" "$@"; }}\nelbo() {{ python -m elboroom "$@"; }}\n'
    words = ["bash", "-c", head + code]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ | {"COLUMNS": "100"}
    )
    if done.returncode:
        raise subprocess.CalledProcessError(done.returncode, "bash", done.stdout)
    return "\n".join(line for line in done.stdout.rstrip().splitlines() if not NOISE.match(line))


if __name__ == "__main__":
    executed(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
