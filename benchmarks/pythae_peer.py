"""pythae's BetaVAE with the burgess nets as plain layers, trained by its own trainer, one epoch per line of input.

Runs in the environment of the peers, hence imports nothing of the project.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pythae.data.datasets import BaseDataset
from pythae.models import BetaVAE, BetaVAEConfig
from pythae.models.base.base_utils import ModelOutput
from pythae.models.nn import BaseDecoder, BaseEncoder
from pythae.trainers import BaseTrainer, BaseTrainerConfig
from pythae.trainers.training_callbacks import TrainingCallback
from torch import Tensor, nn

LATENT, BATCH, BETA, RATE = 10, 64, 4.0, 1e-4


class Encoder(BaseEncoder):  # type: ignore[misc]
    """conv 32@4x4/2 x4, FC 256, 256, 2J."""

    def __init__(self) -> None:
        super().__init__()
        convolutions: list[nn.Module] = []
        for channels in (1, 32, 32, 32):
            convolutions += [nn.Conv2d(channels, 32, 4, 2, 1), nn.ReLU()]
        dense = [nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 2 * LATENT)]
        self.layers = nn.Sequential(*convolutions, nn.Flatten(), *dense)

    def forward(self, x: Tensor) -> Any:
        mean, logvar = self.layers(x).chunk(2, 1)
        return ModelOutput(embedding=mean, log_covariance=logvar)


class Decoder(BaseDecoder):  # type: ignore[misc]
    """FC 256, 256, 512, deconv 32@4x4/2 x3, 1; probabilities, as pythae wants them."""

    def __init__(self) -> None:
        super().__init__()
        dense = [nn.Linear(LATENT, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 512), nn.ReLU()]
        convolutions: list[nn.Module] = []
        for channels in (32, 32, 32):
            convolutions += [nn.ConvTranspose2d(32, channels, 4, 2, 1), nn.ReLU()]
        convolutions += [nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid()]
        self.layers = nn.Sequential(*dense, nn.Unflatten(1, (32, 4, 4)), *convolutions)

    def forward(self, z: Tensor) -> Any:
        return ModelOutput(reconstruction=self.layers(z))


class Turns(TrainingCallback):  # type: ignore[misc]
    """Waits for a line before every epoch and prints the seconds of the epoch after it."""

    def __init__(self, out: Any) -> None:
        self.out = out
        self.start = 0.0

    def on_epoch_begin(self, training_config: Any, **kwargs: Any) -> None:
        sys.stdin.readline()
        self.start = time.perf_counter()

    def on_epoch_end(self, training_config: Any, **kwargs: Any) -> None:
        print(json.dumps({"seconds": time.perf_counter() - self.start}), file=self.out, flush=True)


def main(folder: Path) -> None:
    """Trains on images.npy of the folder, for as long as there are lines."""
    out, sys.stdout = sys.stdout, sys.stderr  # pythae prints
    images = torch.from_numpy(np.load(folder / "images.npy")).float()  # (N, 1, 64, 64)
    model = BetaVAE(
        BetaVAEConfig(input_dim=(1, 64, 64), latent_dim=LATENT, reconstruction_loss="bce", beta=BETA),
        encoder=Encoder(),
        decoder=Decoder(),
    )
    config = BaseTrainerConfig(
        output_dir=str(folder / "run"), num_epochs=1000, per_device_train_batch_size=BATCH, learning_rate=RATE
    )
    data = BaseDataset(images, torch.zeros(len(images)))
    BaseTrainer(model, train_dataset=data, training_config=config, callbacks=[Turns(out)]).train()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
