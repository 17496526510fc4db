"""What one replica traces, the lowered programs, and the cost model."""

import collections
import math

import pytest
import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.python.distribute import tpu_strategy
from tensorflow.python.distribute import tpu_values

from swe_tf.configs import cost as cost_lib
from swe_tf.doctor.tpu import one_replica
from swe_tf.doctor.tpu import programs as programs_lib
from swe_tf.doctor.tpu import step_kinds
from swe_tf.methods import plans
from tests import tiny
from tests.studies.finetune import samples

# What `tpu.replicate` puts around a program (Max is of shapes of inputs, which
# it would pad), and inputs of either all-reduce.
_PLUMBING = {
  *("Const", "Identity", "Max", "NoOp", "Pack", "XlaReplicaId"),
  *("TPUCompilationResult", "TPUReplicateMetadata"),
  *("TPUReplicatedInput", "TPUReplicatedOutput"),
}


def _operations(config) -> collections.Counter:
  """Returns the operations that 4 replicas trace, in functions too."""
  strategy = one_replica.OneReplicaOfTPUStrategy(4)
  with strategy.scope():
    step = step_kinds.build_step(step_kinds.SHARED, config)

    @tf.function(autograph=False)
    def run(inputs):
      return strategy.run(step.run, args=(inputs,))

    program = run.get_concrete_function(step_kinds.make_inputs(config, 2))
  graph = program.graph.as_graph_def()
  nodes = [
    *graph.node,
    *(n for f in graph.library.function for n in f.node_def),
  ]
  return collections.Counter(n.op for n in nodes if n.op not in _PLUMBING)


@pytest.mark.parametrize("count", [1, 2])
def test_the_operations_are_those_of_tpu_strategy(count, monkeypatch):
  cut = {"task": {"micro_batches": count}}
  config = tiny.config_of(tiny.overrides("unused"), cut)
  # Keras computes the rates of an update once for each name of a device, and
  # variables on TPUs have two names while they are traced.
  monkeypatch.setattr(tpu_values.TPUVariableMixin, "device", "")
  traced = _operations(config)
  for name in ("tpu_run", "_reduce_to"):
    stock = getattr(tpu_strategy.TPUExtended, name)
    monkeypatch.setattr(one_replica._Extended, name, stock)
  expected = _operations(config)
  assert expected["CrossReplicaSum"] > 0
  expected["CollectiveReduceV2"] = expected.pop("CrossReplicaSum")
  assert traced == expected


_REPLICAS = 4
# Keras has a TPU sum up each metric's total and count: that of the loss and the
# accuracy of a step.
_METRICS = 4 * 4


def _deep(*layers):
  deep = {"task": tiny.encoder(num_layers=4)}
  return tiny.config_of(tiny.overrides("unused"), deep, *layers)


def _lower(config):
  return {
    kind.name: programs_lib.lower(kind.name, config, _REPLICAS)
    for kind in step_kinds.kinds(config)
  }


@pytest.fixture(scope="module")
def programs():
  return _lower(_deep())


def _instructions(program):
  module = hlo_pb2.HloModuleProto.FromString(program)
  return [
    instruction
    for computation in module.computations
    for instruction in computation.instructions
  ]


def _all_reduce_bytes(program):
  """Returns the payload of one step; gradients are float32."""
  shapes = [
    shape
    for each in _instructions(program)
    if each.opcode == "all-reduce"
    for shape in each.shape.tuple_shapes or [each.shape]
  ]
  return sum(4 * math.prod(shape.dimensions) for shape in shapes)


def _count(program, opcode):
  return sum(each.opcode == opcode for each in _instructions(program))


def test_the_unshared_program_is_the_stock_program(programs):
  assert programs["unshared"] == programs["stock"]
  assert programs["shared"] != programs["stock"]


def _check_static(programs):
  host = {"infeed", "outfeed", "send", "recv", "custom-call"}
  for program in programs.values():
    for instruction in _instructions(program):
      assert not any(instruction.shape.is_dynamic_dimension)
      assert instruction.opcode not in host


def test_no_program_has_a_dynamic_shape_or_talks_to_the_host(programs):
  assert list(programs) == ["stock", "shared", "unshared", "evaluation"]
  _check_static(programs)
  # The sums of the loss and the accuracy, and no gradients.
  assert _all_reduce_bytes(programs["evaluation"]) == _METRICS


_GROWN = {"sharing": {"mode": "none", "untie_step": None}}
_SLOW = pytest.mark.slow
_HALF = {"hidden_size": 4, "num_attention_heads": 1, "intermediate_size": 8}


@pytest.mark.parametrize(
  "task, small",
  [
    ({"sharing": {"recipe": "few_loops", "untie_step": None}}, None),
    *(
      pytest.param(_GROWN | {"growth": {"method": m}}, small, marks=_SLOW)
      for m, small in (("net2net", _HALF), ("stacking", {"num_layers": 1}))
    ),
  ],
  ids=["few_loops", "net2net", "stacking"],
)
def test_each_phase_is_a_program_of_its_own(task, small):
  config = _deep({"task": task})
  programs = _lower(config)
  _check_static(programs)
  stock, first, *_, last, _ = programs
  assert programs[last] == programs[stock]
  if small:
    shrunk = _deep({"task": tiny.encoder(**small)})
    assert programs[first] == programs_lib.lower("stock", shrunk, _REPLICAS)
  layers = [kind.layers for kind in step_kinds.kinds(config)]
  products = [_count(program, "dot") for program in programs.values()]
  assert (products[1] < products[0]) == (layers[1] < layers[0])
  for name, phase in cost_lib.estimate(config).phases.items():
    reduced = phase.all_reduce_bytes + _METRICS
    assert _all_reduce_bytes(programs[name]) == reduced


