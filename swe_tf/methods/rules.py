"""The untie rules that a config can choose by `task.sharing.rule`."""

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.methods import config as config_lib
from swe_tf.sharing import schedule
from swe_tf.sharing import untie_step as untie_step_lib


def tau_of(config: config_lib.SharingConfig, train_steps: int) -> int:
  """Returns the tau of `task.sharing`, for a rule that fixes it."""
  return untie_step_lib.resolve_untie_step(
    train_steps,
    untie_step=config.untie_step,
    untie_fraction=config.untie_fraction,
  )


def make_rule(resolved: catalog.Resolved) -> schedule.UntieRule:
  """Returns the rule of a config; raises `UsageError` if it has none."""
  name, known = resolved.sharing.rule, catalog.rules()
  if name not in known:
    raise errors.UsageError(
      f"task.sharing.rule ({name!r}) must be one of {', '.join(known)}; "
      + errors.nearest(name, known, "see docs/methods.md.")
    )
  if resolved.sharing.stages and name != catalog.STAGED:
    raise errors.UsageError(
      f"task.sharing.stages is set, but task.sharing.rule is {name!r}, which "
      f"has none; set it to {catalog.STAGED!r}."
    )
  try:
    return known[name].make(resolved)
  except errors.UsageError as error:
    # Gin appends lines of its own to what a configurable raises.
    raise errors.UsageError(f"{errors.first_line(error)}.") from error


def _make_fixed(resolved: catalog.Resolved) -> schedule.UntieRule:
  return schedule.UntieAtStep(tau_of(resolved.sharing, resolved.train_steps))


def _make_staged(resolved: catalog.Resolved) -> schedule.UntieRule:
  unit_size = resolved.sharing.unit_size
  for _, larger in resolved.stages:
    if larger % unit_size:
      raise errors.UsageError(
        f"task.sharing.stages has units of {larger} layers, which is not a "
        f"multiple of task.sharing.unit_size ({unit_size})."
      )
  return schedule.UntieInStages(
    tau_of(resolved.sharing, resolved.train_steps),
    [(step, larger // unit_size) for step, larger in resolved.stages],
  )


def _make_adaptive(resolved: catalog.Resolved) -> schedule.UntieRule:
  sharing = resolved.sharing
  return schedule.UntieByCorrelation(
    sharing.check_interval, sharing.rho, sharing.patience
  )


for _rule in (
  catalog.Rule(name=catalog.FIXED, make=_make_fixed, fixes_tau=True),
  catalog.Rule(name=catalog.STAGED, make=_make_staged, fixes_tau=True),
  catalog.Rule(name="adaptive", make=_make_adaptive),
):
  catalog.register_rule(_rule)
