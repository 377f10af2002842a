"""ONNX: the graphs of a run as files that onnxruntime runs without torch, with what goes in and out as JSON."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from elboroom.core.files import write, write_json
from elboroom.core.problem import Problem
from elboroom.data.tokens import MARKS, TOKENISER, Words
from elboroom.share.graphs import PAST, ROWS, Graph, Port, graphs

if TYPE_CHECKING:
    from elboroom.runs.run import Run

OPSET = 18
ABOUT = "model.json"
EXAMPLE = "example.py"
CLOSE = 1e-5  # what a graph may differ from its model by, of values of size one
CHECKED = (1, 3)  # rows with which a graph is tried


def export(run: Run, out: Path) -> dict[str, Any]:
    """Writes encoder and decoder of a run, what goes in and out of them, and an example; returns what was written.

    Every graph is run beside its model with other rows than those it was made with, and refused if it says anything else.
    """
    runtime = _runtime()
    made, files, apart = list[Graph](), dict[str, bytes](), dict[str, float]()
    for graph in graphs(run):
        content = _traced(graph)
        session = runtime.InferenceSession(content)
        apart[graph.name] = max(_apart(graph, session, rows) for rows in CHECKED)
        if not apart[graph.name] <= CLOSE:
            raise Problem(
                f"the {graph.name} of this model has no graph of its own: {apart[graph.name]:.2g} from what the model says"
            )
        files[f"{graph.name}.onnx"] = content
        read = {
            port.name for port in session.get_inputs()
        }  # an encoder need not read the labels that a decoder is given
        made.append(replace(graph, inputs=tuple(port for port in graph.inputs if port.name in read)))
    about = _about(run, made, apart)
    for name, content in files.items():
        write(out / name, content)
    if run.tokeniser is not None:
        write_json(out / TOKENISER, run.tokeniser.to_json())
    write(out / EXAMPLE, _example(run, made).encode())
    write_json(out / ABOUT, about)
    sizes = {name: len(content) for name, content in files.items()}
    return {"out": str(out), "bytes": sizes, "apart": apart}


def _runtime() -> Any:
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise Problem(f"--to onnx needs {error.name}: pip install 'elboroom[onnx]'") from None
    assert onnx
    onnxruntime.set_default_logger_severity(3)
    return onnxruntime


def _traced(graph: Graph) -> bytes:
    """The graph as a file.

    By the exporter that traces: of the newer one, which goes through torch.export, an LSTM keeps the length of its example.
    """
    free = {port.name: {i: str(s) for i, s in enumerate(port.shape) if isinstance(s, str)} for port in _ports(graph)}
    content: Any = io.BytesIO()
    with _quiet(), _asinh(), torch.no_grad():
        try:
            torch.onnx.export(
                graph.module,
                graph.example,
                content,
                input_names=[port.name for port in graph.inputs],
                output_names=[port.name for port in graph.outputs],
                dynamic_axes=free,
                opset_version=OPSET,
                dynamo=False,
            )
        except Exception as error:  # of the exporter, of the trace, of the layers that are traced
            said = " ".join(str(error).split())[:200] or type(error).__name__
            raise Problem(f"the {graph.name} of this model cannot be said in ONNX: {said}") from error
    return _sized(content.getvalue(), graph)


def _sized(content: bytes, graph: Graph) -> bytes:
    """The same file with the sizes of its ports as they are said, where the exporter gave names of its own."""
    import onnx

    model = onnx.load_from_string(content)
    ports = {port.name: port for port in _ports(graph)}
    for value in (*model.graph.input, *model.graph.output):
        for size, dim in zip(ports[value.name].shape, value.type.tensor_type.shape.dim, strict=True):
            if isinstance(size, int):
                dim.dim_value = size
            else:
                dim.dim_param = size
    whole: bytes = model.SerializeToString()
    return whole


def _ports(graph: Graph) -> tuple[Port, ...]:
    return (*graph.inputs, *graph.outputs)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the exporter says of itself, and of sizes that a trace cannot see: the graph is tried with others."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _asinh() -> Iterator[None]:
    """asinh(x) = sign(x) log(|x| + sqrt(x^2 + 1)), which runtimes have in double precision and the exporter has not at all."""

    def written(g: Any, x: Any) -> Any:
        size = g.op("Abs", x)
        one = g.op("CastLike", g.op("Constant", value_t=torch.tensor(1.0, dtype=torch.float64)), x)
        root = g.op("Sqrt", g.op("Add", g.op("Mul", x, x), one))
        return g.op("Mul", g.op("Sign", x), g.op("Log", g.op("Add", size, root)))

    exporter: Any = torch.onnx
    exporter.register_custom_op_symbolic("aten::asinh", written, OPSET)
    try:
        yield
    finally:
        exporter.unregister_custom_op_symbolic("aten::asinh", OPSET)


# -- the check ---------------------------------------------------------------------------------------------------------


def _apart(graph: Graph, session: Any, rows: int) -> float:
    """How far a graph is from its module on random inputs of so many rows, relative to values above one."""
    handed = drawn(graph, rows)
    names = {port.name for port in session.get_inputs()}
    given = {port.name: t.numpy() for port, t in zip(graph.inputs, handed, strict=True) if port.name in names}
    found = session.run(None, given)
    with torch.no_grad():
        wanted = graph.module(*handed)
    return max(_far(torch.from_numpy(f), w) for f, w in zip(found, wanted, strict=True))


def _far(found: Tensor, wanted: Tensor) -> float:
    if found.shape != wanted.shape:
        return float("inf")
    gap = (found.double() - wanted.double()).abs() / wanted.double().abs().clamp_min(1)
    return float(gap.max()) if gap.numel() else 0.0


def drawn(graph: Graph, rows: int, seed: int = 0) -> tuple[Tensor, ...]:
    """Random inputs of so many rows: of the range that a port has, of sizes of their own where they are free."""
    noise = np.random.default_rng(seed)
    sizes = {ROWS: rows, "length": 7, PAST: 5}
    found: list[Tensor] = []
    for port, like in zip(graph.inputs, graph.example, strict=True):
        shape = [size if isinstance(size, int) else sizes[size] for size in port.shape]
        values: Any
        if port.name == "lengths":
            values = noise.integers(2, sizes["length"] + 1, shape)
        elif port.name == "u" or not like.is_floating_point():
            low, high = port.range or (0, 0)
            values = (
                noise.integers(int(low), int(high) + 1, shape)
                if port.name != "u"
                else np.eye(shape[1])[:1].repeat(rows, 0)
            )
            values = np.maximum(values, 1) if port.name == "tokens" else values
        else:
            values = noise.uniform(*port.range, shape) if port.range else 0.3 * noise.normal(size=shape)
        found.append(torch.from_numpy(np.asarray(values)).to(like.dtype))
    return tuple(found)


# -- what is beside the graphs -----------------------------------------------------------------------------------------


def _about(run: Run, made: list[Graph], apart: dict[str, float]) -> dict[str, Any]:
    spec = run.spec
    said: dict[str, Any] = {
        "made by": f"elboroom {version('elboroom')}",
        "model": spec.title,
        "data": Path(spec.about.name).name,
        "step": run.step,
        "opset": OPSET,
        "latent": run.latent,
        "graphs": {
            graph.name: {
                "file": f"{graph.name}.onnx",
                "inputs": [_port(port) for port in graph.inputs],
                "outputs": [_port(port) for port in graph.outputs],
                "differs from torch by": apart[graph.name],
            }
            for graph in made
        },
    }
    if run.given:
        classes = spec.data.get("classes", {})
        said["u"] = [
            {"name": name, "classes": list(classes.get(name) or map(str, range(spec.about.labels[name])))}
            for name in run.given
        ]
    if run.tokeniser is not None:
        said["tokens"] = {"markers": list(MARKS), "tokeniser": TOKENISER}
        if isinstance(run.tokeniser, Words):
            said["tokens"]["vocabulary"] = list(run.tokeniser.tokens)
    return said


def _port(port: Port) -> dict[str, Any]:
    said: dict[str, Any] = {"name": port.name, "type": port.type, "shape": list(port.shape), "says": port.says}
    return said if port.range is None else {**said, "range": list(port.range)}


HEAD = '''"""{what} with onnxruntime alone: python {file}"""

{imports}
import numpy as np
from onnxruntime import InferenceSession

here = Path(__file__).parent
'''
ARRAYS = """encoder, decoder = (InferenceSession(str(here / f"{{name}}.onnx")) for name in ("encoder", "decoder"))
x = np.zeros({shape}, np.{type})  # three examples of your own
{u}{first}{rest} = encoder.run(None, {{"x": x{into}}})
made = decoder.run(["mean"], {{"z": mean{after}}})[0]
print("codes", mean.shape, "decoded", made.shape)
"""
TEXT = """{tokeniser}
encoder, start, step = (InferenceSession(str(here / f"{{name}}.onnx")) for name in ("encoder", "start", "step"))
ids = [1, *{ids}, 2]  # <s> words </s>
{u}z = encoder.run(["mean"], {{"tokens": np.array([ids]), "lengths": np.array([len(ids)]){into}}})[0]
state, token, said = start.run(None, {{"z": z{after}}}), np.array([1]), []
while token[0] != 2 and len(said) < 30:  # the most probable next word, until </s>
    logits, *state = step.run(None, {{"token": token, **{{f"state{{i}}": t for i, t in enumerate(state)}}}})
    logits[:, [0, 1, 3]] = -np.inf  # <pad>, <s> and <unk> are never said
    token = logits.argmax(1)
    said += [int(i) for i in token if i != 2]
