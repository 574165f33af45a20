#!/bin/sh
# An agent's loop around a command: ask what is known, do the work, tell how it went, keep what was
# learnt.
#
#   examples/agent_loop.sh "run the migration" -- ./migrate.sh
#
# KLNODE names the program, with its home if it is not the usual one; `klnode` unless set.
set -eu

klnode=${KLNODE:-klnode}
goal=${1:?usage: agent_loop.sh GOAL -- COMMAND...}
shift
[ "${1:-}" = "--" ] && shift

# $klnode may hold flags: it is split on purpose.
task=$($klnode task begin --agent agent-loop --goal "$goal")
echo "task $task"

# In a pipe the answer is gated: only what may speak unasked. Nothing found is told, too; it ends
# with 1, and is fine.
if known=$($klnode search "$goal" --task "$task" --tier summary); then
  echo "known before:"
  echo "$known" | sed 's/^/  /'
else
  known=
fi

# The work. What is known goes to it as data, in its environment.
if KLNODE_KNOWN="$known" KLNODE_TASK="$task" "$@"; then
  $klnode task finish "$task" --success
  echo "done"
else
  code=$?
  $klnode task finish "$task" --failure
  echo "failed with $code" >&2
  exit "$code"
fi
