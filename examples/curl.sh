#!/bin/sh
# The local API with curl alone: write an entry, search in a task, finish the task.
#
#   examples/curl.sh ~/.local/share/klnode/klnode.sock
set -eu

socket=${1:?usage: curl.sh SOCKET}

# ask METHOD PATH [BODY]: sends JSON and prints the JSON answer.
ask() {
  curl --silent --show-error --fail-with-body --unix-socket "$socket" \
    --request "$1" "http://klnode$2" \
    --header 'content-type: application/json' \
    --header 'klnode-client: curl-example' \
    ${3:+--data "$3"}
}

# field NAME: the text of a JSON field on standard input, if it occurs once.
field() {
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

entry=$(ask POST /v1/entries '{
  "title": "Retry the billing gateway with backoff",
  "content": "It answers 503 for a minute after each deployment.",
  "tags": ["billing"],
  "evidence": ["doc:runbook"]
}' | field id)
echo "wrote $entry"

task=$(ask POST /v1/tasks '{"agent": "curl-example", "goal": "mend the billing job"}' | field task)
ask POST /v1/search "{\"query\": \"billing gateway answers 503\", \"task\": \"$task\"}" \
  | grep -q "$entry" && echo "found it"

ask POST "/v1/tasks/$task/finish" "{\"outcome\": \"success\", \"used\": [\"$entry\"]}" \
  | grep -q '"named":true' && echo "it was credited"
