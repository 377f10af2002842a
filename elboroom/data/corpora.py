"""The text corpora of the literature, read from the files their authors publish; each says how its splits were made."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from elboroom.core.problem import Problem, unknown
from elboroom.data import places
from elboroom.data.dataset import DataSet
from elboroom.data.fields import CATEGORICAL
from elboroom.data.lines import Example, lines
from elboroom.data.text import Reading, gather

SHEN, LI = "yelp_shen_devtest", "yelp_li2018"
REFERENCES = ("reference.0", "reference.1")

# The files, with their SHA-256.
PTB = {
    "ptb.train.txt": "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
    "ptb.valid.txt": "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
    "ptb.test.txt": "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
}
MULTI30K = {
    "train.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    "val.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    "test_2016_flickr.en": "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
}
FIVE = {
    "captions.train.1.en": "4ad9fa3db9d3b34475179022ce29db057e6a790d5102a6d4dfbc5d2e8b5e0ad4",
    "captions.train.2.en": "702800c9ab3c9bbc261b8756f569123781eb8ebdca569894b2ed439bc4847b3a",
    "captions.train.3.en": "5ad5423f866b515911a3c5830e4dde329a1e56dc6398f8cdab473cdd892ca0d4",
    "captions.train.4.en": "8b22cf016446518bbb29120cd15b0a64050be81e9fa897097544dc9ea961b874",
    "captions.train.5.en": "d10da9a89b78a2eca8911365b6637a949a9c4377ea7d4b6f9bf50830c0383a32",
    "captions.val.1.en": "41c14bb180253ee0c9924fa2a68bb6074a0044a5ec11b984e81f3957cdc60070",
    "captions.val.2.en": "b12173d393e10e65e19c09eee93cfe5fe2912f2c06a7dd75f0db74115e12173d",
    "captions.val.3.en": "39be242fff36727c19e5e2fcfb68b3ebeecf42d4629c16143fdb32d26559c23c",
    "captions.val.4.en": "40d99053bb5f4430524dfe073ceb89c9953363ecf147c1d3eb7ffad00628e80a",
    "captions.val.5.en": "e41516dceff639db58b2a8eaed16bdb8d7d4301f3493914e17f33efde6a3f47a",
    "captions.test.1.en": "8798ff786a0a17bfc4ebd567c2d45d2ecca550d1c537310cb090364e31d6f9d3",
    "captions.test.2.en": "51a12e6293d2bd6db30c1cb6a01af38b78716adfde808566ee141d74d93bc5d4",
    "captions.test.3.en": "92391604d1e46d475106f21bf12ab3e3d39defdda1cd9473fdcca4caa7657721",
    "captions.test.4.en": "bcd6be75bc8ba947995d2ee7f429421854aadb9f243f99184de5bd48ef491950",
    "captions.test.5.en": "177fe496dd4a8d65887a5c48342dd5e343fd5288ce5e5a4bb1c500732c995397",
}
CAPTIONS = {
    "sentiment.train.0": "5e9818f2cd088eee1041624e8bee4ba06e4c6e7b7f170ea73d6e23246eb0288c",
    "sentiment.train.1": "1b3c4b57686d5f23a176085492c8d75ec5daf340b8ea30f61e8462df74ebb28c",
    "sentiment.dev.0": "26516739a7b97ebd57b9e786f676cc8329dc646a79c30806f27e4adf5a7d6f66",
    "sentiment.dev.1": "02ec2b1e89562004f9a0a4f33dd6b6e9b6aecda57f5e8d9c8b9d6153d4bb22fe",
    "reference.0": "cbd5d681611d0b283e8944a234b156c5f17895fca885daea2c3fd4f676918b72",
    "reference.1": "04052872d45f574cd8150dcb77130d00f111bf8bc576dd9441562a32ee81fd7f",
}
DIALOGUES = {
    "train.zip": "6191257f8250da0e045bfd1d017645e15b2358df975ec4c5c431a5a1f99662a4",
    "validation.zip": "f068cf7526a56ab5f26e99b74ce9edbc2766f7b060a3c6cef035920b0dd28153",
    "test.zip": "5f9526a5ce4b8af4ca237aa3ff38cbf03becbc596c70b0974d7f5f9af2ea0615",
}
YELP = {
    "yelp_shen_devtest/sentiment.dev.0": "405ef6d4bfbc8bb92c3c55b496f315069cb5edb49ed34a07b1206341b83c344b",
    "yelp_shen_devtest/sentiment.dev.1": "3509f6573411bbda2d5c071ed72ad276c12356c15c06205b8fdf74b217970c61",
    "yelp_shen_devtest/sentiment.test.0": "b7466e8859e9948892a859af7938a82c801c99b69f884014082fd072a155bbf2",
    "yelp_shen_devtest/sentiment.test.1": "a66e0ec3f0e1230ad4d2c822750a381cf6d99a99fa9b5ae79546f21ff79ed5c3",
    "yelp_li2018/sentiment.test.0": "29f23d6fe163a85ffe0aad31d54435bb8a65c3837767bebcd718f2c47d201cc4",
    "yelp_li2018/sentiment.test.1": "e42be2064b93be77b223e67d1ae3d297bbc6a38195017f3f195c1e3b58f72077",
    "yelp_li2018/reference.0": "a0a162722a4dcbc2d38fd9770f37d39f383777e0c545a6df5cd7ac58247d7a77",
    "yelp_li2018/reference.1": "5cc4011b1e7fdd72a3c56786a02ab2e50caf08ffd3bbd70bde854322e809f734",
}

SENTIMENT = ("negative", "positive")
STYLE = ("humorous", "romantic")
ACTS = ("inform", "question", "directive", "commissive")  # published as 1 to 4
EMOTIONS = ("no emotion", "anger", "disgust", "fear", "happiness", "sadness", "surprise")  # published as 0 to 6
TURN = "__eou__"  # ends an utterance


class Rewrite(NamedTuple):
    """A sentence, the label that it is to be given, and what a human made of it."""

    source: str
    target: int
    reference: str


def ptb(folder: Path, reading: Reading | None = None) -> DataSet:
    """Penn Treebank in Mikolov's split; numbers are N and rare words <unk>, so that no word of the test is unknown."""
    parts = {split: _plain([folder / name]) for split, name in zip(("train", "valid", "test"), PTB, strict=True)}
    return gather("ptb", parts, None, reading)


