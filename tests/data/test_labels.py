from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from typer.testing import CliRunner

import elboroom
from elboroom.cli import app
from elboroom.core.problem import Problem
from elboroom.data import arrays, labels, registry
from elboroom.data.text import Reading

rng = np.random.default_rng(0)
GREY = rng.integers(0, 256, (6, 5, 4), dtype=np.uint8)
Faces = tuple[Path, dict[str, Path], NDArray[np.int64]]

SEXES, AGES = np.array([0, 1, 1, 0, 1, 0]), np.array([30, 9, 30, 101, 9, 30])


def pictures(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8)).save(path)
    return folder


def few(folder: Path) -> Path:
    return pictures(folder / "few", "a.png", "b.png", "c.jpg")


# arrays


def test_a_table_of_labels_in_an_archive(tmp_path: Path) -> None:
    table = np.stack([SEXES, AGES], 1)
    np.savez(tmp_path / "a.npz", x=GREY, y=table)
    data = registry.load(tmp_path / "a.npz")
    assert data.about.labels == {"label1": 2, "label2": 3}
    assert data.about.kinds == {"label1": "binary", "label2": "categorical"}
    assert data.classes["label2"] == ("9", "30", "101")
    for key in ("y_names", "names", "label_names"):
        np.savez(tmp_path / "b.npz", x=GREY, labels=table, **{key: np.array(["male", "age"])})
        named = registry.load(tmp_path / "b.npz")
        assert named.about.labels == {"male": 2, "age": 3}
        assert named.labels.tolist() == data.labels.tolist() == [[0, 1], [1, 0], [1, 1], [0, 2], [1, 0], [0, 1]]
    assert arrays.dataset(GREY, labels=table).labels.tolist() == data.labels.tolist()


def test_several_arrays_of_labels_in_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=GREY, male=SEXES.astype(bool), age=AGES.astype(float), y=AGES % 2)
    data = registry.load(tmp_path / "a.npz")
    assert data.about.labels == {"male": 2, "age": 3, "y": 2}
    assert data.classes["male"] == ("0", "1")
    assert data.labels[:, 1].tolist() == [1, 0, 1, 2, 0, 1]
    assert registry.load(f"{tmp_path / 'a.npz'}:images").about.labels == {}
    np.savez(tmp_path / "b.npz", x=GREY, y=np.stack([SEXES, AGES], 1), mood=np.array(list("abcabc")))
    assert registry.load(tmp_path / "b.npz").about.labels == {"label1": 2, "label2": 3, "mood": 3}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"x": GREY, "X": GREY, "y": AGES}, "choose one with"),
        ({"a": GREY, "age": AGES}, "choose one with"),
        ({"x": GREY, "age": AGES[:5]}, "has age, x; choose one with"),
        ({"x": GREY, "codes": np.zeros((6, 2))}, "choose one with"),
        ({"x": GREY, "y": AGES, "meta": np.array([{}] * 2, dtype=object)}, "choose one with"),
        ({"x": GREY, "y": AGES[:5]}, "labels of shape"),
        ({"x": GREY, "age": AGES / 4}, "labels 'age' of .* must be whole numbers"),
        ({"x": GREY, "age": np.array([1, 2, 3, 4, 5, np.inf])}, "labels 'age' of .* must be whole numbers"),
        (
            {"x": GREY, "y": np.stack([AGES, AGES], 1), "names": np.array(["a"])},
            "2 label columns in y, but 1 label names",
        ),
        ({"x": GREY, "y": np.stack([AGES, AGES], 1), "names": np.array(["a", "a"])}, "two labels with the same name"),
        ({"x": GREY, "y": np.stack([AGES, AGES], 1), "label1": AGES}, "two labels with the same name"),
    ],
)
def test_archives_that_are_not_clear(tmp_path: Path, content: dict[str, object], said: str) -> None:
    np.savez(tmp_path / "a.npz", **content)  # type: ignore[arg-type]
    with pytest.raises(Problem, match=said):
        registry.load(tmp_path / "a.npz")


