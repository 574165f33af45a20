"""Drives the page of a real node with Chromium: what people do, what attackers try, what a screen
reader needs. Takes the screenshots of the guide."""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.parse

from playwright.sync_api import sync_playwright

import briefing_checks
import hostile_checks
import peer_checks
import race_checks
import sample_data
from browser import PATIENCE_MS, Browser, expect_no_problems, show
from forwarder import Forwarder
from node import Node, wait_for

VIEWS = ["search", "search?q=database%20pool%20size", "entries", "briefing", "inbox", "tasks", "usage", "peers", "playbooks", "status"]
DIALOGS = ["Promote", "Dedup", "Stale"]
WIDTHS = [360, 1280]
# Rules of axe-core that depend on sizes, and on labels that a narrow page hides.
LAYOUT_RULES = ["scrollable-region-focusable", "target-size", "link-name", "button-name", "select-name", "aria-hidden-focus"]
SERIOUS = {"serious", "critical"}


def step(text):
    print(f"page: {text} ({time.monotonic() - START:.1f} s)", flush=True)


def entry_code(node, title):
    found = [entry for entry in node.get("/v1/entries?limit=100")["entries"] if title in entry["title"]]
    return found[0]["code"]


def check_search(page, node):
    before = len(node.get("/v1/served?limit=1000")["answers"])
    show(page, "search")
    page.keyboard.type("database pool size")
    page.locator(".hit").first.wait_for()
    assert page.locator(".hit").count() >= 2
    assert page.locator(".explain tbody tr").count() >= 6, "explain has a bar for each signal"
    assert "tokens" in page.locator("aside.agent").inner_text()
    page.locator(".hit-title").first.click()
    page.get_by_role("heading", name="Decay").wait_for()
    show(page, "briefing")
    after = len(node.get("/v1/served?limit=1000")["answers"])
    assert before == after, "reads of the page are not recorded as served"
    expect_no_problems(page)


def check_edit(page, node):
    code = entry_code(node, "retry budget")
    show(page, f"entry/{code}")
    page.get_by_role("button", name="Edit").first.click()
    page.locator("input[name=title]").fill("The retry budget of the payment client is 3")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    wait_for(lambda: node.get(f"/v1/entries/{code}")["title"].endswith("is 3"), "the edit is stored")
    page.locator(".notice", has_text="Saved.").get_by_role("button", name="Undo").click()
    wait_for(lambda: node.get(f"/v1/entries/{code}")["title"].endswith("is three"), "the edit is undone")
    page.get_by_role("button", name="Archive").click()
    wait_for(lambda: node.get(f"/v1/entries/{code}")["status"] == "archived", "the entry is archived")
    page.get_by_role("toolbar").get_by_role("button", name="Restore").click()
    wait_for(lambda: node.get(f"/v1/entries/{code}")["status"] != "archived", "the entry is restored")
    expect_no_problems(page)


def check_live(page, node):
    show(page, "search")
    node.post("/v1/entries", dict(title="Written while the page was open", content="Live.", evidence=["doc:live"]))
    page.get_by_text("Written while the page was open").wait_for()
    expect_no_problems(page)


def check_inbox(page, node):
    show(page, "inbox")
    waiting = page.locator(".inbox-item").count()
    assert waiting >= 2, waiting
    findings = page.locator(".inbox-item", has=page.get_by_text("Finding", exact=True)).count()
    # Read at once: a reload may replace the items.
    kinds = page.locator(".inbox-item .inbox-head .badge").all_inner_texts()
    for _ in range(kinds.index("Finding") + 1):
        page.keyboard.press("j")
    page.locator(".inbox-item.active", has_text="Finding").wait_for()
    page.keyboard.press("a")
    page.get_by_text("Kept: it is a candidate entry now.").wait_for()
    left = page.locator(".inbox-item", has=page.get_by_text("Finding", exact=True))
    wait_for(lambda: left.count() == findings - 1, "the finding left the inbox")
    expect_no_problems(page)


