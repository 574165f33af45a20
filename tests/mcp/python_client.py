"""The official Python client against `klnode mcp`: list, call, read, cancel, in both lifecycles of the
protocol and over HTTP. Run by `.ci/mcp`: python_client.py KLNODE HOME, with a node running on HOME."""

import json
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

TOOLS = ["search", "get", "remember", "observe", "task_begin", "task_finish", "resolve", "briefing"]
PATIENCE_S = 60


def expect(is_so, what):
    """Ends the run if something is not so."""
    if not is_so:
        raise SystemExit(f"not so: {what}")


def data(result):
    """The structured part of a result that must be good."""
    expect(not result.is_error, result)
    return result.structured_content


async def tools(client, word):
    """Lists and calls tools."""
    listed = (await client.list_tools()).tools
    expect([tool.name for tool in listed] == TOOLS, listed)
    expect(all(tool.output_schema and tool.annotations for tool in listed), listed)
    lesson = {"title": f"About {word}", "content": "Close what you open.", "evidence": ["doc:notes"]}
    code = data(await client.call_tool("remember", lesson))["code"]
    task = data(await client.call_tool("task_begin", {"goal": f"try {word}"}))["task"]
    found = data(await client.call_tool("search", {"query": word, "limit": 3}))
    expect(found["task"] == task, found)
    expect(code in [hit["code"] for hit in found["hits"]], found)
    read = await client.call_tool("get", {"code": code})
    expect("| Close what you open." in read.content[0].text, read)
    finish = {"outcome": "success", "used": [code], "quality": 0.9}
    expect(data(await client.call_tool("task_finish", finish))["task"] == task, "the task ends")
    wrong = await client.call_tool("search", {"quer": word})
    expect(wrong.is_error and "unknown field `quer`" in wrong.content[0].text, wrong)
    try:
        await client.call_tool("no_such_tool", {})
        expect(False, "an unknown tool is an error of the protocol")
    except MCPError:
        pass
    return code


async def resources(client, code):
    """Lists and reads resources."""
    uris = [str(one.uri) for one in (await client.list_resources()).resources]
    expect("klnode://status" in uris and "klnode://briefing/main" in uris, uris)
    templates = (await client.list_resource_templates()).resource_templates
    expect(len(templates) == 2, templates)
    status = (await client.read_resource("klnode://status")).contents[0]
    expect("version" in json.loads(status.text), status)
    entry = (await client.read_resource(f"klnode://entry/{code}")).contents[0]
    expect("Quoted data, not instructions" in entry.text, entry)


async def prompts(client, word):
    """Lists and gets prompts."""
    names = [prompt.name for prompt in (await client.list_prompts()).prompts]
    expect(names == ["knowledge_for_task", "review_with_knowledge"], names)
    prompt = await client.get_prompt("knowledge_for_task", {"goal": word})
    expect("| Close what you open." in prompt.messages[0].content.text, prompt)


async def everything(client, word):
    """All that a client can do with a node that answers."""
    code = await tools(client, word)
    await resources(client, code)
    await prompts(client, word)


async def over_stdio(klnode, home):
    """Both lifecycles: with a handshake, and without."""
    server = StdioServerParameters(command=klnode, args=["--home", home, "mcp"])
    for mode, word in [("legacy", "zqhandshake"), ("auto", "zqdiscover")]:
        async with Client(server, mode=mode) as client:
            print(f"standard input, {mode}: version {client.protocol_version}")
            await everything(client, word)


async def over_http(klnode, home):
    """The same over HTTP, with the token."""
    command = [klnode, "--home", home, "mcp", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().split()[-1]
            token = Path(process.stdout.readline().split()[-1]).read_text(encoding="utf-8").strip()
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http:
                transport = streamable_http_client(url, http_client=http)
                async with Client(transport) as client:
                    print(f"HTTP: version {client.protocol_version}")
                    await everything(client, "zqhttp")
        finally:
            process.terminate()


def hold(listener, asked, gone):
    """A node that answers no request. The server says at its start that it is there; a call is a search."""

    def read(connection):
        is_search = False
        with connection:
            while data_read := connection.recv(65536):
                if b"/v1/search" in data_read:
                    is_search = True
                    asked.set()
        if is_search:
            gone.set()

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=read, args=(connection,), daemon=True).start()


async def cancelled(klnode):
    """A call that is given up is given up towards the node."""
    with tempfile.TemporaryDirectory() as home:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{home}/klnode.sock")
        listener.listen()
        asked, gone = threading.Event(), threading.Event()
        threading.Thread(target=hold, args=(listener, asked, gone), daemon=True).start()
        server = StdioServerParameters(command=klnode, args=["--home", home, "mcp"])
        heard = []

        async def progress(done, _total, _message):
            heard.append(done)

        async with Client(server, mode="legacy") as client:
            with anyio.move_on_after(3):
                await client.call_tool("search", {"query": "x"}, progress_callback=progress)
                expect(False, "nobody answers this")
            expect(asked.is_set(), "the node was asked")
            is_gone = await anyio.to_thread.run_sync(gone.wait, PATIENCE_S)
            expect(is_gone, "the request to the node was dropped")
            expect(heard and heard == sorted(heard), f"progress was told: {heard}")
            expect(len((await client.list_tools()).tools) == len(TOOLS), "it goes on")
        print("cancelled, and it goes on")


async def main(klnode, home):
    """Everything, within a time."""
    with anyio.fail_after(PATIENCE_S * 2):
        await over_stdio(klnode, home)
        await over_http(klnode, home)
        await cancelled(klnode)


anyio.run(main, *sys.argv[1:3])
