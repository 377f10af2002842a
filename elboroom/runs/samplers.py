"""Samplers: laws fitted to the codes of the training split after training, kept in the run, from which samples are decoded.

Where q(z) is far from the prior, draws of the prior fall where no code lies. A law of the codes themselves has no such
holes; what it makes is a sample of the decoder under that law, not of the model that was trained.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
from safetensors import SafetensorError
from safetensors import torch as tensors
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from elboroom.core.batch import Batch
from elboroom.core.draw import Draw
from elboroom.core.files import read_json, write, write_json
from elboroom.core.kl import has_many_priors
from elboroom.core.law import law_of
from elboroom.core.locks import one_process
from elboroom.core.problem import Problem
from elboroom.core.progress import stage, tell
from elboroom.families.flow_prior import FlowPrior
from elboroom.families.mixture import Mixture

if TYPE_CHECKING:
    from elboroom.runs.run import Run

Name = Literal["prior", "gmm", "flow", "kmeans"]
ROWS = 10_000  # training examples that a law is fitted to, a code of each
COMPONENTS = 10
FOLDER = "samplers"
FLOOR = 1e-6  # of the mean variance of the codes, the least that a component has
TINY = 1e-300  # the weight of a component without codes


class Sampler(ABC):
    """A law of codes (n, J): fitted, kept as tensors, and made of them again."""

    @abstractmethod
    def like(self, size: int, components: int) -> dict[str, Tensor]:
        """Tensors of the names, shapes and types that a law of codes of this size is kept as, without numbers."""

    @abstractmethod
    def fit(self, codes: Tensor, components: int) -> dict[str, Tensor]:
        """The tensors of the law of these codes."""

    @abstractmethod
    def law(self, kept: dict[str, Tensor]) -> Any:
        """The law of these tensors."""


class GaussianMixture(Sampler):
    """Gaussians with covariances of their own, by expectation maximisation."""

    def like(self, size: int, components: int) -> dict[str, Tensor]:
        shapes = {"log_weights": (), "loc": (size,), "scale_tril": (size, size)}
        return {name: _shaped(components, *shape) for name, shape in shapes.items()}

    def fit(self, codes: Tensor, components: int) -> dict[str, Tensor]:
        from sklearn.mixture import GaussianMixture as Fitted

        floor = max(FLOOR * float(codes.var(0).mean()), 1e-12)
        found = Fitted(components, reg_covar=floor, random_state=0, max_iter=200).fit(codes.numpy())
        roots = torch.linalg.cholesky(torch.from_numpy(found.covariances_))
        weights = torch.from_numpy(found.weights_).log()
        return {"log_weights": weights, "loc": torch.from_numpy(found.means_), "scale_tril": roots}

    def law(self, kept: dict[str, Tensor]) -> Any:
        each = MultivariateNormal(kept["loc"], scale_tril=kept["scale_tril"])
        return MixtureSameFamily(Categorical(logits=kept["log_weights"]), each)


class Means(Sampler):
    """The means of k-means, each drawn as often as it has codes, with noise as wide as its codes lie about it."""

    def like(self, size: int, components: int) -> dict[str, Tensor]:
        shapes = {"log_weights": (), "loc": (size,), "logvar": (size,)}
        return {name: _shaped(components, *shape) for name, shape in shapes.items()}

    def fit(self, codes: Tensor, components: int) -> dict[str, Tensor]:
        from sklearn.cluster import KMeans

        found = KMeans(components, n_init=3, random_state=0).fit(codes.numpy())
        of, loc = torch.from_numpy(found.labels_).long(), torch.from_numpy(found.cluster_centers_)
        count = torch.bincount(of, minlength=components).double()
        spread = torch.zeros_like(loc).index_add(0, of, (codes - loc[of]).square()) / count.clamp_min(1)[:, None]
        floor = max(FLOOR * float(codes.var(0).mean()), 1e-12)
        weights = (count / count.sum()).clamp_min(TINY)  # codes that are equal leave means without any
        return {"log_weights": weights.log(), "loc": loc, "logvar": spread.clamp_min(floor).log()}

    def law(self, kept: dict[str, Tensor]) -> Any:
        return Mixture(kept["log_weights"], kept["loc"], kept["logvar"])


class Couplings(Sampler):
    """N(0, I) through affine couplings, by maximum likelihood; in units of the codes' width."""

    layers, width, steps, batch = 6, 64, 600, 256

    def like(self, size: int, components: int) -> dict[str, Tensor]:
        with torch.device("meta"):
            flow = FlowPrior(size, self.layers, self.width).state_dict()
        return {"centre": _shaped(size), "scale": _shaped(size)} | {f"flow.{k}": v for k, v in flow.items()}

    def fit(self, codes: Tensor, components: int) -> dict[str, Tensor]:
        if codes.shape[1] < 2:
            raise Problem("--sampler flow couples two halves of z, which has one dimension here; use --sampler gmm")
        centre, scale = codes.mean(0), codes.std(0).clamp_min(1e-6)
        z = ((codes - centre) / scale).float()
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.manual_seed(0)
            flow = FlowPrior(z.shape[1], self.layers, self.width)
            optimiser = torch.optim.Adam(flow.parameters(), lr=3e-3)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.steps)
            for step in range(self.steps):
                rows = torch.randint(len(z), (self.batch,))
                loss = -flow(Batch(z)).log_prob(z[rows]).mean()
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
                optimiser.step()
                schedule.step()
                tell(step + 1, self.steps)
        return {"centre": centre, "scale": scale} | {f"flow.{k}": v for k, v in flow.state_dict().items()}

    def law(self, kept: dict[str, Tensor]) -> Any:
        flow = FlowPrior(len(kept["centre"]), self.layers, self.width)
        flow.load_state_dict({k.removeprefix("flow."): v for k, v in kept.items() if k.startswith("flow.")})
        base, centre, scale = flow(Batch(torch.empty(1))), kept["centre"], kept["scale"]
        return torch.distributions.TransformedDistribution(
            base, [torch.distributions.AffineTransform(centre.float(), scale.float(), event_dim=1)]
        )


