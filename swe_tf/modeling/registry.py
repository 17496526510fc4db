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
from typing import Any, ClassVar

from swe_tf import errors
from swe_tf.modeling import sizes

Params = Mapping[str, Any]

# The parameters of a BERT that determine the shapes of its weights.
SIZES = (
  *(field.name for field in dataclasses.fields(sizes.Size)),
  "vocab_size",
  "max_position_embeddings",
  "type_vocab_size",
)


@dataclasses.dataclass(frozen=True)
class Encoder(abc.ABC):
  """The encoder of a task. A subclass of it is a family.

  Attributes:
    task: The config of the task, as nested tables.
    params: The encoder's own part of it.
    is_bert: Whether shallow and narrow models can be built from its parts.
  """

  task: Params
  params: Params
  is_bert: ClassVar[bool] = False

  @staticmethod
  @abc.abstractmethod
  def find(task: Params) -> Params | None:
    """Returns the encoder's parameters in `task`; None for another family."""

  @staticmethod
  @abc.abstractmethod
  def blocks(model) -> Sequence[Any]:
    """Returns the repeated blocks of a built model, first to last."""

  @property
  @abc.abstractmethod
  def size(self) -> sizes.Size:
    """The size of the encoder."""

  @abc.abstractmethod
  def overrides(self, **fields) -> Params:
    """Returns the overrides of `task` that set `fields` of the encoder."""

  @property
  def num_layers(self) -> int | None:
    """The number of blocks, if it is known."""
    return self.params.get("num_layers")

  @property
  def vocab_size(self) -> int | None:
    """The number of tokens, for an encoder that has a vocabulary."""
    return self.params.get("vocab_size")

  @property
  def positions(self) -> int | None:
    """The longest sequence, for an encoder that has a limit."""
    return self.params.get("max_position_embeddings")

  @property
  def config(self) -> Any:
    """The encoder's config as Model Garden's tasks take it."""
    kind = getattr(self, "kind", type(self).__name__)
    raise errors.UsageError(
      f"the encoder is {kind!r}, but only BERT ({', '.join(Bert.KINDS)}) can "
      "be built from a saved config."
    )

  def build(self) -> Any:
    """Returns the encoder with its variables."""
    from official.nlp.configs import encoders

    network = encoders.build_encoder(self.config)
    network(network.inputs)
    return network


def _encoder_table(task: Params) -> Params:
  model = task.get("model")
  table = model.get("encoder") if isinstance(model, Mapping) else None
  return table if isinstance(table, Mapping) else {}


class ModelGarden(Encoder):
  """Any encoder at `task.model.encoder`."""

  @staticmethod
  def find(task: Params) -> Params | None:
    table = _encoder_table(task)
    kind = table.get("type")
    return None if kind is None else table.get(kind) or {}

  @staticmethod
  def blocks(model) -> Sequence[Any]:
    encoder = getattr(model, "encoder_network", model)
    return list(getattr(encoder, "transformer_layers", ()))

  @property
  def kind(self) -> str:
    """`task.model.encoder.type`."""
    return _encoder_table(self.task)["type"]

  @property
  def size(self) -> sizes.Size:
    fields = dataclasses.fields(sizes.Size)
    return sizes.Size(**{f.name: self.params[f.name] for f in fields})

  def overrides(self, **fields) -> Params:
    return {"model": {"encoder": {"type": self.kind, self.kind: fields}}}


class Bert(ModelGarden):
  """BERT: Model Garden's own, and that of `swe_tf.modeling.encoder`."""

  KINDS = ("bert", "bert_v2", "any")
  is_bert = True

  @staticmethod
  def find(task: Params) -> Params | None:
    is_bert = _encoder_table(task).get("type") in Bert.KINDS
    return ModelGarden.find(task) if is_bert else None

  @property
  def vocab_size(self) -> int:
    return self.params.get("vocab_size", 30522)  # Model Garden's default.

  @property
  def positions(self) -> int:
    return self.params.get("max_position_embeddings", 512)

  @property
  def config(self) -> Any:
    from official.nlp.configs import encoders
    from swe_tf.modeling import encoder as encoder_lib

    params = dict(self.params)
    if self.kind == "any":
      own = encoder_lib.EncoderConfig(**params)
      return encoders.EncoderConfig(type=self.kind, any=own)
    return encoders.EncoderConfig({"type": self.kind, self.kind: params})

  def build(self) -> Any:
    if self.kind == "bert":
      # The second version reads checkpoints of the first.
      return bert(self.params, "bert_v2").build()
    return super().build()


_FAMILIES: list[type[Encoder]] = [Bert, ModelGarden]


def register(family: type[Encoder]) -> None:
  """Registers a family; it takes precedence over earlier ones."""
  _FAMILIES.insert(0, family)


def unregister(family: type[Encoder]) -> None:
  _FAMILIES.remove(family)


def bert(params: Params, kind: str = "any") -> Encoder:
  """Returns a BERT with these parameters.

  The kind `any` is Pre-LN with the final layer norm, `bert` is Model Garden's.
  """
  encoder = {"type": kind, kind: dict(params)}
  return Bert({"model": {"encoder": encoder}}, params)


def encoder_of(task: Params) -> Encoder | None:
  """Returns the encoder of a task; None if no family knows it.

  The task is a config as nested tables: `config.task.as_dict()`, or `task` in a
  `params.yaml`.
  """
  for family in _FAMILIES:
    params = family.find(task)
    if params is not None:
      return family(task, params)
  return None


def require_encoder(task: Params) -> Encoder:
  """Returns the encoder of a task; raises `UsageError` if there is none."""
  encoder = encoder_of(task)
  if encoder is None:
    raise errors.UsageError(
      "no family in swe_tf.modeling.registry matches the task's encoder; "
      "register yours there, in a plug-in."
    )
  return encoder


def blocks_of(model) -> Sequence[Any]:
  """Returns the repeated blocks of a model; empty if no family finds any."""
  return next(filter(None, (f.blocks(model) for f in _FAMILIES)), [])
