"""A Stages: what is carried over, what starts anew, and that its state is the whole run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from elboroom.build.parts import Choices, Parts
from elboroom.core.method import Method, Watch, adam, descend
from elboroom.core.objective import Term, logged
from elboroom.core.stages import Stages, model_state
from elboroom.data.dataset import About, DataSet, Reals
from elboroom.terms.evidence import kl, nll
from elboroom.training.batches import Batches
from elboroom.training.checkpoint import check_state
from elboroom.training.loop import Loop
from elboroom.weights.schedules import After, Linear

UNTIL = 3


@pytest.fixture
def data() -> DataSet:
    values = torch.randn(40, 5, generator=torch.Generator().manual_seed(0)).numpy()
    return DataSet(About("v", "vectors", (5,), 40, {}, 0), Reals(values))


def made(seed: int = 0, latent: int = 2) -> Stages:
    torch.manual_seed(seed)
    first = Parts(About("v", "vectors", (5,), 40, {}, 0), Choices(latent=latent))
    then = Parts(About("v", "vectors", (5,), 40, {}, 0), Choices(latent=2))
    stages = Stages(descend(first.vae(), nll() + 0.0 * kl()), descend(then.vae(), nll() + kl()), UNTIL)
    stages.prepare(adam(1e-2))
    return stages


def loop(stages: Stages, data: DataSet) -> Loop:
    return Loop(stages, Batches(data, "train", 8, 0, (), torch.device("cpu")), 0)


def copied(state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in state.items()}


def test_the_encoder_is_carried_over_and_the_decoder_starts_anew(data: DataSet) -> None:
    stages = made()
    initial = copied(stages.then.model.likelihood.state_dict())
    run = loop(stages, data)
    for step in range(UNTIL):
        run.step(step)
    assert stages.model is stages.first.model
    learnt = copied(stages.first.model.posterior.state_dict())
    assert stages.at(UNTIL) is stages.then
    assert stages.model is stages.then.model
    for name, tensor in stages.then.model.posterior.state_dict().items():
        assert torch.equal(tensor, learnt[name])
    for name, tensor in stages.then.model.likelihood.state_dict().items():
        assert torch.equal(tensor, initial[name])
        assert tensor.dim() < 2 or not torch.equal(tensor, stages.first.model.likelihood.state_dict()[name])


def test_it_carries_over_once(data: DataSet) -> None:
    stages = made()
    run = loop(stages, data)
    for step in range(UNTIL + 1):
        run.step(step)
    moved = copied(stages.then.model.posterior.state_dict())
    stages.at(UNTIL + 1)
    assert all(torch.equal(tensor, moved[name]) for name, tensor in stages.then.model.posterior.state_dict().items())


@pytest.mark.parametrize("half", [2, UNTIL, 5])
def test_a_restored_run_goes_on_bit_for_bit(data: DataSet, half: int) -> None:
    whole = made()
    run = loop(whole, data)
    kept = {}
    for step in range(7):
        if step == half:
            kept = copied(whole.state())
        run.step(step)
    again = made(seed=1)
    again.restore(kept)
    run = loop(again, data)
    for step in range(half, 7):
        run.step(step)
    a, b = whole.state(), again.state()
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_checkpoint_tells_the_model_of_its_stage(data: DataSet) -> None:
    stages = made()
    for stage in (stages.first, stages.then):
        told = model_state(copied(stages.state()))
        mine = stage.model.state_dict()
        assert told.keys() == mine.keys()
        assert all(torch.equal(told[name], mine[name]) for name in told)
        stages.at(UNTIL)


def test_what_is_carried_is_of_one_architecture() -> None:
    with pytest.raises(ValueError, match="'posterior', which is of another architecture"):
        made(latent=3)
    about = About("v", "vectors", (5,), 40, {}, 0)
    methods = [descend(Parts(about, Choices(latent=2)).vae(), nll() + kl()) for _ in range(2)]
    with pytest.raises(ValueError, match=r"'heads\.spy', which one of them does not have"):
        Stages(*methods, UNTIL, carry=("heads.spy",))


def unlike(seed: int = 0) -> Stages:
    """First an autoencoder of 3 dimensions with a head on its codes; then a VAE of 2 that keeps the head as it is."""
    torch.manual_seed(seed)
    about = About("v", "vectors", (5,), 40, {}, 0)
    first, then = (
        Parts(about, Choices(net=net)).vae(blocks={"all": size}) for net, size in (("auto", 3), ("mlp-300", 2))
    )
    heads = [torch.nn.Linear(5, 1) for _ in range(2)]
    for model, head in zip((first, then), heads, strict=True):
        model.with_heads(spy=head)
    heads[1].requires_grad_(False)
    spied = Term("spied", lambda draw: draw.model.heads["spy"](draw.batch.x).square().squeeze(-1))
    stages = Stages(
        descend(first, nll() + spied), descend(then, nll() + kl() + logged(spied)), UNTIL, carry=("heads.spy",)
    )
    stages.prepare(adam(1e-2))
    return stages


@pytest.mark.parametrize("half", [UNTIL - 1, UNTIL, UNTIL + 1])
def test_stages_of_different_models_carry_heads_and_go_on_bit_for_bit(data: DataSet, half: int) -> None:
    whole, kept = unlike(), dict[str, Tensor]()
    run = loop(whole, data)
    for step in range(7):
        if step == half:
            kept = copied(whole.state())
        run.step(step)
    spy = whole.first.model.heads["spy"].state_dict()
    assert all(torch.equal(tensor, spy[name]) for name, tensor in whole.then.model.heads["spy"].state_dict().items())
    again = unlike(seed=1)
    check_state(again, kept)
    again.restore(kept)
    assert again.model is (again.then if half > UNTIL else again.first).model
    run = loop(again, data)
    for step in range(half, 7):
        run.step(step)
    a, b = whole.state(), again.state()
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_schedule_begins_later() -> None:
    later = After(10, Linear(0.5, 1, 4))
    assert [later.now(step) for step in (0, 10, 12, 14, 20)] == [0.5, 0.5, 0.75, 1.0, 1.0]
    assert "from step 10" in later.extra_repr()


class Over(Watch):
    """Ends its stage after step 2."""

    def __init__(self) -> None:
        super().__init__()
        self.every = 1
        self.register_buffer("at", torch.tensor(0))

    def look(self, method: Method, step: int) -> bool:
        if step == 2:
            self.at.fill_(step)
        return step == 2

    @property
    def over(self) -> int:
        return int(self.at)


def watched(seed: int = 0) -> Stages:
    torch.manual_seed(seed)
    about = About("v", "vectors", (5,), 40, {}, 0)
    first, then = (Parts(about, Choices(latent=2)).vae() for _ in range(2))
    early = descend(first, nll() + 0.0 * kl())
    early.watch(Over())
    stages = Stages(early, descend(then, nll() + After(5, Linear(0, 1, 2)) * kl()), 5)
    stages.prepare(adam(1e-2))
    return stages


def steps(stages: Stages, data: DataSet, start: int, end: int) -> list[float]:
    """Steps with their watches, as a run takes them: the weights of the KL that were logged."""
    run, seen = loop(stages, data), []
    for step in range(start, end):
        seen.append(float(run.step(step).get("kl.weight", 0)))  # in the first stage it has none
        assert not stages.ended([watch.look(stages.at(step), step + 1) for watch in stages.watches], step + 1)
    return seen


def test_a_watch_of_the_first_stage_ends_that_alone_and_the_second_begins_its_schedule(data: DataSet) -> None:
    assert steps(watched(), data, 0, 6) == [0, 0, 0, 0.5, 1, 1]


@pytest.mark.parametrize("half", [1, 2, 4])
def test_a_stage_that_ended_early_is_restored_bit_for_bit(data: DataSet, half: int) -> None:
    whole = watched()
    steps(whole, data, 0, half)
    kept = copied(whole.state())
    steps(whole, data, half, 6)
    again = watched(seed=1)
    check_state(again, kept)
    again.restore(kept)
    steps(again, data, half, 6)
    assert all(torch.equal(a, b) for a, b in zip(whole.state().values(), again.state().values(), strict=True))
