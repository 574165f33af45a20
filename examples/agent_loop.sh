#!/bin/sh
# An agent's loop around a command: search for relevant entries, do the work, report the outcome.
#
#   examples/agent_loop.sh "run the migration" -- ./migrate.sh
#
# KLNODE is the command to run, with flags if the home is not the default one; default: `klnode`.
set -eu

klnode=${KLNODE:-klnode}
goal=${1:?usage: agent_loop.sh GOAL -- COMMAND...}
shift
[ "${1:-}" = "--" ] && shift

# $klnode may contain flags, so it is split on purpose.
task=$($klnode task begin --agent agent-loop --goal "$goal")
echo "task $task"

# In a pipe the answer contains only entries that passed the gate. A search without hits exits with
# 1, which is fine.
if known=$($klnode search "$goal" --task "$task" --tier summary); then
  echo "known before:"
  echo "$known" | sed 's/^/  /'
else
  known=
fi

# The work. The found entries are passed to it as data, in its environment.
if KLNODE_KNOWN="$known" KLNODE_TASK="$task" "$@"; then
  $klnode task finish "$task" --success
  echo "done"
else
  code=$?
  $klnode task finish "$task" --failure
  echo "failed with $code" >&2
  exit "$code"
fi
