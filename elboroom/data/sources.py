"""The published data sets: what they are, which files they are made of, how those are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elboroom.data import corpora, dressed, dsprites, images, pairs, places, sentences
from elboroom.data.dataset import DataSet, Kind
from elboroom.data.download import File, Progress
from elboroom.data.text import Reading

Loader = Callable[[Path, int | None, Progress | None], DataSet]
Reader = Callable[[Path, Reading | None], DataSet]


@dataclass(frozen=True, kw_only=True)
class Source:
    """A published data set: `forms` are the sets of file names of which any one is enough to load it.

    It is made here (`make`), downloaded (`files` with an address), or put in its place by hand (files without one).
    """

    name: str
    kind: Kind = "pixels"
    shape: tuple[int, ...]
    counts: dict[str, int]
    licence: str  # as stated by the source
    folder: str = ""
    files: tuple[File, ...] = ()
    forms: tuple[tuple[str, ...], ...] = ()
    load: Loader | None = None  # of images
    read: Reader | None = None  # of text
    make: Callable[[Progress | None], Path | None] | None = None  # gives the folder that it is kept in, if any
    after: Callable[[Path], None] | None = None  # run once all files of a download are there
    sizes: bool = False  # whether images come in a size of choice
    note: str = ""
    origin: str = ""  # where files that are put in place by hand come from

    def where(self) -> Path | None:
        """The folder that holds it, or None."""
        return next((found for form in self.forms if (found := places.find(self.folder, *form))), None)

    @property
    def by_hand(self) -> bool:
        """Whether nobody but the user can put its files in place."""
        return bool(self.files) and not any(file.url for file in self.files)

    @property
    def how(self) -> str:
        """How to get it, in a few words."""
        said = f"elbo data get {self.name}"
        return self.note or (f"by hand: {said} says where to put it" if self.by_hand else said)

    @property
    def missing(self) -> str:
        """What to do about files that are not here, in one sentence."""
        if not self.by_hand:
            return (
                f"{self.name} is not downloaded; run `elbo data get {self.name}`, "
                f"or set ELBOROOM_DATA to the folder that holds {self.folder}/"
            )
        names = ", ".join(file.name for file in self.files)
        place = (places.own() or places.cache()) / self.folder
        return f"{self.name} is missing and cannot be downloaded; put {names} ({self.origin}) into {place}"


def _files(base: str, entries: dict[str, tuple[str | None, int | None]]) -> tuple[File, ...]:
    return tuple(File(name, base + name, digest, size) for name, (digest, size) in entries.items())


def _by_hand(sums: dict[str, str]) -> tuple[File, ...]:
    return tuple(File(name, "", digest) for name, digest in sums.items())


def _render(progress: Progress | None) -> Path:
    dsprites.packed(progress)
    return places.cache() / "dsprites"


def _pack(target: Path) -> None:
    images.pack(target, into=target)
    for name in images.AMAT:
        (target / name).unlink()


MNIST = _files(
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    {
        "train-images-idx3-ubyte.gz": ("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9_912_422),
        "train-labels-idx1-ubyte.gz": ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881),
        "t10k-images-idx3-ubyte.gz": ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1_648_877),
        "t10k-labels-idx1-ubyte.gz": ("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542),
    },
)
FASHION = _files(
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    {
        "train-images-idx3-ubyte.gz": ("3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26_421_880),
        "train-labels-idx1-ubyte.gz": ("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29_515),
        "t10k-images-idx3-ubyte.gz": ("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4_422_102),
        "t10k-labels-idx1-ubyte.gz": ("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5_148),
    },
)
BINARIZED = _files(
    "https://www.cs.toronto.edu/~larocheh/public/datasets/binarized_mnist/",
    {
        "binarized_mnist_train.amat": (
            "ad693b29f94c14277b095f5238ddefbbdaaae0939789dd2f4f0205278cee3e4d",
            78_400_000,
        ),
        "binarized_mnist_valid.amat": (
            "1de3d397c40fe8eeb33dafd4099a1f665ec01e96d9be234aaeeac8a34930e2e2",
            15_680_000,
        ),
        "binarized_mnist_test.amat": (
            "e6687bfea3f820c174f33b7865140b2a2dd2930ef786f35d45795fc193b5ab2c",
            15_680_000,
        ),
    },
)
OMNIGLOT = _files(
    "https://github.com/brendenlake/omniglot/raw/master/python/",
    {
        "images_background_small1.zip": ("f38eb80f801274ac2b4dff5b24289016bfaba4a7d5bb50deebf27104ad6cb8a4", 1_319_022),
        "images_background_small2.zip": ("3ccaa407515a8778e5d0861875af38b17e418f301ad5bb3b5a6b65d901a41c7f", 1_580_917),
    },
)
FREY = _files("https://cs.nyu.edu/~roweis/data/", {images.FREY_MAT: (None, None)})
SPRITES = _files("https://github.com/deepmind/dsprites-dataset/raw/master/", {dsprites.ORIGINAL: (None, None)})

HALVES = {"train": 60_000, "test": 10_000}

SOURCES: dict[str, Source] = {
    source.name: source
    for source in (
        Source(
            name="dsprites",
            shape=(1, 64, 64),
            counts={"train": dsprites.COUNT},
            licence="Apache-2.0",
            folder="dsprites",
            forms=(("packed.npy", "packed.json"),),
            load=lambda _, __, progress: dsprites.load(progress),
            make=_render,
            note="rendered at first use",
        ),
        *(
            Source(
                name=f"dsprites-{name}",
                shape=(3, 64, 64),
                counts={"train": dsprites.COUNT},
                licence="Apache-2.0",
                folder="dsprites",
                forms=(("packed.npy", "packed.json"),),
                load=lambda _, __, progress, load=load: load(progress),  # type: ignore[misc]
                make=_render,
                note=note,
            )
            for name, load, note in (
                ("colour", dressed.colour, "rendered at first use; eight colours, the sixth factor"),
                ("noisy", dressed.noisy, "rendered at first use; before noise"),
                (
                    "scream",
                    dressed.scream,
                    "rendered at first use; before scream/scream.jpg of your own, or a picture of ours",
                ),
            )
        ),
        Source(
            name="dsprites-original",
            shape=(1, 64, 64),
            counts={"train": dsprites.COUNT},
            licence="Apache-2.0",
            folder="dsprites",
            files=SPRITES,
            forms=((dsprites.ORIGINAL,),),
            note="only to check the rendering; train on dsprites",
        ),
        Source(
            name="mnist",
            shape=(1, 28, 28),
            counts=HALVES,
            licence="usually given as CC BY-SA 3.0",
            folder="mnist",
            files=MNIST,
            forms=(images.IDX,),
            load=lambda path, _, __: images.digits(path, "mnist"),
        ),
        Source(
            name="fashion-mnist",
            shape=(1, 28, 28),
            counts=HALVES,
            licence="MIT",
            folder="fashion_mnist",
            files=FASHION,
            forms=(images.IDX,),
            load=lambda path, _, __: images.digits(path, "fashion-mnist"),
        ),
        Source(
            name="binarized-mnist",
            shape=(1, 28, 28),
            counts={"train": 50_000, "valid": 10_000, "test": 10_000},
            licence="none stated",
            folder="binarized_mnist",
            files=BINARIZED,
            forms=((images.STATIC,), images.AMAT),
            load=lambda path, _, __: images.binarized(path),
            after=_pack,
        ),
        Source(
            name="freyfaces",
            shape=(1, 28, 20),
            counts={"train": 1_965},
            licence="none stated",
            folder="freyfaces",
            files=FREY,
            forms=((images.FREY,), (images.FREY_MAT,)),
            load=lambda path, _, __: images.freyfaces(path),
        ),
        Source(
            name="omniglot",
            shape=(1, 32, 32),
            counts={"train": 4_840},
            licence="MIT",
            folder="omniglot",
            files=OMNIGLOT,
            forms=(images.OMNIGLOT,),
            load=images.omniglot,
            sizes=True,
        ),
        Source(
            name="sentences",
            kind="tokens",
            shape=(13,),
            counts={"train": sentences.COUNT},
            licence="Apache-2.0",
            read=lambda _, reading: sentences.load(reading),
            make=lambda _: None,
            note="built in",
        ),
        Source(
            name="ptb",
            kind="tokens",
            shape=(83,),
            counts={"train": 42_068, "valid": 3_370, "test": 3_761},
            licence="text of the Wall Street Journal, LDC: not for redistribution",
            folder="ptb",
            files=_by_hand(corpora.PTB),
            forms=(tuple(corpora.PTB),),
            read=corpora.ptb,
            origin="of simple-examples.tgz by Mikolov",
        ),
        Source(
            name="multi30k",
            kind="tokens",
            shape=(41,),
            counts={"train": 29_000, "valid": 1_014, "test": 1_000},
            licence="research use",
            folder="multi30k",
            files=_by_hand(corpora.MULTI30K),
            forms=(tuple(corpora.MULTI30K),),
            read=corpora.multi30k,
            origin="data/task1/tok/*.lc.norm.tok.en of github.com/multi30k/dataset",
        ),
        Source(
            name="multi30k-5",
            kind="tokens",
            shape=(83,),
            counts={"train": 145_000, "valid": 5_070, "test": 5_000},
            licence="research use",
            folder="multi30k",
            files=_by_hand(corpora.FIVE),
            forms=(tuple(corpora.FIVE),),
            read=corpora.multi30k_five,
            origin="data/task2/tok/*.lc.norm.tok.*.en of github.com/multi30k/dataset",
        ),
        Source(
            name="caption-style",
            kind="tokens",
            shape=(21,),
            counts={"train": 12_000, "valid": 400, "test": 600},
            licence="none stated",
            folder="caption_li2018",
            files=_by_hand(corpora.CAPTIONS),
            forms=(tuple(corpora.CAPTIONS),),
            read=corpora.caption_style,
            origin="data/imagecaption of github.com/lijuncen/Sentiment-and-Style-Transfer",
        ),
        Source(
            name="dailydialog",
            kind="tokens",
            shape=(175,),
            counts={"train": 87_155, "valid": 7_439, "test": 6_982},
            licence="CC BY-NC-SA 4.0",
            folder="dailydialog",
            files=_by_hand(corpora.DIALOGUES),
            forms=(tuple(corpora.DIALOGUES),),
            read=corpora.dailydialog,
            origin="of ijcnlp_dailydialog.zip by Li et al.",
        ),
        Source(
            name="multi30k-en-fr",
            kind="tokens",
            shape=(51,),
            counts={"train": 29_000, "valid": 1_014, "test": 1_000},
            licence="research use",
            folder="multi30k",
            files=_by_hand(corpora.MULTI30K | pairs.FRENCH),
            forms=(tuple(corpora.MULTI30K | pairs.FRENCH),),
            read=pairs.multi30k_en_fr,
            origin="data/task1/tok/*.lc.norm.tok.{en,fr} of github.com/multi30k/dataset",
        ),
        Source(
            name="multi30k-fr-en",
            kind="tokens",
            shape=(41,),
            counts={"train": 29_000, "valid": 1_014, "test": 1_000},
            licence="research use",
            folder="multi30k",
            files=_by_hand(corpora.MULTI30K | pairs.FRENCH),
            forms=(tuple(corpora.MULTI30K | pairs.FRENCH),),
            read=pairs.multi30k_fr_en,
            origin="data/task1/tok/*.lc.norm.tok.{en,fr} of github.com/multi30k/dataset",
        ),
        Source(
            name="dailydialog-replies",
            kind="tokens",
            shape=(175,),
            counts={"train": 76_038, "valid": 6_516, "test": 6_088},
            licence="CC BY-NC-SA 4.0",
            folder="dailydialog",
            files=_by_hand(corpora.DIALOGUES),
            forms=(tuple(corpora.DIALOGUES),),
            read=pairs.dailydialog_replies,
            origin="of ijcnlp_dailydialog.zip by Li et al.",
        ),
        Source(
            name="turkcorpus",
            kind="tokens",
            shape=(102,),
            counts={"train": 14_400, "valid": 1_600, "test": 2_872},
            licence="none stated",
            folder="turkcorpus",
            files=_by_hand(pairs.TURK),
            forms=(tuple(pairs.TURK),),
            read=pairs.turkcorpus,
            origin="data/turkcorpus of github.com/cocoxu/simplification",
        ),
        Source(
            name="asset",
            kind="tokens",
            shape=(60,),
            counts={"train": 18_000, "valid": 2_000, "test": 3_590},
            licence="CC BY-NC 4.0",
            folder="asset",
            files=_by_hand(pairs.ASSET),
            forms=(tuple(pairs.ASSET),),
            read=pairs.asset,
            origin="dataset of github.com/facebookresearch/asset",
        ),
        Source(
            name="yelp-sentiment",
            kind="tokens",
            shape=(16,),
            counts={"train": 113_320, "valid": 31_016, "test": 31_457},
            licence="Yelp terms",
            files=_by_hand(corpora.YELP),
            forms=(tuple(corpora.YELP),),
            read=corpora.yelp_sentiment,
            origin="data/yelp of github.com/shentianxiao/language-style-transfer and of "
            "github.com/lijuncen/Sentiment-and-Style-Transfer",
        ),
    )
}
