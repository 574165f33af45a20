"""A client of the node's local API in the standard library alone.

    python3 examples/klnode_client.py ~/.local/share/klnode/klnode.sock

Copy the class; the lines below it show how to use it.
"""

import http.client
import json
import socket
import sys
from urllib.parse import quote


class Refused(Exception):
    """The node refused a request: the kind of error, the message, and a hint if there is one."""

    def __init__(self, kind, message, hint):
        super().__init__(message + (f" ({hint})" if hint else ""))
        self.kind, self.hint = kind, hint


class _Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("klnode", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """A client with a name and optionally a session; the node logs served entries under both."""

    def __init__(self, path, name, session=None, timeout=30):
        self._path, self._timeout = path, timeout
        self._headers = {"content-type": "application/json", "klnode-client": name}
        if session:
            self._headers["klnode-session"] = session

    def ask(self, method, path, body=None):
        """Sends a request and returns the answer."""
        connection = _Connection(self._path, self._timeout)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, self._headers)
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        if response.status >= 400:
            error = answer["error"]
            raise Refused(error["kind"], error["message"], error.get("hint"))
        return answer

    def add(self, title, content, evidence, **more):
        """Writes an entry and returns its id and code."""
        new = {"title": title, "content": content, "evidence": evidence, **more}
        return self.ask("POST", "/v1/entries", new)

    def search(self, query, task=None, **more):
        """Searches for a question and returns the hits; an empty list if no entry is relevant."""
        return self.ask("POST", "/v1/search", {"query": query, "task": task, **more})["hits"]

    def begin(self, agent, goal, **more):
        """Begins a task and returns its id."""
        return self.ask("POST", "/v1/tasks", {"agent": agent, "goal": goal, **more})["task"]

    def finish(self, task, outcome, used=(), **more):
        """Finishes a task; its outcome counts for the entries it used."""
        end = {"outcome": outcome, "used": list(used), **more}
        return self.ask("POST", f"/v1/tasks/{quote(task)}/finish", end)

    def briefing(self, workspace="main"):
        """The current state of a workspace, as quoted text with provenance."""
        return self.ask("GET", f"/v1/briefing?workspace={quote(workspace)}")["text"]


def main(path):
    client = Client(path, "python-example", session="example-1")
    added = client.add(
        "Seed the clock in integration tests",
        "Tests that read the wall clock fail at midnight.",
        ["doc:notes"],
        tags=["tests"],
    )
    print("wrote", added["code"])
    task = client.begin("python-example", "mend the flaky tests")
    hits = client.search("flaky integration tests fail at midnight", task=task)
    print("found", ", ".join(hit["code"] for hit in hits))
    done = client.finish(task, "success", used=[hit["id"] for hit in hits], quality=0.8)
    for credit in done["credits"]:
        print("credited", credit["code"], credit["amount"])
    try:
        client.finish("no-such-task", "success")
    except Refused as refused:
        print("refused:", refused)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: klnode_client.py SOCKET")
    main(sys.argv[1])
