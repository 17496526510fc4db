#!/usr/bin/env bash
# Keeps the run going until it ends, then returns the TPU. Run it where it can
# stay: a small VM, Cloud Shell, or your machine. It may be stopped and started
# again at any time. A preempted spot TPU cannot be restarted, so another one is
# requested, whose run resumes from the last checkpoint.
set -uo pipefail
cd "$(dirname "$0")"
last=
while true; do
  if status=$(gcloud storage cat {{ launch_dir }}/exit_status 2> /dev/null); then
    echo "the run ended with status $status; to start it again, first:"
    echo "  gcloud storage rm {{ launch_dir }}/exit_status"
    bash teardown.sh
    exit "$status"
  fi
  # A list is empty where `describe` would fail as it does without a network.
  state=$(gcloud compute tpus queued-resources list --zone={{ zone }} \
    --filter='name~/'{{ name }}'$' --format='value(state.state)') ||
    state=UNKNOWN
  [ "$state" = "$last" ] || echo "$(date -u +%FT%TZ) {{ name }}: ${state:-no TPU}"
  last=$state
  case $state in
    '') bash create.sh || exit ;;
    SUSPENDED) bash teardown.sh || exit ;;
    FAILED)
      echo "the request failed: quota, or no such TPU in {{ zone }}?" >&2
      exit 1
      ;;
  esac
  sleep "${SWE_POLL_SECONDS:-60}"
done