def check_playbook(page, node, code):
    show(page, "playbooks")
    page.get_by_role("link", name="How we release").click()
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Rollback").wait_for()
    rows = page.locator(".row-button")
    rows.first.wait_for()
    before = rows.count()
    assert before == len(node.get(f"/v1/playbooks/{code}/history")["edits"]) >= 3, before
    rows.first.click()
    page.locator(".diff .added", has_text=sample_data.PLAYBOOK_STEP).wait_for()
    page.get_by_role("button", name="Authors").click()
    page.locator(".blame li", has_text="you").first.wait_for()
    page.get_by_role("button", name="Authors").click()
    check_playbook_edits(page, node, code, before)
    expect_no_problems(page)


def check_playbook_edits(page, node, code, before):
    """Another edit between reading and saving is kept, errors of the node are shown, and an edit can be undone."""
    text = lambda: node.get(f"/v1/playbooks/{code}")["text"]
    rows = page.locator(".row-button")
    page.get_by_role("button", name="Edit", exact=True).click()
    box = page.locator("textarea[name=text]")
    draft = box.input_value()
    sample_data.edit_playbook(node, code, "Tag the commit.", "Sign and tag the commit.")
    page.get_by_text("The text has changed since you opened it.").wait_for()
    page.is_gone = True  # The browser logs the refused request.
    box.fill(f"{draft}\n{sample_data.SECRET}\n")
    page.get_by_role("button", name="Save").click()
    page.locator(".note.error[role=alert]").wait_for()
    page.is_gone = False
    box.fill(draft.replace("Tell support.", "Tell support and sales."))
    page.get_by_role("button", name="Save").click()
    wait_for(lambda: "Tell support and sales." in text(), "the edit is stored")
    assert "Sign and tag the commit." in text() and sample_data.SECRET not in text(), text()
    wait_for(lambda: rows.count() == before + 2, "the history shows both edits")
    rows.last.click()
    page.get_by_role("button", name="Restore this version").click()
    page.locator("dialog .diff .removed", has_text="sales").wait_for()
    assert "sales" in text(), "the preview changes nothing"
    page.get_by_role("button", name="Restore", exact=True).click()
    wait_for(lambda: text() == sample_data.PLAYBOOK, "the first version is the text again")
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Rollback").click()
    page.get_by_role("heading", name="Section", exact=True).wait_for()


def check_egress(page, node, peer):
    show(page, f"peers/{peer}")
    page.get_by_role("listbox").wait_for()
    assert page.locator(".virtual-row", has_text="Held back").count() > 0, "held entries are listed with their rule"
    page.locator(".chip", has_text="Receives").click()
    assert page.locator(".virtual-row", has_text="Receives").count() >= 1
    page.get_by_text("Edit the filter").click()
    page.get_by_label("Hold back tags").fill("team")
    page.get_by_label("Hold back tags").press("Tab")
    page.get_by_text("Preview of unsaved filter").wait_for()
    page.locator(".chip", has_text="Will lose").click()
    page.locator(".virtual-row", has_text="Will lose").first.wait_for()
    page.get_by_role("button", name="Discard").click()
    expect_no_problems(page)


def check_conflict(page, node, code):
    page.set_viewport_size(dict(width=1280, height=400))
    show(page, f"entry/{code}?at=conflicts")
    page.get_by_role("heading", name="Conflicting versions").wait_for()
    wait_for(lambda: 0 <= page.locator("#conflicts").bounding_box()["y"] < 200, "the page scrolls to the conflicts")
    page.set_viewport_size(dict(width=1280, height=860))
    assert page.locator(".version").count() == 2
    page.get_by_role("button", name="Keep version 1").click()
    page.get_by_text("is resolved").wait_for()
    wait_for(lambda: not node.get(f"/v1/entries/{code}")["contested"], "the conflict is resolved")
    expect_no_problems(page)


