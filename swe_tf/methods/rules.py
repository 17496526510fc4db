"""The untie rules that a config can choose by `task.sharing.rule`."""

from swe_tf import errors
from swe_tf.methods import catalog
from swe_tf.sharing import schedule


def _make_fixed(resolved: catalog.Resolved) -> schedule.UntieRule:
  tau = catalog.tau_of(resolved.sharing, resolved.train_steps)
  return schedule.UntieAtStep(tau)


def _make_staged(resolved: catalog.Resolved) -> schedule.UntieRule:
  unit_size = resolved.sharing.unit_size
  for _, larger in resolved.stages:
    if larger % unit_size:
      raise errors.UsageError(
        f"task.sharing.stages has units of {larger} layers, which is not a "
        f"multiple of task.sharing.unit_size ({unit_size})."
      )
  return schedule.UntieInStages(
    catalog.tau_of(resolved.sharing, resolved.train_steps),
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
