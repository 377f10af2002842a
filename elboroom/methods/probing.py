"""Probing: what the codes of a trained run say."""

from __future__ import annotations

from elboroom.build.parts import Parts
from elboroom.build.registry import method
from elboroom.core.method import Group, Method, Player
from elboroom.core.objective import logged
from elboroom.terms.labels import accuracy, label_nll

PURPOSE = "what the codes of a trained run tell of a label"


@method("probe", "-log p(y | mean of q(z|x))", paper="Alain & Bengio 2017", needs_base=True)
def probe(parts: Parts, label: str = "") -> Method:
    """A linear classifier of a label, trained on the codes of another run, which stands frozen under it.

    The other run is named by --base. Codes are the means of its q(z|x); the model is that of the other run with a head.
    Accuracy is told in the log, and of the test split by `elbo eval RUN --metrics accuracy`.

    label: the label that it tells; may be left out where there is only one
    """
    base = parts.require_base()
    head = parts.classifier(label, base.latent)
    model = base.model.with_posterior(base.codes).with_heads(label=head)
    told = label_nll(head, means=True)
    loss = told + logged(accuracy(head, means=True))
    return Method(model, [Player(loss, "head")], head=Group(head)).judged(told)
