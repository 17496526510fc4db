"""Packing, one sentence at a time: what `packing` has to equal."""


def pack(tokenizer, documents, seq_length):
  """Packs documents, given as lists of sentences."""
  id_of = tokenizer.vocabulary.id_of
  cls, sep, pad = map(id_of, ("[CLS]", "[SEP]", "[PAD]"))
  room = seq_length - 2
  sequences, current = [], []
  for number, document in enumerate(documents):
    for position, sentence in enumerate(document):
      ids = tokenizer.tokenize([sentence]).to_list()[0]
      for index, unit in enumerate(_units(tokenizer, ids, room)):
        opens = number > 0 and position == 0 and index == 0
        separator = [sep] if opens and current else []
        if len(current) + len(separator) + len(unit) > room:
          sequences.append(current)
          current, separator = [], []
        current = current + separator + unit
  sequences.append(current)
  return [[cls, *s, sep] + [pad] * (room - len(s)) for s in sequences]


def _units(tokenizer, ids, room):
  """Cuts a sentence that is too long into words, and such words into ids."""
  if len(ids) <= room:
    return [ids]
  words = []
  for i in ids:
    if words and tokenizer.joins_left[i]:
      words[-1].append(i)
    else:
      words.append([i])
  return [
    unit
    for word in words
    for unit in ([word] if len(word) <= room else [[i] for i in word])
  ]