def check_forget(page, code):
    show(page, f"entry/{code}")
    page.locator(".fate", has_text="build-server").get_by_text("Receives", exact=True).wait_for()
    page.is_gone = True  # The browser logs that the entry is gone.
    page.get_by_role("button", name="Forget", exact=True).click()
    page.locator("input[name=confirm]").fill(code)
    page.get_by_role("button", name="Forget for good").click()
    page.get_by_text("All peers confirmed.").wait_for(timeout=60_000)
    assert page.locator(".receipts li").count() == 2
    page.locator("article").wait_for(state="detached")
    page.get_by_role("alert").get_by_text("forgotten").wait_for()
    assert page.get_by_role("dialog", name="Forgotten").count() == 1, "the receipts stay open"
    page.get_by_role("button", name="Close").last.click()
    page.is_gone = False


def raw(address, method, path, headers=None, body=None):
    """A request with exact headers; returns status, headers and body."""
    port = urllib.parse.urlsplit(address).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    given = {"host": f"127.0.0.1:{port}", **(headers or {})}
    data = json.dumps(body).encode() if body is not None else b""
    for name, value in given.items():
        if value is not None:
            connection.putheader(name, value)
    connection.putheader("content-length", str(len(data)))
    connection.endheaders(data)
    answer = connection.getresponse()
    return answer.status, dict(answer.getheaders()), answer.read().decode(errors="replace")


def check_refusals(node):
    ticket = node.post("/v1/page")
    address, code = ticket["address"], ticket["code"]
    origin = address.rstrip("/")
    own = {"origin": origin, "content-type": "application/json"}
    assert raw(address, "GET", "/v1/status")[0] == 401
    assert raw(address, "POST", "/session", {**own, "origin": "http://evil.example"}, {"code": code})[0] == 403
    assert raw(address, "POST", "/session", {"content-type": "application/json"}, {"code": code})[0] == 403
    status, _, text = raw(address, "POST", "/session", own, {"code": code})
    assert status == 200, text
    secret = json.loads(text)["secret"]
    assert raw(address, "POST", "/session", own, {"code": code})[0] == 401, "a code is good once"
    bearer = {"authorization": f"Bearer {secret}"}
    assert raw(address, "GET", "/v1/status", bearer)[0] == 200
    assert raw(address, "GET", "/v1/status", {"cookie": f"secret={secret}"})[0] == 401, "no cookie is read"
    assert raw(address, "GET", f"/v1/status?secret={secret}")[0] == 401
    port = urllib.parse.urlsplit(address).port
    for host in ["evil.example", f"localhost:{port}", "127.0.0.1", f"[::1]:{port}", "127.0.0.1:1", None]:
        assert raw(address, "GET", "/v1/status", {**bearer, "host": host})[0] in (400, 403), host
        assert raw(address, "GET", "/", {"host": host})[0] in (400, 403), host
    for other in ["http://evil.example", "null", f"http://localhost:{port}", f"https://127.0.0.1:{port}"]:
        assert raw(address, "GET", "/v1/status", {**bearer, "origin": other})[0] == 403, other
    assert raw(address, "GET", "/v1/status", {**bearer, "sec-fetch-site": "cross-site"})[0] == 403
    assert raw(address, "POST", "/v1/page", {**own, **bearer}, {})[0] == 403, "a page opens no page"
    status, headers, _ = raw(address, "GET", "/")
    policy = headers["content-security-policy"]
    for part in ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"]:
        assert part in policy, policy
    assert "unsafe" not in policy and "set-cookie" not in {name.lower() for name in headers}
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"