@pytest.mark.parametrize("name", ["SST-2", "STS-B", "squad_v1.1"])
def test_fine_tuning_and_its_evaluation(name, tmp_path):
  data_dir = samples.write_data(name, tmp_path, count=8, max_seq_length=64)
  is_squad = name.startswith("squad")
  config = tiny.config_of(
    {"task": {"data_dir": data_dir} | tiny.encoder(**samples.SMALL)},
    experiment="swe/squad" if is_squad else "swe/glue",
  )
  programs = _lower(config)
  assert list(programs) == ["fine-tuning", "evaluation"]
  _check_static(programs)
  model = step_kinds.build_step("fine-tuning", config).model
  trained, evaluated = map(_all_reduce_bytes, programs.values())
  # All but the pooler, whose place the head's takes.
  assert 0.99 < (trained - evaluated) / (4 * model.count_params()) < 1
  assert evaluated < 4 * 1000, "metrics only"


def test_payloads_are_those_of_the_cost_model(programs):
  alone = cost_lib.estimate(_deep({"task": {"sharing": {"mode": "none"}}}))
  assert list(alone.phases) == ["unshared"] and alone.shared_fraction == 0.0
  cost = cost_lib.estimate(_deep())
  for phase in ("shared", "unshared"):
    reduced = cost.phases[phase].all_reduce_bytes + _METRICS
    assert _all_reduce_bytes(programs[phase]) == reduced
  counts = {kind: _count(each, "all-reduce") for kind, each in programs.items()}
  assert counts["stock"] > counts["shared"] > 0


def test_micro_batches_are_reduced_once_per_step_and_unshared_is_stock():
  config = _deep({"task": {"micro_batches": 2}})
  cut = _lower(config)
  assert cut["unshared"] == cut["stock"]
  for kind, phase in cost_lib.estimate(config).phases.items():
    # Once a step, not once a micro-batch.
    reduced = _all_reduce_bytes(cut[kind])
    assert reduced == phase.all_reduce_bytes + _METRICS


@pytest.mark.parametrize("units", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_micro_batches_add_up_no_more_than_what_is_reduced(units):
  task = {"micro_batches": 2, "sharing": {"unit_size": units}}
  config = _deep({"task": task})
  inputs = step_kinds.make_inputs(config)
  weights = inputs["masked_lm_weights"]
  for kind, phase in cost_lib.estimate(config).phases.items():
    step = step_kinds.build_step(kind, config)
    program = tf.function(step.run).get_concrete_function(inputs)
    (loop,) = (
      op for op in program.graph.get_operations() if op.type.endswith("While")
    )
    carried = [x for x in loop.inputs if x.dtype == tf.float32]
    # Beside the gradients: the loss, and twice the weights of predictions.
    gradients = sum(x.shape.num_elements() for x in carried) - 1
    gradients -= 2 * weights.shape.num_elements()
    assert 4 * gradients == phase.all_reduce_bytes


_UNITS = {"adamw": 2, "lamb": 1, "sgd_experimental": 1, "adamw_experimental": 2}


@pytest.mark.parametrize(
  "optimizer, units",
  [
    pytest.param(*each, marks=[pytest.mark.slow] * (each[0] != "lamb"))
    for each in _UNITS.items()
  ],
)
def test_memory_is_that_of_real_variables(optimizer, units):
  how = {"optimizer_config": {"optimizer": {"type": optimizer}}}
  task = {"sharing": {"unit_size": units}}
  config = _deep({"task": task, "trainer": how})
  cost = cost_lib.estimate(config)
  for kind, phase in cost.phases.items():
    step = step_kinds.build_step(kind, config)
    tf.function(step.run)(step_kinds.make_inputs(config))
    weights = step.model.trainable_variables
    assert phase.weight_bytes == 4 * sum(map(tf.size, weights))
    keys = {w.ref() for w in weights}
    assert phase.optimizer_bytes == 4 * sum(
      tf.size(v)
      for v in step.optimizer.variables
      if v.shape.rank and v.dtype.is_floating and v.ref() not in keys
    )
  assert cost.parameters == step.model.count_params()
  assert cost.distinct_parameters == step.model.count_params() - sum(
    tf.size(v)
    for _, *branches in plans.plan_of(step.model, config.task.sharing).ties
    for v in branches
  )


def test_flops_are_those_that_xla_counts():
  """Matrix products dominate at this width; what else there is, XLA adds."""
  wide = tiny.encoder(hidden_size=128, intermediate_size=512)
  config = _deep({"task": wide})
  step = tf.function(step_kinds.build_step("stock", config).run)
  program = step.get_concrete_function(step_kinds.make_inputs(config))
  counted = sum(_matmul_flops(op) for op in program.graph.get_operations())
  flops = cost_lib.estimate(config).flops_per_step
  assert flops == pytest.approx(counted, rel=0.02)


def _matmul_flops(op) -> int:
  """Returns the FLOPs of a matrix product, 0 of any other op."""
  if op.type == "MatMul":
    rows = op.inputs[0].shape
    inner = rows[0] if op.get_attr("transpose_a") else rows[1]
    return 2 * op.outputs[0].shape.num_elements() * inner
  if op.type == "Einsum":
    inputs, _ = op.get_attr("equation").decode().split("->")
    sizes = {}
    for labels, tensor in zip(inputs.split(","), op.inputs):
      sizes.update(zip(labels, tensor.shape))
    return 2 * math.prod(sizes.values()) if len(op.inputs) == 2 else 0
  if op.type in ("BatchMatMulV2", "BatchMatMul"):
    inner = op.inputs[0].shape[-2 if op.get_attr("adj_x") else -1]
    return 2 * op.outputs[0].shape.num_elements() * inner
  return 0