print("code", z.shape, "decoded:", {words})
"""
WORDS = {
    "imports": "import json\nfrom pathlib import Path\n",
    "tokeniser": 'words = json.loads((here / "model.json").read_text(encoding="utf-8"))["tokens"]["vocabulary"]',
    "ids": "(words.index(w) if w in words else 3 for w in {sentence!r}.split())",
    "words": '" ".join(words[i] for i in said)',
}
PIECES = {
    "imports": "import json\nfrom pathlib import Path\n",
    "tokeniser": "from tokenizers import Tokenizer\n\n"
    'kept = json.loads((here / "tokeniser.json").read_text(encoding="utf-8"))\n'
    'pieces = Tokenizer.from_str(kept["content"])',
    "ids": '(i + 3 for i in pieces.encode(kept["lead"] + {sentence!r}, add_special_tokens=False).ids)',
    "words": "pieces.decode([i - 3 for i in said], skip_special_tokens=False).strip()",
}


def _example(run: Run, made: list[Graph]) -> str:
    """A file that encodes and decodes."""
    widths = [next((int(port.shape[1]) for port in graph.inputs if port.name == "u"), 0) for graph in made]
    rows = 1 if run.tokeniser is not None else 3
    u = f"u = np.eye({max(widths)}, dtype=np.float32)[[0] * {rows}]  # the first label\n" if max(widths) else ""
    into, after = (', "u": u' if width else "" for width in widths[:2])
    if run.tokeniser is None:
        x = made[0].inputs[0]
        head = HEAD.format(what="Encodes and decodes", file=EXAMPLE, imports="from pathlib import Path\n")
        rest = "".join(f", {port.name}" for port in made[0].outputs[1:]) or ","
        return head + ARRAYS.format(
            shape=(3, *x.shape[1:]), type=x.type, u=u, first="mean", rest=rest, into=into, after=after
        )
    parts = WORDS if isinstance(run.tokeniser, Words) else PIECES
    sentence = _sentence(run)
    head = HEAD.format(what="Encodes and decodes a sentence", file=EXAMPLE, imports=parts["imports"])
    ids = parts["ids"].format(sentence=sentence)
    return head + TEXT.format(tokeniser=parts["tokeniser"], ids=ids, words=parts["words"], u=u, into=into, after=after)


def _sentence(run: Run) -> str:
    """A few words that the model knows."""
    assert run.tokeniser is not None
    if isinstance(run.tokeniser, Words):
        return " ".join(run.tokeniser.words[:4])
    return "a b c"