def check_command(node, homes):
    """`klnode ui` hands the code to the browser through a private file, never as an argument."""
    tools = homes / "tools"
    tools.mkdir()
    opener = tools / "xdg-open"
    opener.write_text(f'#!/bin/sh\nstat -c %a "$1" > {tools}/mode\nprintf %s "$*" > {tools}/arguments\ncp "$1" {tools}/new\nmv {tools}/new {tools}/document\n')
    opener.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    command = subprocess.Popen([node.program, "--home", str(node.home), "ui"], env=environment, stdout=subprocess.PIPE, text=True)
    wait_for((tools / "document").exists, "the browser is opened")
    address, code = re.search(r"url=(http://[^#]+)#code=(\w+)", (tools / "document").read_text()).groups()
    assert (tools / "mode").read_text().strip() == "600"
    assert code not in (tools / "arguments").read_text()
    own = {"origin": address.rstrip("/"), "content-type": "application/json"}
    assert raw(address, "POST", "/session", own, {"code": code})[0] == 200
    text, _ = command.communicate(timeout=30)
    assert command.returncode == 0 and "open in the browser" in text, text
    assert not list(node.home.glob("page*.html")), "the file with the code is removed"
    assert str(command.pid) in (tools / "arguments").read_text(), "each command has its own file"
    piped = subprocess.run([node.program, "--home", str(node.home), "ui", "--no-open"], capture_output=True, text=True)
    assert piped.returncode != 0 and "code=" not in piped.stdout + piped.stderr, "the code is printed on a terminal only"


def open_place(page, address, button):
    """Shows a view, and opens the dialog or the editor behind a button of it."""
    show(page, address)
    if button == "?":
        page.keyboard.press("?")
    elif button:
        page.get_by_role("button", name=button, exact=True).first.click()
        wait_for(lambda: page.locator(".skeleton").count() == 0, f"{button} has its preview")


def check_accessibility(browser, node, axe, addresses, entry):
    page, bad = browser.open(node, bypass_csp=True), []
    behind = [("peers", "Invite"), ("peers", "Join"), ("status", "?")]
    behind += [(f"entry/{entry}", button) for button in ["Forget", "Note", "Promote", "Edit"]]
    places = [(address, None) for address in addresses] + [("briefing", button) for button in DIALOGS] + behind
    # The themes differ in their colours only, and a narrow page in its layout.
    dark, narrow = dict(runOnly=["color-contrast"]), dict(runOnly=LAYOUT_RULES)
    passes = [("light", 1280, {}), ("dark", 1280, dark), ("light", 360, narrow)]
    for theme, width, rule in passes:
        page.evaluate("theme => localStorage.setItem('klnode-theme', theme)", theme)
        page.set_viewport_size(dict(width=width, height=860))
        page.reload()
        for address, button in places:
            open_place(page, address, button)
            page.add_script_tag(content=axe)
            found = page.evaluate("rule => axe.run(document, {...rule, resultTypes: ['violations']})", rule)["violations"]
            for one in found:
                if one["impact"] in SERIOUS:
                    bad.append((address, button, theme, width, one["id"], [part["html"][:200] for part in one["nodes"]][:3]))
            page.keyboard.press("Escape")
    assert not bad, "\n".join(map(str, bad))
    page.context.close()


def check_widths(page, addresses):
    for width in WIDTHS:
        page.set_viewport_size(dict(width=width, height=800))
        for address in addresses:
            show(page, address)
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert over <= 0, f"{address} is {over} px too wide at {width} px"
    page.set_viewport_size(dict(width=1280, height=860))


def check_reconnect(browser, node):
    """A cut connection is reported, and changes during the cut appear after the reconnection."""
    forwarder = Forwarder(urllib.parse.urlsplit(node.post("/v1/page")["address"]).port)
    page = browser.open(node, proxy=dict(server=forwarder.address, bypass="<-loopback>"))
    show(page, "search")
    page.is_gone = True
    forwarder.cut()
    page.get_by_text("The node does not answer.").wait_for(timeout=60_000)
    node.post("/v1/entries", dict(title="Written while the page was away", content="Away.", evidence=["doc:away"]))
    forwarder.mend()
    page.get_by_text("Written while the page was away").wait_for(timeout=60_000)
    page.get_by_text("The node does not answer.").wait_for(state="detached")
    page.context.close()


