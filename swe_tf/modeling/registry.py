"""One interface to all encoders: blocks, size, positions, vocabulary.

Other modules get these here instead of looking into a config themselves. Reads
configs as nested tables, so that a report can read a `params.yaml`. Imports no
TensorFlow until an encoder is built.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any

from swe_tf import errors
from swe_tf.modeling import sizes

Params = Mapping[str, Any]

# The kinds of BERT: Model Garden's own two, and `swe_tf.modeling.encoder`.
_BERT = ("bert", "bert_v2", "any")
# The parameters of a BERT that determine the shapes of its weights.
SIZES = (
  *(field.name for field in dataclasses.fields(sizes.Size)),
  "vocab_size",
  "max_position_embeddings",
  "type_vocab_size",
)


@dataclasses.dataclass(frozen=True)
class Encoder:
  """The encoder at `task.model.encoder`."""

  task: Params  # The config of the task, as nested tables.
  kind: str  # `task.model.encoder.type`.
  params: Params  # The encoder's own part of the config.

  @property
  def is_bert(self) -> bool:
    """Whether shallow and narrow models can be built from its parts."""
    return self.kind in _BERT

  @property
  def size(self) -> sizes.Size:
    names = [field.name for field in dataclasses.fields(sizes.Size)]
    if not set(names) <= self.params.keys():
      raise errors.UsageError(
        f"the encoder is {self.kind!r}, whose size and cost are not counted."
      )
    return sizes.Size(**{name: self.params[name] for name in names})

  @property
  def num_layers(self) -> int | None:
    """The number of blocks, if it is known."""
    return self._get("num_layers", "num_blocks")

  @property
  def vocab_size(self) -> int | None:
    """The number of tokens, for an encoder that has a vocabulary."""
    # The defaults of BERT are Model Garden's.
    return self._get("vocab_size", "word_vocab_size", 30522)

  @property
  def positions(self) -> int | None:
    """The longest sequence, for an encoder that has a limit."""
    return self._get("max_position_embeddings", "max_sequence_length", 512)

  def _get(self, name: str, other: str, of_bert: int | None = None) -> Any:
    """Returns a parameter that not all encoders call alike."""
    default = of_bert if self.is_bert else None
    return self.params.get(name, self.params.get(other, default))

  @property
  def has_one_length(self) -> bool:
    """Whether all sequences must have as many tokens as there are positions."""
    mixes = self.kind in ("fnet", "sparse_mixer")
    return self.kind == "bigbird" or mixes and not self.params.get("use_fft")

  def check_can_share(self, unit_size: int) -> None:
    """Raises if the blocks of the encoder cannot share weights as they are.

    The table in docs/encoders.md. Encoders from outside are not known here:
    `SharingPlan` compares the blocks themselves.
    """
    get, why = self.params.get, ""
    if self.kind == "albert":
      why = "has one block, which all layers have in common: nothing to untie"
    elif self.kind == "xlnet":
      why = "has no list of blocks, and no masked LM in Model Garden"
    elif self.kind == "query_bert" and not get("embedding_size"):
      why = "cannot be built without embedding_size; set it"
    elif self.kind == "reuse" and get("reuse_attention"):
      why = "has blocks without attention of their own; set reuse_attention=0"
    elif self.kind == "funnel" and get("pool_stride") != 1:
      data = self.task.get("train_data") or {}
      if "max_predictions_per_seq" in data:
        why = "has no place for predictions once it has pooled the sequence; "
        why += "set pool_stride=1"
    for name in ("attention_layers", "moe_layers"):
      special = set(get(name) or ())
      units = {i % unit_size for i in special}
      layers = range(self.num_layers or 0)
      if special != {i for i in layers if i % unit_size in units}:
        why = f"has blocks that are not alike; set {name}=[], or to all layers"
    if why:
      raise errors.UsageError(f"the encoder {self.kind!r} {why}.")

  def overrides(self, **fields) -> Params:
    """Returns the overrides of `task` that set `fields` of the encoder."""
    return {"model": {"encoder": {"type": self.kind, self.kind: fields}}}

  @property
  def config(self) -> Any:
    """The encoder's config as Model Garden's tasks take it."""
    from official.nlp.configs import encoders
    from swe_tf.modeling import encoder as encoder_lib

    if not self.is_bert:
      raise errors.UsageError(
        f"the encoder is {self.kind!r}, but only BERT ({', '.join(_BERT)}) can "
        "be built from a saved config."
      )
    params = dict(self.params)
    if self.kind == "any":
      own = encoder_lib.EncoderConfig(**params)
      return encoders.EncoderConfig(type=self.kind, any=own)
    return encoders.EncoderConfig({"type": self.kind, self.kind: params})

  def build(self) -> Any:
    """Returns the encoder with its variables."""
    from official.nlp.configs import encoders

    if self.kind == "bert":
      # The second version reads checkpoints of the first.
      return bert(self.params, "bert_v2").build()
    network = encoders.build_encoder(self.config)
    network(network.inputs)
    return network


def bert(params: Params, kind: str = "any") -> Encoder:
  """Returns a BERT with these parameters.

  The kind `any` is Pre-LN with the final layer norm, `bert` is Model Garden's.
  """
  encoder = {"type": kind, kind: dict(params)}
  return Encoder({"model": {"encoder": encoder}}, kind, params)


def encoder_of(task: Params) -> Encoder | None:
  """Returns the encoder of a task; None if it has none at `model.encoder`.

  The task is a config as nested tables: `config.task.as_dict()`, or `task` in a
  `params.yaml`.
  """
  model = task.get("model")
  table = model.get("encoder") if isinstance(model, Mapping) else None
  if not isinstance(table, Mapping) or table.get("type") is None:
    return None
  return Encoder(task, table["type"], table.get(table["type"]) or {})


def require_encoder(task: Params) -> Encoder:
  """Returns the encoder of a task; raises `UsageError` if there is none."""
  encoder = encoder_of(task)
  if encoder is None:
    raise errors.UsageError(
      "the task has no model.encoder with a type, so its size is not known."
    )
  return encoder


def blocks_of(model) -> Sequence[Any]:
  """Returns the repeated blocks of a model, first to last; maybe none."""
  encoder = getattr(model, "encoder_network", model)
  # Model Garden's `EncoderScaffold` has the second name.
  other = getattr(encoder, "hidden_layers", ())
  return list(getattr(encoder, "transformer_layers", other))