SAMPLERS: dict[str, Sampler] = {"gmm": GaussianMixture(), "flow": Couplings(), "kmeans": Means()}
COUNTED = ("gmm", "kmeans")  # those that have components


@torch.no_grad()
def draw(run: Run, n: int, seed: int, name: str, components: int | None) -> Tensor:
    """n codes of a fitted law, (n, J), where codes live."""
    law = fitted(run, name, components)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        z = law.sample(torch.Size((n,))).float()
    if not torch.isfinite(z).all():
        raise Problem(f"draws of --sampler {name} are NaN or infinite; remove {run.folder / FOLDER} to fit it anew")
    return run.space.back(z)


def fitted(run: Run, name: str, components: int | None = None) -> Any:
    """The law of the codes of the training split: that which the run keeps, or fitted now and kept."""
    if components is not None and name not in COUNTED:
        raise Problem(f"--components has no effect with --sampler {name}; remove it")
    if has_many_priors(run.model):
        raise Problem(f"--sampler {name} is one law of all codes, and p(z|u) of this model differs between labels")
    run.require_codes()
    count = components or COMPONENTS
    stem = f"{name}-{count}" if name in COUNTED else name
    path = run.folder / FOLDER / f"{stem}.safetensors"
    vouch = {"run": run.spec.id, "step": run.step, "weights": _digest(run), "data": run.spec.data["hash"]}
    sampler = SAMPLERS[name]
    law = _read(path, vouch, sampler, run.latent, count)
    if law is not None:
        return law
    with stage(f"fitting {stem}"):
        codes = _codes(run)
        if len(codes) <= count and name in COUNTED:
            raise Problem(f"--components {count} needs more than {count} training examples, and there are {len(codes)}")
        found = sampler.fit(codes, count)
    _keep(run, path, found, vouch)
    return sampler.law(found)


def _keep(run: Run, path: Path, law: dict[str, Tensor], vouch: dict[str, Any]) -> None:
    """Writes a law beside what it is a law of; not into a folder that is read-only."""
    if not os.access(run.folder, os.W_OK):
        return
    content = tensors.save({name: tensor.contiguous() for name, tensor in law.items()})
    with one_process(run.folder):
        path.parent.mkdir(exist_ok=True)
        write(path, content)
        write_json(path.with_suffix(".json"), vouch | {"sha256": hashlib.sha256(content).hexdigest()})


@torch.no_grad()
def _codes(run: Run) -> Tensor:
    """A draw of q(z|x) of each training example, (n, J), in a chart where codes can be added."""
    drawn = list[Tensor]()
    for batch in run.split("train", ROWS).batches():
        draw = Draw(run.model, batch)
        drawn.append(law_of(type(draw.q)).flat(draw.q, draw.first).double().cpu())
    codes = torch.cat(drawn)
    if not torch.isfinite(codes).all():
        raise Problem("some codes of this model are NaN or infinite: no law can be fitted to them")
    return codes


def _digest(run: Run) -> str:
    """Of the weights of the model, whichever checkpoint they came from."""
    whole = hashlib.sha256()
    for name, tensor in sorted(run.model.state_dict().items()):
        whole.update(name.encode() + tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def _read(path: Path, vouch: dict[str, Any], sampler: Sampler, size: int, components: int) -> Any | None:
    """The law that is kept of this run, step and data; None where it is of others, damaged or forged."""
    if not path.exists() or not path.with_suffix(".json").exists():
        return None
    try:
        said, content = read_json(path.with_suffix(".json")), path.read_bytes()
        if said.pop("sha256", "") != hashlib.sha256(content).hexdigest():
            raise Problem("its checksum differs")
        if said != vouch:
            return None
        kept: dict[str, Tensor] = tensors.load(content)
        check_tensors(kept, sampler.like(size, components))
        return sampler.law(kept)
    except (Problem, OSError, SafetensorError) as problem:
        why = str(problem)
    except ValueError:  # of torch, whose words for it are long
        why = "its numbers are of no law"
    warnings.warn(f"{path} is damaged ({why}); it is fitted anew", stacklevel=3)
    return None


def _shaped(*shape: int) -> Tensor:
    """A tensor of double precision without numbers."""
    return torch.empty(shape, dtype=torch.float64, device="meta")


def check_tensors(found: dict[str, Tensor], like: dict[str, Tensor]) -> None:
    """Refuses other names, shapes and types than these, and numbers that are none: a checksum is easily forged."""
    for name in sorted(found.keys() ^ like.keys()):
        raise Problem(f"it {'lacks the' if name in like else 'has an unknown'} tensor '{name[:60]}'")
    for name, tensor in found.items():
        if (tensor.shape, tensor.dtype) != (like[name].shape, like[name].dtype):
            raise Problem(f"its tensor '{name}' has another shape or type")
        if not torch.isfinite(tensor).all():
            raise Problem(f"its tensor '{name}' has values that are NaN or infinite")
