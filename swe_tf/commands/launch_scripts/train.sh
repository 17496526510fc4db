#!/usr/bin/env bash
# Trains or resumes. 75 means that it was interrupted and has saved a
# checkpoint; after anything else, starting it again would end the same way.
until swe train{% for flag in flags %} \
  {{ flag }}{% endfor %}

do
  status=$?
  echo "swe train ended with status $status"
  [ "$status" = 75 ] || exit "$status"
done