def open_session(node):
    """Trades a code for a secret; returns the address and the header with the secret."""
    ticket = node.post("/v1/page")
    own = {"origin": ticket["address"].rstrip("/"), "content-type": "application/json"}
    status, _, text = raw(ticket["address"], "POST", "/session", own, {"code": ticket["code"]})
    assert status == 200, text
    return ticket["address"], {"authorization": f"Bearer {json.loads(text)['secret']}"}


def check_restart(page, node):
    _, old = open_session(node)
    show(page, "entries")
    page.is_gone = True
    node.stop()
    page.get_by_text("The node does not answer.").wait_for(timeout=60_000)
    node.start()
    page.get_by_text("klnode ui").first.wait_for(timeout=60_000)
    address, new = open_session(node)
    assert raw(address, "GET", "/v1/status", new)[0] == 200
    assert raw(address, "GET", "/v1/status", old)[0] == 401, "a secret ends with its process"


def take_screenshots(browser, node, shots, folder):
    from PIL import Image  # Installed for the screenshots only.

    for scheme in ["light", "dark"]:
        page = browser.open(node, color_scheme=scheme)
        for name, address in shots:
            show(page, address)
            page.wait_for_timeout(300)
            path = folder / f"page-{name}-{scheme}.png"
            page.screenshot(path=str(path))
            # A palette of 256 colours needs a quarter of the space.
            Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
        page.context.close()


def prepare(nodes):
    """Gives the nodes an ordinary week of work and a conflict, and returns the shared entries."""
    first, second, desktop = [node.start() for node in nodes]
    sample_data.fill(first)
    sample_data.pair(first, second, "team")
    desktop.post("/v1/join", dict(target=first.post("/v1/invitations", dict(mine=True))["ticket"]))
    shared = sample_data.share(first)
    code = shared[0]["code"]
    arrived = lambda: [one for one in second.get("/v1/entries?workspace=team")["entries"] if one["title"]]
    wait_for(lambda: len(arrived()) >= len(shared), "the shared entries arrive")
    # Each node writes while the other is stopped.
    second.stop()
    first.call("PATCH", f"/v1/entries/{code}", dict(registers=dict(content=sample_data.FIRST_VERSION)))
    first.stop()
    second.start()
    second.call("PATCH", f"/v1/entries/{code}", dict(registers=dict(content=sample_data.SECOND_VERSION)))
    first.start()
    wait_for(lambda: first.get(f"/v1/entries/{code}")["contested"], "the conflict arrives")
    for service in ["duplicates", "contradictions"]:
        first.post("/v1/maintenance/run", dict(service=service))
    first.post("/v1/entries", dict(sample_data.HELD, workspace="team"))
    return shared


def main():
    options = argparse.ArgumentParser()
    options.add_argument("klnode")
    options.add_argument("--chromium", default="/usr/bin/chromium")
    options.add_argument("--axe", required=True)
    options.add_argument("--shots", help="the folder for the screenshots of the guide")
    given = options.parse_args()
    homes = pathlib.Path(tempfile.mkdtemp(prefix="klnode-page-"))
    named = [("first", "laptop"), ("second", "build-server"), ("desktop", "desktop")]
    nodes = [Node(given.klnode, homes / folder, name) for folder, name in named]
    try:
        with sync_playwright() as playwright:
            shared = prepare(nodes)
            step("nodes are ready")
            run(Browser(playwright, given.chromium), nodes[0], shared, given, homes)
    finally:
        for node in nodes:
            node.stop()
        shutil.rmtree(homes, ignore_errors=True)


