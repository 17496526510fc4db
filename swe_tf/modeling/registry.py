"""One interface to all encoders: blocks, size, positions, vocabulary.

Other modules get these here instead of looking into a config themselves. A
family is a kind of encoder that keeps them in its own places. Register a family
of your own, and its experiments can share weights.

Reads configs as nested tables, so that a report can read a `params.yaml`.
Imports no TensorFlow until an encoder is built.
"""

import abc
from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf.modeling import sizes

Params = Mapping[str, Any]

# The parameters of a BERT that determine the shapes of its weights.
SIZES = (
  "num_layers",
  "hidden_size",
  "num_attention_heads",
  "intermediate_size",
  "vocab_size",
  "max_position_embeddings",
  "type_vocab_size",
)


class Family(abc.ABC):
  """A kind of encoder."""

  @abc.abstractmethod
  def find(self, task: Params) -> Params | None:
    """Returns the encoder's parameters in `task`; None for another family."""

  @abc.abstractmethod
  def size(self, params: Params) -> sizes.Size:
    """Returns the size of the encoder."""

  @abc.abstractmethod
  def overrides(self, task: Params, fields: Params) -> Params:
    """Returns the overrides of `task` that set `fields` of the encoder."""

  @abc.abstractmethod
  def blocks(self, model) -> Sequence[Any]:
    """Returns the repeated blocks of a built model, first to last."""

  def config(self, task: Params) -> Any:
    """Returns the encoder's config as Model Garden's tasks take it."""
    raise errors.UsageError(
      f"{type(self).__name__} encoders can be trained, but not built from a "
      "saved config: their family has no `config` method."
    )

  def build(self, task: Params) -> Any:
    """Returns the encoder with its variables."""
    from official.nlp.configs import encoders

    network = encoders.build_encoder(self.config(task))
    network(network.inputs)
    return network

  def num_layers(self, params: Params) -> int | None:
    """Returns the number of blocks, if it is known."""
    return params.get("num_layers")

  def vocab_size(self, params: Params) -> int | None:
    """Returns the number of tokens, for an encoder that has a vocabulary."""
    return params.get("vocab_size")

  def positions(self, params: Params) -> int | None:
    """Returns the longest sequence, for an encoder that has a limit."""
    return params.get("max_position_embeddings")


class ModelGarden(Family):
  """Any encoder at `task.model.encoder`."""

  @staticmethod
  def kind(task: Params) -> str | None:
    """Returns `task.model.encoder.type`, if there is one."""
    return _encoder_table(task).get("type")

  def find(self, task: Params) -> Params | None:
    kind = self.kind(task)
    return None if kind is None else _encoder_table(task).get(kind) or {}

  def size(self, params: Params) -> sizes.Size:
    fields = dataclasses.fields(sizes.Size)
    return sizes.Size(**{field.name: params[field.name] for field in fields})

  def overrides(self, task: Params, fields: Params) -> Params:
    kind = self.kind(task)
    return {"model": {"encoder": {"type": kind, kind: dict(fields)}}}

  def blocks(self, model) -> Sequence[Any]:
    encoder = getattr(model, "encoder_network", model)
    return list(getattr(encoder, "transformer_layers", ()))

  def config(self, task: Params) -> Any:
    raise errors.UsageError(
      f"the encoder has type {self.kind(task)!r}, but only BERT "
      f"({', '.join(Bert.KINDS)}) can be built from a saved config."
    )


def _encoder_table(task: Params) -> Params:
  found: Any = task
  for key in ("model", "encoder"):
    found = found.get(key) if isinstance(found, Mapping) else None
  return found if isinstance(found, Mapping) else {}


class Bert(ModelGarden):
  """BERT: Model Garden's own, and that of `swe_tf.modeling.encoder`."""

  KINDS = ("bert", "bert_v2", "any")

  def find(self, task: Params) -> Params | None:
    return super().find(task) if self.kind(task) in self.KINDS else None

  def vocab_size(self, params: Params) -> int:
    return params.get("vocab_size", 30522)  # Model Garden's default.

  def positions(self, params: Params) -> int:
    return params.get("max_position_embeddings", 512)

  def config(self, task: Params) -> Any:
    from swe_tf.modeling import encoder as encoder_lib

    kind, params = self.kind(task), self.find(task)
    if kind is None or params is None:
      return super().config(task)
    return encoder_lib.make_config(kind, params)

  def build(self, task: Params) -> Any:
    if self.kind(task) == "bert":
      # The second version reads checkpoints of the first.
      task = bert(self.find(task) or {}, "bert_v2").task
    return super().build(task)


_BERT = Bert()
_FAMILIES: list[Family] = [_BERT, ModelGarden()]


def register(family: Family) -> None:
  """Registers a family; it takes precedence over earlier ones."""
  _FAMILIES.insert(0, family)


def unregister(family: Family) -> None:
  """Forgets a family."""
  _FAMILIES.remove(family)


@dataclasses.dataclass(frozen=True)
class Encoder:
  """The encoder of a task.

  Attributes:
    family: The family that it belongs to.
    task: The config of the task, as nested tables.
    params: The encoder's own part of it.
  """

  family: Family
  task: Params
  params: Params

  @property
  def is_bert(self) -> bool:
    """Whether shallow or narrow models can be built from its parts."""
    return isinstance(self.family, Bert)

  @property
  def num_layers(self) -> int | None:
    return self.family.num_layers(self.params)

  @property
  def size(self) -> sizes.Size:
    return self.family.size(self.params)

  @property
  def vocab_size(self) -> int | None:
    return self.family.vocab_size(self.params)

  @property
  def positions(self) -> int | None:
    return self.family.positions(self.params)

  @property
  def config(self) -> Any:
    """The encoder's config as Model Garden's tasks take it."""
    return self.family.config(self.task)

  def overrides(self, **fields) -> Params:
    """Returns the overrides of `task` that set `fields` of the encoder."""
    return self.family.overrides(self.task, fields)

  def build(self) -> Any:
    """Returns the encoder with its variables."""
    return self.family.build(self.task)


def bert(params: Params, kind: str = "any") -> Encoder:
  """Returns a BERT.

  Args:
    params: The fields of its config that differ from the defaults.
    kind: `any` is Pre-LN with the final layer norm, `bert` is Model Garden's.
  """
  encoder = {"type": kind, kind: dict(params)}
  return Encoder(_BERT, {"model": {"encoder": encoder}}, params)


def encoder_of(task: Params) -> Encoder | None:
  """Returns the encoder of a task; None if no family knows it.

  Args:
    task: The config of a task as nested tables: `config.task.as_dict()`, or
      `task` in a `params.yaml`.
  """
  for family in _FAMILIES:
    params = family.find(task)
    if params is not None:
      return Encoder(family, task, params)
  return None


def require_encoder(task: Params) -> Encoder:
  """Returns the encoder of a task; raises `UsageError` if there is none."""
  encoder = encoder_of(task)
  if encoder is None:
    raise errors.UsageError(
      "no family in swe_tf.modeling.registry matches the task's encoder; "
      "register yours there, with --plugins=MODULE."
    )
  return encoder


def blocks_of(model) -> Sequence[Any]:
  """Returns the repeated blocks of a model; empty if no family finds any."""
  return next(filter(None, (f.blocks(model) for f in _FAMILIES)), [])
