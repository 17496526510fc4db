"""Encoders through one interface: blocks, size, positions, vocabulary.

Whoever has to know one of these asks here, and does not look into a config by
itself. A family is a kind of encoder that keeps them in its own places; BERT is
the first. Register another one, and its experiments can share weights.

Reads configs as nested tables, so that a report can read a `params.yaml`.
Imports no TensorFlow.
"""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from typing import Any

from swe_tf.modeling import sizes

Params = Mapping[str, Any]


class Family(abc.ABC):
  """A kind of encoder."""

  @abc.abstractmethod
  def find(self, task: Params) -> Params | None:
    """Returns the encoder's parameters in `task`; None if it is another's."""

  @abc.abstractmethod
  def size(self, params: Params) -> sizes.Size:
    """Returns the size of the encoder."""

  @abc.abstractmethod
  def overrides(self, task: Params, fields: Params) -> Params:
    """Returns what changes parameters of the encoder, below `task`."""

  @abc.abstractmethod
  def blocks(self, model) -> Sequence[Any]:
    """Returns the repeated blocks of a built model, first to last."""

  def vocab_size(self, params: Params) -> int | None:
    """Returns the number of tokens, for an encoder that has a vocabulary."""
    return params.get("vocab_size")

  def positions(self, params: Params) -> int | None:
    """Returns the longest sequence, for an encoder that has a limit."""
    return params.get("max_position_embeddings")


class Bert(Family):
  """BERT, Model Garden's own and that of `swe_tf.modeling.encoder`."""

  def find(self, task: Params) -> Params | None:
    encoder = (task.get("model") or {}).get("encoder") or {}
    params = encoder.get(encoder.get("type"))
    return params if isinstance(params, Mapping) else None

  def size(self, params: Params) -> sizes.Size:
    fields = dataclasses.fields(sizes.Size)
    return sizes.Size(**{field.name: params[field.name] for field in fields})

  def overrides(self, task: Params, fields: Params) -> Params:
    kind = task["model"]["encoder"]["type"]
    return {"model": {"encoder": {kind: dict(fields)}}}

  def blocks(self, model) -> Sequence[Any]:
    encoder = getattr(model, "encoder_network", model)
    return list(getattr(encoder, "transformer_layers", ()))


_FAMILIES: list[Family] = [Bert()]


def register(family: Family) -> None:
  """Makes a family known; it is asked before those that are known so far."""
  _FAMILIES.insert(0, family)


@dataclasses.dataclass(frozen=True)
class Encoder:
  """The encoder of a task.

  Attributes:
    family: What kind it is.
    task: The config of the task, as nested tables.
    params: The encoder's own part of it.
  """

  family: Family
  task: Params
  params: Params

  @property
  def num_layers(self) -> int | None:
    return self.params.get("num_layers")

  @property
  def size(self) -> sizes.Size:
    return self.family.size(self.params)

  @property
  def vocab_size(self) -> int | None:
    return self.family.vocab_size(self.params)

  @property
  def positions(self) -> int | None:
    return self.family.positions(self.params)

  def overrides(self, **fields) -> Params:
    """Returns what changes `fields` of the encoder, below `task`."""
    return self.family.overrides(self.task, fields)


def encoder_of(task: Params) -> Encoder | None:
  """Returns the encoder of a task, None if no family knows it.

  Args:
    task: The config of a task as nested tables: `config.task.as_dict()`, or
      `task` of a `params.yaml`.
  """
  for family in _FAMILIES:
    params = family.find(task)
    if params is not None:
      return Encoder(family, task, params)
  return None


def blocks_of(model) -> Sequence[Any]:
  """Returns the repeated blocks of a model; empty if no family finds any."""
  return next(filter(None, (f.blocks(model) for f in _FAMILIES)), [])