def test_a_row_for_each_example_of_an_array(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", GREY)
    np.savez(tmp_path / "x.npz", x=GREY, y=SEXES)
    rows = [f"{k}.png,{age},{sex}" for k, (age, sex) in enumerate(zip(AGES, SEXES, strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(["image_id,age,male", *rows]))
    for source in (GREY, tmp_path / "x.npy", f"{tmp_path / 'x.npz'}:x"):
        data = registry.load(source, labels=tmp_path / "t.csv")
        assert data.classes == {"age": ("9", "30", "101"), "male": ("0", "1")}, "by size; file names are no label"
        assert data.labels.T.tolist() == [[1, 0, 1, 2, 0, 1], SEXES.tolist()]
    both = registry.load(tmp_path / "x.npz", labels=tmp_path / "t.csv", label_kinds="age=ordinal")
    assert both.about.kinds == {"label": "binary", "age": "ordinal", "male": "binary"}
    (tmp_path / "t.csv").write_text("\n".join(["name", *"ababab"]))
    assert registry.load(GREY, labels=tmp_path / "t.csv").classes == {"name": ("a", "b")}, "it names no file"
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    with pytest.raises(Problem, match="has 2 rows under its header, but 'array' has 6 examples"):
        registry.load(GREY, labels=tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("label\n" + "1\n" * 6)
    with pytest.raises(Problem, match="has a label 'label' already"):
        registry.load(tmp_path / "x.npz", labels=tmp_path / "t.csv")
    assert registry.load(GREY, labels="none").about.labels == {}


# folders


@pytest.mark.parametrize("name", ["labels.csv", "labels.tsv", "attributes.csv"])
@pytest.mark.parametrize("files", [("a.png", "b.png", "c.jpg"), ("a", "./b", "c")])
def test_a_table_in_the_folder(tmp_path: Path, name: str, files: tuple[str, ...]) -> None:
    folder = few(tmp_path)
    rows = [(files[2], "3", "dark"), (files[0], "20", "light"), (files[1], "3", "light")]
    by = "\t" if name.endswith("tsv") else ","
    (folder / name).write_text("\n".join(by.join(row) for row in [("id", "age", "hair"), *rows]))
    data = registry.load(folder)
    assert data.classes == {"age": ("3", "20"), "hair": ("dark", "light")}
    assert data.labels.tolist() == [[1, 1], [0, 1], [0, 0]]
    assert data.about.kinds == {"age": "binary", "hair": "binary"}
    assert registry.load(folder, labels="none").about.labels == {}
    assert registry.load(folder, labels="none").hash != data.hash


def test_a_column_that_is_called_file_holds_the_names(tmp_path: Path) -> None:
    folder = few(tmp_path)
    (tmp_path / "t.csv").write_text("Age,FileName\n3,a.png\n4,b.png\n5,c.jpg\n")
    data = registry.load(folder, labels=tmp_path / "t.csv")
    assert data.classes == {"Age": ("3", "4", "5")}
    (tmp_path / "t.csv").write_text("image_id,name\na,Ann\nb,Bob\nc,Ann\n")
    assert registry.load(folder, labels=tmp_path / "t.csv").classes == {"name": ("Ann", "Bob")}


def test_sub_folders_and_table_together(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "p", "train/cat/1.png", "train/dog/2.png", "train/dog/3.png", "test/dog/4.png")
    (folder / "labels.csv").write_text("file,age\ntrain/cat/1.png,1\n2.png,2\n3,3\ntest/dog/4,1\n")
    data = registry.load(folder)
    assert data.about.labels == {"label": 2, "age": 3}
    rows = data.splits["train"]
    assert data.labels[rows].tolist() == [[0, 0], [1, 1], [1, 2]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("file,age\na.png,1\nb.png,2\n", "has no row for 1 image of .*few: c.jpg"),
        ("file,age\na.png,1\nb.png,2\nc.jpg,1\nd.png,2\ne.png,1\n", "2 files that are not in .*few: 'd.png' in line 5"),
        ("file,age\na.png,1\nb.png,2\nc.jpg,1\na,2\n", "line 5 of .* repeats a"),
        ("file,age\na.png,1\nb.png,\nc.jpg,1\n", "line 3 of .* has no value for 'age'"),
        ("file,age\na.png,1\nb.png\nc.jpg,1\n", "line 3 of .* has 1 cells, but its header has 2"),
        ("a.png,1\nb.png,2\nc.jpg,1\n", "has no header; its first line is for the image a.png"),
        ("file,age,age\na.png,1,1\n", "two columns 'age'"),
        ("file,,age\na.png,1,1\n", "must name every column"),
        ("", "must name every column"),
        ("file\na.png\nb.png\nc.jpg\n", "has no label column"),
        ('file,age\n"a.png,1\n', "cannot be read as a table"),
    ],
)
def test_tables_that_are_not_understood(tmp_path: Path, content: str, said: str) -> None:
    folder = few(tmp_path)
    (folder / "labels.csv").write_text(content)
    with pytest.raises(Problem, match=said):
        registry.load(folder)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a.png 1\nb.png -1\nc.jpg 1\n", "is not in the format of list_attr_celeba.txt"),
        ("3\nMale\na.png 1\nb.png 0\nc.jpg 1\n", "line 4 of .* has the value '0'; attributes must be -1 or 1"),
        ("3\nMale Young\na.png 1 1\nb.png -1\nc.jpg 1 1\n", "line 4 of .* has 1 values, but there are 2 attributes"),
        ("4\nMale\na.png 1\nb.png -1\nc.jpg 1\n", "says 4 files, but it has 3"),
        ("", "is not in the format of"),
    ],
)
def test_attributes_of_celeba_that_are_not_understood(tmp_path: Path, content: str, said: str) -> None:
    folder = few(tmp_path)
    (folder / "list_attr_celeba.txt").write_text(content)
    with pytest.raises(Problem, match=said):
        registry.load(folder)


def test_which_table(tmp_path: Path) -> None:
    folder = few(tmp_path)
    for name in ("labels.csv", "attributes.csv"):
        (folder / name).write_text(f"file,{name[:3]}\na,1\nb,2\nc,1\n")
    with pytest.raises(Problem, match=r"has labels.csv and attributes.csv; choose one"):
        registry.load(folder)
    assert registry.load(folder, labels=folder / "attributes.csv").classes == {"att": ("1", "2")}
    with pytest.raises(Problem, match="does not exist"):
        registry.load(folder, labels=folder / "gone.csv")
    (folder / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(Problem, match=r"must be a .csv or .tsv file"):
        registry.load(folder, labels=folder / "t.xlsx")
    twins = pictures(tmp_path / "twins", "a.png", "a.jpg")
    with pytest.raises(Problem, match=re.escape("line 2 of") + ".*'a' is ambiguous: a.jpg or a.png"):
        registry.load(twins, labels=folder / "labels.csv")


def test_too_many_values_for_a_label(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = few(tmp_path)
    (folder / "labels.csv").write_text("file,place\na,1.1\nb,1.2\nc,1.3\n")
    assert registry.load(folder).about.labels == {"place": 3}
    monkeypatch.setattr(labels, "MOST_LABELS", 2)
    with pytest.raises(Problem, match=r"'place' of .* has 3 distinct values, too many for a label: leave"):
        registry.load(folder)


def test_a_table_in_another_encoding(tmp_path: Path) -> None:
    """It is refused with the way out, and that is one, for a folder and for an array; the run reads it again."""
    folder = few(tmp_path)
    np.save(tmp_path / "a.npy", GREY)
    table = tmp_path / "labels.csv"
    table.write_text("file,town\na.png,Köln\nb.png,Bonn\nc.jpg,Köln\n", encoding="latin-1")
    rows = tmp_path / "rows.csv"
    rows.write_text("town\n" + "Köln\nBonn\n" * 3, encoding="latin-1")
    latin = Reading(encoding="latin-1")
    for source, said in ((folder, table), (tmp_path / "a.npy", rows)):
        with pytest.raises(Problem, match="say what it is with --encoding"):
            registry.load(source, labels=said)
        assert registry.load(source, labels=said, reading=latin).classes["town"] == ("Bonn", "Köln")
    (folder / "labels.csv").write_bytes(table.read_bytes())
    assert registry.load(folder, reading=latin).classes["town"] == ("Bonn", "Köln")
    run = elboroom.train("vae", folder, tmp_path / "run", latent=2, steps=2, encoding="latin-1", net="mlp-300")
    assert elboroom.load(run.folder).data.classes["town"] == ("Bonn", "Köln")
    with pytest.raises(Problem, match="only for text"):
        registry.load(tmp_path / "a.npy", reading=latin)


def test_labels_that_have_no_place(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n1\n2\n")
    (tmp_path / "s.txt").write_text("a b\nb c\n")
    for source in (tmp_path / "s.txt", ["a b", "b c"]):
        with pytest.raises(Problem, match="--label-column"):
            registry.load(source, labels=tmp_path / "t.csv")
    for other in ("sentences", arrays.dataset(GREY)):
        with pytest.raises(Problem, match="has its own labels"):
            registry.load(other, labels=tmp_path / "t.csv")


# a set like CelebA


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Faces:
    """200 pictures, the same 40 attributes in both forms of table, and what they are."""
    folder = tmp_path_factory.mktemp("celeba")
    names = [f"{k:06d}.png" for k in range(1, 201)]
    pictures(folder / "pictures", *names)
    attributes = ["Male", "Young", *(f"Attribute_{k}" for k in range(38))]
    values = rng.integers(0, 2, (200, 40)) * 2 - 1
    order = rng.permutation(200)
    rows = [[names[i], *map(str, values[i])] for i in order]
    plain, table = folder / "list_attr_celeba.txt", folder / "attributes.csv"
    plain.write_text("\n".join(["200", " ".join(attributes), *("  ".join(row) for row in rows)]))
    table.write_text("\n".join(",".join(row) for row in [["image_id", *attributes], *rows]))
    return folder / "pictures", {"txt": plain, "csv": table}, (values + 1) // 2


@pytest.mark.parametrize("form", ["txt", "csv"])
def test_a_set_like_celeba(faces: Faces, form: str) -> None:
    folder, tables, values = faces
    data = registry.load(folder, labels=tables[form])
    assert len(data.fields) == 40
    assert {(field.kind, field.classes, field.size) for field in data.fields.values()} == {("binary", ("-1", "1"), 2)}
    assert np.array_equal(data.labels, values)
    assert data.hash == registry.load(folder, labels=tables["csv"]).hash


def test_an_attribute_of_celeba_is_binary_also_where_all_are_alike(tmp_path: Path) -> None:
    folder = few(tmp_path)
    (folder / "list_attr_celeba.txt").write_text("3\nMale\na.png 1\nb.png 1\nc.jpg 1\n")
    assert registry.load(folder).labels[:, 0].tolist() == [1, 1, 1]
    assert registry.load(folder).about.labels == {"Male": 2}


@pytest.mark.parametrize("name", ["Labels.csv", "ATTRIBUTES.CSV", "list_attr_celeba.csv", "LABELS.TSV"])
def test_a_table_is_found_whatever_the_case_of_its_name(tmp_path: Path, name: str) -> None:
    folder, gap = few(tmp_path), "\t" if name.endswith("TSV") else ","
    rows = [("image_id", "Male"), ("a.png", "1"), ("b.png", "1"), ("c.jpg", "1")]
    (folder / name).write_text("".join(f"{gap.join(row)}\n" for row in rows))
    celeba = name.startswith("list")
    assert registry.load(folder).about.labels == {"Male": 2 if celeba else 1}


@pytest.mark.parametrize("name", ["metadata.csv", "labels.txt", "Sheet.TSV"])
def test_a_table_that_is_not_looked_for_is_told_of(tmp_path: Path, name: str) -> None:
    folder = few(tmp_path)
    for file in (name, "README.txt"):
        (folder / file).write_text("file,age\na,1\nb,2\nc,1\n")
    with pytest.warns(UserWarning, match=f"has {name}, read for no labels: say which has them with --labels FILE"):
        assert registry.load(folder).about.labels == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.load(folder, labels="none")


def test_what_does_not_fit_names_the_way_out(tmp_path: Path) -> None:
    folder = few(tmp_path)
    for rows in ("a,1\nb,2\nc,1\nd,2\n", "a,1\nb,2\n"):
        (folder / "labels.csv").write_text(f"file,age\n{rows}")
        with pytest.raises(Problem, match="or say --labels none"):
            registry.load(folder)


def test_a_run_keeps_its_table_and_kinds(faces: Faces, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, tables, values = faces
    monkeypatch.chdir(folder.parent)
    out, small = tmp_path / "run", {"steps": 2, "batch_size": 8, "latent": 2, "net": "mlp-300", "given": "Male"}
    run = elboroom.train(
        "vae", "pictures", out, labels="list_attr_celeba.txt", label_kinds={"Young": "ordinal"}, **small
    )
    monkeypatch.chdir(tmp_path)
    again = elboroom.load(out)
    assert np.array_equal(again.data.labels, values)
    assert again.data.hash == run.spec.data["hash"]
    assert again.data.fields["Young"].kind == again.spec.about.kinds["Young"] == "ordinal"
    assert again.spec.about.kinds["Male"] == "binary"
    assert f"--labels {tables['txt']} --label-kinds Young=ordinal" in again.spec.command
    assert elboroom.resume(out, steps=1).step == 3
    with pytest.raises(Problem, match="did you mean 'Male'"):
        elboroom.train("vae", folder, labels=tables["csv"], label_kinds="Mal=binary", **small)


def test_a_run_of_old_is_not_disturbed_by_a_table(tmp_path: Path) -> None:
    folder, out = few(tmp_path), tmp_path / "run"
    small = {"steps": 1, "batch_size": 2, "latent": 2, "net": "mlp-300", "holdout": 0.0}
    elboroom.train("vae", folder, out, **small)
    spec = json.loads((out / "spec.json").read_text())
    del spec["data"]["labels"], spec["data"]["label_kinds"], spec["data"]["about"]["kinds"]
    (out / "spec.json").write_text(json.dumps(spec))
    (folder / "labels.csv").write_text("file,age\na,1\nb,2\nc,1\n")
    assert elboroom.load(out).data.about.labels == {}


def test_an_array_with_a_table_is_handed_in_again_without_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age\n" + "1\n2\n3\n" * 2)
    small = {"steps": 1, "batch_size": 2, "latent": 2, "net": "mlp-300"}
    elboroom.train("vae", GREY, tmp_path / "run", labels=tmp_path / "t.csv", label_kinds="age=ordinal", **small)
    data = elboroom.load(tmp_path / "run", data=GREY).data
    assert data.fields["age"].kind == "ordinal"
    ready = arrays.dataset(GREY, labels={"age": AGES})
    elboroom.train("vae", ready, tmp_path / "other", label_kinds="age=ordinal", **small)
    assert elboroom.load(tmp_path / "other", data=ready).data.said_kinds == {"age": "ordinal"}


def test_data_show(faces: Faces) -> None:
    folder, tables, _ = faces
    asked = ["data", "show", str(folder), "--labels", str(tables["csv"]), "--label-kinds", "Young=ordinal"]
    told = CliRunner().invoke(app, asked).stdout
    assert re.search(r"examples\s+200\b", told)
    assert re.search(r"shape\s+1 x 8 x 8", told)
    assert re.search(r"Male\s+binary\s+2\s+-1, 1", told)
    entry = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert (entry["examples"], entry["splits"], entry["values"]) == (200, {"train": 200}, "bytes")
    assert entry["labels"][1] == {"name": "Young", "kind": "ordinal", "classes": ["-1", "1"], "size": 2}


def test_train_takes_the_table_as_a_flag(tmp_path: Path) -> None:
    folder, out = few(tmp_path), tmp_path / "run"
    (tmp_path / "t.csv").write_text("file,age\na,1\nb,2\nc,3\n")
    asked = ["train", "vae", "--data", str(folder), "--labels", str(tmp_path / "t.csv"), "--label-kinds", "age=ordinal"]
    asked += ["--steps", "1", "--batch-size", "2", "--net", "mlp-300", "--holdout", "0", "--out", str(out)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert elboroom.load(out).spec.about.kinds == {"age": "ordinal"}
