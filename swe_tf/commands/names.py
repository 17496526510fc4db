"""The names of all commands, in the order in which a user needs them."""

# By group and command: its module in swe_tf.commands, and what it is for.
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
  "Try it": {
    "demo": ("demo", "compare a small BERT with and without sharing"),
    "experiments": ("experiments", "list the configurations, or print one"),
  },
  "Before a run": {
    "pilot": ("pilot", "find out if sharing would pay off for a planned run"),
    "doctor": ("doctor", "check a swe train command line before running it"),
    "doctor cost": ("doctor_cost", "estimate what a run will cost"),
    "doctor tpu": (
      "doctor_tpu",
      "compile the steps for a TPU without having one",
    ),
  },
  "From text to a score": {
    "prepare pretraining": (
      "prepare_pretraining",
      "convert text files to masked TFRecords",
    ),
    "train": ("train", "run official.nlp.train with the swe experiments"),
    "prepare squad": ("prepare_squad", "convert SQuAD JSON to TFRecords"),
    "prepare glue": ("prepare_glue", "convert GLUE files to TFRecords"),
    "finetune": ("finetune", "fine-tune on SQuAD and GLUE as the paper does"),
    "score": ("score", "score predictions"),
    "submission": (
      "submission",
      "pack predictions into the GLUE benchmark's zip",
    ),
  },
  "Many runs": {
    "sweep": ("sweep", "run a study: many runs from one file"),
    "report": ("report", "tabulate and plot runs beside the paper's results"),
    "diff": ("diff", "compare two runs: config, curves, weights, slots"),
  },
  "In and out": {
    "import": ("import_", "convert a Hugging Face BERT to Model Garden"),
    "export": (
      "export",
      "convert a checkpoint to a SavedModel or Hugging Face",
    ),
  },
  "More": {
    "theory": ("theory", "check the paper's theory numerically"),
    "completion": ("completion", "print a shell completion script"),
  },
}
COMMANDS = {
  name: entry for group in GROUPS.values() for name, entry in group.items()
}
