"""The sections of a report that stand beside the paper's Tables 1 to 5.

Each takes all comparisons and returns a `Section`. What is not beside a table
of the paper is in `more_sections`.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence

from swe_tf.report import comparisons as rows_lib
from swe_tf.report import facts as facts_lib
from swe_tf.report import groups as groups_lib
from swe_tf.report import reference
from swe_tf.report import tables

Comparisons = Sequence[groups_lib.Comparison]

_SIZE_COLUMNS = (
  tables.Column("layers", "layers", "d"),
  tables.Column("width", "width", "d"),
)
# What grows with the width, and what is scaled with it.
_WIDTH_LEAVES = (
  "hidden_size",
  "intermediate_size",
  "num_attention_heads",
  "initializer_range",
  "mlm_initializer_range",
)


def main_groups(
  comparison: groups_lib.Comparison,
) -> dict[str, groups_lib.Group]:
  """Returns the methods of a setting, SWE once if it can be.

  Algorithm 1 is represented by full sharing for 10% of the steps, the paper's
  choice, if that was run. Its other units and untie steps have tables of their
  own.
  """
  chosen = [
    name
    for name, group in comparison.groups.items()
    if group.facts.method == facts_lib.SWE
    and group.facts.unit_size == 1
    and reference.is_papers_sharing(group.facts)
  ]
  return {
    name: group
    for name, group in comparison.groups.items()
    if not chosen
    or name in chosen
    or not (
      group.facts.is_fixed_sharing and group.facts.method == facts_lib.SWE
    )
  }


def methods(found: Comparisons) -> tables.Section:
  """Tables 1 and 5: every method of every setting."""
  made = []
  for comparison in found:
    chosen = main_groups(comparison)
    rows = _rows(comparison, chosen)
    ran = {group.facts.method for group in chosen.values()}
    if comparison.runs:
      rows += [
        rows_lib.absent_row(comparison.facts, method, 1)
        for method in reference.METHODS[1:]
        if method not in ran
      ]
    made.append(_table(comparison, rows))
  return tables.Section(
    "methods",
    "Methods (Tables 1 and 5)",
    [
      "A method of the paper that was not run in a setting is a row with the "
      "paper's columns only."
    ],
    "No runs.",
    made,
  )


def widths(found: Comparisons) -> tables.Section:
  """Table 2: settings that are the same but for the width."""
  families: dict[str, list[groups_lib.Comparison]] = {}
  for comparison in found:
    key = repr(
      sorted(
        (name, value)
        for name, value in comparison.facts.setting.items()
        if name.split(".")[-1] not in _WIDTH_LEAVES
      )
    )
    families.setdefault(key, []).append(comparison)
  made = []
  for family in families.values():
    if len({each.facts.width for each in family}) > 1:
      made.append(
        _sizes_table(
          f"{family[0].facts.num_layers} layers, "
          f"{family[0].facts.train_steps:,} steps",
          sorted(family, key=lambda each: each.facts.width),
        )
      )
  where = [
    (model, "wikibooks", steps)
    for steps in (500_000, 1_000_000)
    for model in ("24x768", "large", "24x1536")
  ]
  gains = ", ".join(
    f"{reference.gain_at(each, 'swe', 1, 'MLM'):+.2f}" for each in where
  )
  return tables.Section(
    "widths",
    "Widths (Table 2)",
    [
      "The paper's gains of SWE in MLM accuracy, 24 layers of width 768, 1024 "
      f"and 1536, for 500,000 and then for 1,000,000 steps: {gains}. In the "
      "column of the paper's gain another width has that of BERT-large."
    ],
    "No two settings differ in their width alone.",
    made,
  )


def base(found: Comparisons) -> tables.Section:
  """Table 3: BERT-base."""
  chosen = [
    each
    for each in found
    if (each.facts.num_layers, each.facts.width) == (12, 768)
  ]
  return tables.Section(
    "base",
    "BERT-base (Table 3)",
    [],
    "No runs of 12 layers of width 768.",
    [_sizes_table(each.title, [each]) for each in chosen],
  )


def units(found: Comparisons) -> tables.Section:
  """Table 4: units of several layers, untied at the same step."""
  made = []
  for comparison in found:
    fixed = _fixed_sharing(comparison)
    steps = {
      group.facts.untie_step
      for group in fixed.values()
      if group.facts.unit_size != 1
    }
    chosen = {
      name: group
      for name, group in fixed.items()
      if group.facts.untie_step in steps
    }
    if not chosen:
      continue
    rows = _rows(comparison, _baseline(comparison) | chosen)
    if comparison.facts.num_layers == reference.UNIT_LAYERS:
      ran = {group.facts.unit_size for group in chosen.values()}
      rows += [
        rows_lib.absent_row(comparison.facts, facts_lib.SWE, unit)
        for unit in reference.UNITS
        if unit not in ran
      ]
    made.append(_table(comparison, rows))
  return tables.Section(
    "units",
    "Units (Table 4)",
    [
      "AxB: units of A layers, shared B times. The paper's units are those of "
      "24 layers; for another depth only full sharing has a counterpart."
    ],
    "No runs with units of several layers.",
    made,
  )


def untie_steps(
  found: Comparisons, draw: Callable[..., tables.Figure]
) -> tables.Section:
  """Figure 4: the untie step from 0, the baseline, to the end."""
  made, figures = [], []
  for comparison in found:
    fixed = _fixed_sharing(comparison)
    taus: dict[int, set[int]] = {}
    for group in fixed.values():
      taus.setdefault(group.facts.unit_size, set()).add(group.facts.untie_step)
    chosen = {
      name: group
      for name, group in fixed.items()
      if len(taus[group.facts.unit_size]) > 1
    }
    if chosen:
      chosen = _baseline(comparison) | chosen
      made.append(_table(comparison, _rows(comparison, chosen)))
      if any(group.runs for group in chosen.values()):
        figures.append(
          draw(
            f"untie_step_{len(figures) + 1}", comparison, list(chosen.values())
          )
        )
  return tables.Section(
    "untie_steps",
    "When to untie (Figure 4)",
    [
      "Step 0 is the baseline, the last step is the ALBERT-like run. The "
      "paper's Figure 4 has no printed numbers; its text says that about 10% "
      "is best."
    ],
    "No setting has two untie steps.",
    made,
    figures,
  )


def _fixed_sharing(comparison) -> dict[str, groups_lib.Group]:
  return {
    name: group
    for name, group in comparison.groups.items()
    if group.facts.is_fixed_sharing
  }


def _baseline(comparison) -> dict[str, groups_lib.Group]:
  return {
    name: group
    for name, group in comparison.groups.items()
    if group is comparison.baseline
  }


def _rows(comparison, chosen) -> list[dict[str, tables.Cell]]:
  return [
    rows_lib.row(name, group, comparison) for name, group in chosen.items()
  ]


def _table(comparison, rows) -> tables.Table:
  return tables.Table(
    comparison.title, rows_lib.COLUMNS, rows, entropy_notes(comparison)
  )


def entropy_notes(comparison: groups_lib.Comparison) -> list[str]:
  """States the entropy of single tokens beside losses, if a study has it."""
  return [
    f"Entropy of single tokens: {entropy:.4f} nats. A model that ignores "
    "the context cannot have a lower loss."
    for entropy in comparison.entropies
  ]


def _sizes_table(
  title: str, family: Iterable[groups_lib.Comparison]
) -> tables.Table:
  rows = []
  for comparison in family:
    size = {
      "layers": comparison.facts.num_layers,
      "width": comparison.facts.width,
    }
    rows += [
      size | cells for cells in _rows(comparison, main_groups(comparison))
    ]
  return tables.Table(title, (*_SIZE_COLUMNS, *rows_lib.COLUMNS), rows)
