"""`swe theory`: what it writes, and its exit status."""

import dataclasses
import json

import pytest

from swe_tf import errors
from swe_tf.commands import theory


def test_a_proved_claim_that_fails_is_an_error(tmp_path, capsys):
  output_dir = tmp_path / "new"
  options = theory.Options(
    experiments=("theorem3",), output_dir=str(output_dir), step_scale=2.0
  )
  assert theory.run(options) == 1
  assert "5 of 6 claims hold" in capsys.readouterr().out
  rows = json.loads((output_dir / "claims.json").read_text(encoding="utf-8"))
  assert [row["source"] for row in rows if not row["holds"]] == ["Lemma"]
  assert (output_dir / "claims.md").exists()
  assert (output_dir / "theorem3.png").exists()


def test_claims_that_hold_are_a_success(tmp_path, capsys):
  options = theory.Options(
    experiments=("proposition1",), output_dir=str(tmp_path)
  )
  assert theory.run(options) == 0
  printed = capsys.readouterr()
  assert "5 of 5 claims hold" in printed.out
  assert not printed.err
  wrong = dataclasses.replace(options, output_dir=__file__)
  with pytest.raises(errors.UsageError, match=__file__):
    theory.run(wrong)