def multi30k(folder: Path, reading: Reading | None = None) -> DataSet:
    """The one English caption of each image that was translated; lower-cased and tokenised as published, kept so."""
    parts = {split: _plain([folder / name]) for split, name in zip(("train", "valid", "test"), MULTI30K, strict=True)}
    return gather("multi30k", parts, None, reading)


def multi30k_five(folder: Path, reading: Reading | None = None) -> DataSet:
    """All five English captions of each image, first those of column 1, the longest of each image, then of column 2, ...

    Lower-cased and tokenised as published, and kept so. Column and length go together, so always use all five.
    """
    every = [folder / name for name in FIVE]
    parts = {"train": _plain(every[:5]), "valid": _plain(every[5:10]), "test": _plain(every[10:])}
    return gather("multi30k-5", parts, None, reading)


def caption_style(folder: Path, reading: Reading | None = None) -> DataSet:
    """Captions in two styles (Li et al. 2018). The published test captions are factual: they have neither style.

    So the splits are not the published ones: train is train; test are the 600 captions of dev that are references of
    `transfer_pairs`; valid are the other 400 of dev, lest a model be chosen by what it is tested with.
    """
    humans = {_squeezed(pair.reference) for pair in transfer_pairs("caption-style", folder)}
    parts: dict[str, list[Example]] = {"train": [], "valid": [], "test": []}
    for part, (k, style) in product(("train", "dev"), enumerate(STYLE)):
        encoding = "gbk" if (part, k) == ("train", 1) else "utf-8"  # one line of that file has a Chinese comma
        for text, *_ in _plain([folder / f"sentiment.{part}.{k}"], encoding):
            split = "train" if part == "train" else "test" if _squeezed(text) in humans else "valid"
            parts[split].append((text, (style,)))
    return gather("caption-style", parts, {"style": STYLE}, reading, kinds={"style": "binary"})


def dailydialog(folder: Path, reading: Reading | None = None) -> DataSet:
    """The utterances of DailyDialog (Li et al. 2017), each with its dialogue act and emotion; text as published.

    Dialogues of valid and test that are in train, but for upper and lower case, are left out: 77 of 1,000 and 106 of
    1,000. So is one of train, which has 12 utterances and 11 labels.
    """
    read = {split: _utterances(some) for split, some in dialogues(folder).items()}
    labels, kinds = {"act": ACTS, "emotion": EMOTIONS}, dict.fromkeys(("act", "emotion"), CATEGORICAL)
    return gather("dailydialog", read, labels, reading, kinds=kinds)


