"""The sections of a report that match the paper's Tables 1-5 and Figures 3-4.

Each function takes all comparisons and returns a `Section`. Sections without a
counterpart in the paper are in `run_sections`.
"""

from collections.abc import Iterable, Mapping, Sequence

from swe_tf.analysis import comparisons
from swe_tf.analysis import figures as figures_lib
from swe_tf.analysis import found_runs
from swe_tf.analysis import groups as groups_lib
from swe_tf.analysis import reference
from swe_tf.analysis import rows as rows_lib
from swe_tf.analysis import tables
from swe_tf.methods import catalog
from swe_tf.sharing import untie_step as untie_step_lib

Comparisons = Sequence[comparisons.Comparison]

_SIZE_COLUMNS = (
  tables.Column("layers", "layers", "d"),
  tables.Column("width", "width", "d"),
)
# The parameters that grow with the width, or are scaled with it.
_WIDTH_LEAVES = (
  "hidden_size",
  "intermediate_size",
  "num_attention_heads",
  "initializer_range",
  "mlm_initializer_range",
)


def methods(found: Comparisons) -> tables.Section:
  """Tables 1 and 5: every method of every setting."""
  made = []
  for comparison in found:
    chosen = comparison.main_groups
    ran = {group.config.method for group in chosen.values()}
    absent = [
      rows_lib.absent_row(comparison.config, method, 1)
      for method in reference.METHODS
      if comparison.runs and method not in {*ran, catalog.BASELINE}
    ]
    made.append(_table(comparison, chosen, absent))
  return tables.Section(
    "methods",
    "Methods (Tables 1 and 5)",
    [
      "If one of the paper's methods was not run in a setting, its row has "
      "only the paper's columns."
    ],
    "No runs.",
    made,
  )


def widths(found: Comparisons) -> tables.Section:
  """Table 2: settings that differ only in the width."""
  families: dict[str, list[comparisons.Comparison]] = {}
  for comparison in found:
    key = [
      (name, value)
      for name, value in comparison.config.setting.items()
      if name.split(".")[-1] not in _WIDTH_LEAVES
    ]
    families.setdefault(repr(key), []).append(comparison)
  made = []
  for family in families.values():
    config = family[0].config
    if len({each.config.width for each in family}) > 1:
      made.append(
        _sizes_table(
          f"{config.num_layers} layers, {config.train_steps:,} steps",
          sorted(family, key=lambda each: each.config.width or 0),
        )
      )
  gains = [
    reference.gain_at(
      (model, "wikibooks", steps), catalog.SWE, 1, found_runs.ACCURACY
    )
    for steps in (500_000, 1_000_000)
    for model in ("24x768", "large", "24x1536")
  ]
  return tables.Section(
    "widths",
    "Widths (Table 2)",
    [
      "The paper's gains of SWE in MLM accuracy, 24 layers of width 768, 1024 "
      "and 1536, for 500,000 and then for 1,000,000 steps: "
      f"{', '.join(f'{gain:+.2f}' for gain in gains)}. For other widths, the "
      "column of the paper's gain shows that of BERT-large."
    ],
    "No two settings differ only in their width.",
    made,
  )


def base(found: Comparisons) -> tables.Section:
  """Table 3: BERT-base."""
  return tables.Section(
    "base",
    "BERT-base (Table 3)",
    [],
    "No runs with 12 layers of width 768.",
    [
      _sizes_table(each.title, [each])
      for each in found
      if (each.config.num_layers, each.config.width) == (12, 768)
    ],
  )


def units(found: Comparisons) -> tables.Section:
  """Table 4: units of several layers, untied at the same step."""
  made = []
  for comparison in found:
    taus = {
      group.config.untie_step
      for group in _fixed_sharing(comparison).values()
      if group.config.unit_size != 1
    }
    chosen = comparison.select(
      lambda config: config.is_fixed_sharing and config.untie_step in taus
    )
    ran = {group.config.unit_size for group in chosen.values()}
    absent = [
      rows_lib.absent_row(comparison.config, catalog.SWE, unit)
      for unit in reference.UNITS
      if comparison.config.num_layers == reference.UNIT_LAYERS
      and unit not in ran
    ]
    if chosen:
      made.append(_table(comparison, comparison.baselines | chosen, absent))
  return tables.Section(
    "units",
    "Units (Table 4)",
    [
      "AxB: units of A layers, shared B times. The paper's units are for 24 "
      "layers; at another depth only full sharing has a counterpart."
    ],
    "No runs with units of several layers.",
    made,
  )


def losses(found: Comparisons) -> tables.Section:
  """Figure 3: the loss curves of each setting."""
  figures: list[tables.Figure] = []
  for comparison in found:
    chosen = {
      name: group
      for name, group in comparison.main_groups.items()
      if group.runs
    }
    if chosen:
      name = f"loss_{len(figures) + 1}"
      figures.append(figures_lib.draw_losses(name, comparison, chosen))
  return tables.Section(
    "losses", "Loss curves (Figure 3)", [], "No finished runs.", (), figures
  )


def untie_steps(found: Comparisons) -> tables.Section:
  """Figure 4: untie steps from 0, the baseline, to the last step."""
  made: list[tables.Table] = []
  figures: list[tables.Figure] = []
  for comparison in found:
    fixed = _fixed_sharing(comparison)
    taus: dict[int | None, set[int | None]] = {}
    for group in fixed.values():
      config = group.config
      taus.setdefault(config.unit_size, set()).add(config.untie_step)
    chosen = {
      name: group
      for name, group in fixed.items()
      if len(taus[group.config.unit_size]) > 1
    }
    if chosen:
      chosen = comparison.baselines | chosen
      made.append(_table(comparison, chosen))
      if any(group.runs for group in chosen.values()):
        figures.append(
          figures_lib.draw_untie_steps(
            f"untie_step_{len(figures) + 1}", comparison, chosen.values()
          )
        )
  return tables.Section(
    "untie_steps",
    "When to untie (Figure 4)",
    [
      "Step 0 is the baseline, the last step is the ALBERT-like run. The "
      "paper's Figure 4 has no printed numbers; its text says that about "
      f"{untie_step_lib.PAPERS_FRACTION:.0%} is best."
    ],
    "No setting was run with two untie steps.",
    made,
    figures,
  )


def _fixed_sharing(
  comparison: comparisons.Comparison,
) -> dict[str, groups_lib.Group]:
  return comparison.select(lambda config: config.is_fixed_sharing)


def _rows(
  comparison: comparisons.Comparison, chosen: Mapping[str, groups_lib.Group]
) -> list[tables.Row]:
  return [
    rows_lib.row(name, group, comparison) for name, group in chosen.items()
  ]


def _table(
  comparison: comparisons.Comparison,
  chosen: Mapping[str, groups_lib.Group],
  absent: Iterable[tables.Row] = (),
) -> tables.Table:
  notes = [
    f"Entropy of single tokens: {entropy:.4f} nats. A model that ignores "
    "the context cannot have a lower loss."
    for entropy in comparison.entropies
  ]
  rows = [*_rows(comparison, chosen), *absent]
  return tables.Table(comparison.title, rows_lib.COLUMNS, rows, notes)


def _sizes_table(
  title: str, family: Iterable[comparisons.Comparison]
) -> tables.Table:
  rows = [
    {"layers": each.config.num_layers, "width": each.config.width} | cells
    for each in family
    for cells in _rows(each, each.main_groups)
  ]
  return tables.Table(title, (*_SIZE_COLUMNS, *rows_lib.COLUMNS), rows)