def run(browser, node, shared, given, homes):
    peer = [one["peer"] for one in node.get("/v1/peers")["peers"] if one["name"] == "build-server"][0]
    conflict, doomed = shared[0]["code"], shared[1]["code"]
    entry = entry_code(node, "Run migrations")
    task = node.get("/v1/tasks?limit=100")["tasks"][-1]["task"]
    playbook = sample_data.write_playbook(node)
    pair = "+".join(entry_code(node, title) for title in ["Database pool size", "Pool size of the database"])
    addresses = [*VIEWS, f"entry/{entry}", f"entry/{conflict}", f"peers/{peer}", f"tasks/{task}", f"compare/{pair}",
                 f"playbooks/{playbook}", f"playbooks/{playbook}?section=rollback"]
    if given.shots:
        named = [("search", VIEWS[1]), ("entries", "entries"), ("entry", f"entry/{entry}"), ("conflict", f"entry/{conflict}"), ("briefing", "briefing"),
                 ("inbox", "inbox"), ("tasks", f"tasks/{task}"), ("usage", "usage"), ("peers", "peers"), ("egress", f"peers/{peer}"), ("playbook", f"playbooks/{playbook}"),
                 ("status", "status")]
        take_screenshots(browser, node, named, pathlib.Path(given.shots))
        step("screenshots are taken")
    check_refusals(node)
    step("wrong Host, wrong Origin and missing secrets are refused")
    check_command(node, homes)
    step("klnode ui hands over the code in a private file")
    page = browser.open(node)
    for name, check in [
        ("search, explain and unrecorded reads", lambda: check_search(page, node)),
        ("edit, undo and archive", lambda: check_edit(page, node)),
        ("live changes", lambda: check_live(page, node)),
        ("insights with their acts", lambda: briefing_checks.check_insights(page, node)),
        ("dedup after a preview", lambda: briefing_checks.check_dedup(page, node)),
        ("stale after a preview", lambda: briefing_checks.check_stale(page, node)),
        ("approval of a promotion", lambda: briefing_checks.check_promotion(page, node)),
        ("outcomes by strategy", lambda: briefing_checks.check_outcomes(page)),
        ("settings with their origin", lambda: briefing_checks.check_settings(page)),
        ("empty views", lambda: briefing_checks.check_empty(browser, given.klnode, homes)),
        ("held entries", lambda: briefing_checks.check_held(page, node)),
        ("inbox by keyboard", lambda: check_inbox(page, node)),
        ("shortcuts in the inbox", lambda: (race_checks.add_finding(node), race_checks.check_inbox_shortcuts(page, node))),
        ("edits by others during an edit", lambda: race_checks.check_concurrent_edit(page, node)),
        ("changes during a slow load", lambda: race_checks.check_slow_load(page, node)),
        ("filters during a load", lambda: race_checks.check_filters(page, node)),
        ("order of searches", lambda: race_checks.check_search_order(page, node)),
        ("quarantine", lambda: peer_checks.check_quarantine(page)),
        ("egress preview and live filter", lambda: check_egress(page, node, peer)),
        ("filter with undo", lambda: peer_checks.check_filter(page, node, peer)),
        ("playbook with history, authors, edit and restore", lambda: check_playbook(page, node, playbook)),
        ("360 px to wide", lambda: check_widths(page, addresses)),
        ("accessibility", lambda: check_accessibility(browser, node, pathlib.Path(given.axe).read_text(), addresses, entry)),
        ("conflict between two nodes", lambda: check_conflict(page, node, conflict)),
        ("forget with receipts", lambda: check_forget(page, doomed)),
        ("invite and join", lambda: peer_checks.check_pairing(browser, given.klnode, homes, page, node)),
        ("commands for the person's key", lambda: peer_checks.check_person_key(browser, given.klnode, homes)),
        ("hostile entries", lambda: hostile_checks.check_hostile(browser, given.klnode, homes, VIEWS)),
        ("reconnect", lambda: check_reconnect(browser, node)),
        ("message after a restart", lambda: check_restart(page, node)),
    ]:
        try:
            check()
        except Exception:
            page.screenshot(path=os.environ.get("PAGE_FAILURE_SHOT", "/tmp/page-failure.png"))
            raise
        step(name)


START = time.monotonic()
if __name__ == "__main__":
    main()