def dialogues(folder: Path) -> dict[str, list[tuple[str, list[str], list[str]]]]:
    """The dialogues of each split, with acts and emotions; those of valid and test that are in train are left out."""
    parts = {
        split: _dialogues(folder / name) for split, name in zip(("train", "valid", "test"), DIALOGUES, strict=True)
    }
    train = {_squeezed(text).lower() for text, _, _ in parts["train"]}
    for split in ("valid", "test"):
        parts[split] = [entry for entry in parts[split] if _squeezed(entry[0]).lower() not in train]
    return parts


def yelp_sentiment(folder: Path, reading: Reading | None = None) -> DataSet:
    """Sentences of Yelp reviews, negative or positive (Shen et al. 2017). The splits are not the published ones.

    Without the published training file: train is the published test, less every line that is also in dev or in the test
    of Li et al. 2018; valid and test are the lines of dev that are not in the latter, by turns, and a line that comes
    again goes where it went first. The test of Li et al. is kept for `transfer_pairs`.
    """
    held = {text for _, text in _reviews(folder / LI, "test")}
    parts: dict[str, list[Example]] = {"train": [], "valid": [], "test": []}
    turns: dict[str, int] = {}
    for label, text in _reviews(folder / SHEN, "dev"):
        if text not in held:
            parts[("valid", "test")[turns.setdefault(text, len(turns)) % 2]].append((text, (label,)))
    for label, text in _reviews(folder / SHEN, "test"):
        if text not in held and text not in turns:
            parts["train"].append((text, (label,)))
    return gather("yelp-sentiment", parts, {"sentiment": SENTIMENT}, reading, kinds={"sentiment": "ordinal"})


def _reviews(folder: Path, part: str) -> Iterator[tuple[str, str]]:
    for k, label in enumerate(SENTIMENT):
        for text, *_ in _plain([folder / f"sentiment.{part}.{k}"]):
            yield label, _squeezed(text)


def transfer_pairs(name: str = "yelp-sentiment", folder: Path | None = None) -> list[Rewrite]:
    """What style transfer is tested on (Li et al. 2018): a sentence, the label to give it, and a human's rewriting.

    yelp-sentiment: 500 negative sentences to make positive, then 500 positive ones to make negative. caption-style: 300
    factual captions to make romantic, then the same to make humorous. Rewritings are as published, also where they are
    cased and not tokenised.
    """
    within = {"yelp-sentiment": LI, "caption-style": "caption_li2018"}
    if name not in within:
        raise unknown("corpus with rewritings", name, within)
    where = folder or places.find(within[name], *REFERENCES)
    if where is None:
        raise Problem(f"the rewritings of {name} are missing; `elbo data get {name}` says where to put them")
    pairs = []
    for target, file in ((1, "reference.0"), (0, "reference.1")):
        for number, line in lines(where / file):
            cells = [cell.strip() for cell in line.split("\t")]
            if len(cells) < 2:
                raise Problem(f"line {number} of {where / file} must be a sentence, a TAB and its rewriting")
            pairs.append(Rewrite(cells[0], target, cells[1]))
    return pairs


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _plain(paths: Iterable[Path], encoding: str = "utf-8") -> Iterator[Example]:
    return ((line, ()) for path in paths for _, line in lines(path, encoding) if line.strip())


def _dialogues(path: Path) -> list[tuple[str, list[str], list[str]]]:
    """The dialogues of one zip that have a label for every utterance, with acts and emotions."""
    name = path.stem
    try:
        with zipfile.ZipFile(path) as archive:
            files = [archive.read(f"{name}/dialogues_{what}{name}.txt").decode() for what in ("", "act_", "emotion_")]
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise Problem(f"{path} cannot be read as a zip of dialogues, acts and emotions: {error}") from error
    whole = zip(*(text.rstrip("\n").split("\n") for text in files), strict=True)
    found = [(text, acts.split(), emotions.split()) for text, acts, emotions in whole]
    return [entry for entry in found if entry[0].count(TURN) == len(entry[1]) == len(entry[2])]


def _utterances(dialogues: Iterable[tuple[str, list[str], list[str]]]) -> Iterator[Example]:
    for text, acts, emotions in dialogues:
        for said, act, emotion in zip(text.split(TURN), acts, emotions, strict=False):
            yield said, (ACTS[int(act) - 1], EMOTIONS[int(emotion)])
