"""A real klnode process for the page checks, and a small client for its Unix socket."""

import http.client
import json
import pathlib
import socket
import subprocess
import time

DEADLINE_S = 60


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection over a Unix socket."""

    def __init__(self, path):
        super().__init__("klnode", timeout=DEADLINE_S)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class ApiError(Exception):
    """The node refused a request."""


def wait_for(condition, what, deadline_s=DEADLINE_S):
    """Polls until the condition returns a true value, and returns that value."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise TimeoutError(f"Timed out after {deadline_s} s: {what}.")


class Node:
    """A klnode process on its own home."""

    def __init__(self, program, home, name, listen="/ip4/127.0.0.1/tcp/0"):
        self.program = program
        self.home = pathlib.Path(home)
        self.home.mkdir(parents=True, exist_ok=True)
        # Maintenance works when a check asks for it.
        given = [f"network.name={name}", f"network.listen={listen}", "tuning.maintenance.check_interval=1 day"]
        self.settings = [word for setting in given for word in ("--set", setting)]
        self.process = None

    def start(self):
        log = open(self.home.parent / f"{self.home.name}.log", "ab")
        command = [self.program, "--home", str(self.home), *self.settings]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_for(self.answers, f"the node in {self.home} answers")
        return self

    def answers(self):
        try:
            return self.call("GET", "/v1/status")
        except (OSError, http.client.HTTPException):
            return None

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(DEADLINE_S)

    def call(self, method, path, body=None, client="page-check"):
        connection = UnixConnection(self.home / "klnode.sock")
        headers = {"klnode-client": client}
        payload = None
        if body is not None:
            payload = json.dumps(body)
            headers["content-type"] = "application/json"
        connection.request(method, path, payload, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status >= 400:
            raise ApiError(f"{method} {path}: {answer.status} {text}")
        return json.loads(text) if text else None

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body=None):
        return self.call("POST", path, body if body is not None else {})

    def run(self, *arguments, **options):
        """Runs a klnode command against this node and returns its output."""
        command = [self.program, "--home", str(self.home), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, **options)
        if done.returncode:
            raise ApiError(f"klnode {' '.join(arguments)}: {done.stderr}{done.stdout}")
        return done.stdout
