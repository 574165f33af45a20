"""Checks of the acts on peers and of the commands for a terminal where a node has a person's key."""

import shlex

import sample_data
from browser import expect_no_problems, show
from node import Node, wait_for

PASSPHRASE = "correct horse battery"


def check_filter(page, node, peer):
    """A filter is applied and taken back."""
    denied = lambda: node.get(f"/v1/peers/{peer}")["filters"]["egress"].get("tags_deny", [])
    show(page, "peers")
    show(page, f"peers/{peer}")
    page.get_by_text("Edit the filter").click()
    assert page.get_by_role("button", name="Apply filter").is_disabled()
    tags = page.get_by_label("Hold back tags")
    tags.fill("team")
    tags.press("Tab")
    page.get_by_text("Preview of unsaved filter").wait_for()
    page.get_by_role("button", name="Apply filter").click()
    page.get_by_text("The filter is set.").wait_for()
    assert denied() == ["team"], denied()
    page.locator(".notice", has_text="The filter is set.").get_by_role("button", name="Undo").click()
    wait_for(lambda: denied() == [], "the filter is taken back")
    expect_no_problems(page)


def check_pairing(browser, program, homes, page, node):
    """A ticket of the Invite dialog pairs a node that enters it in the Join dialog."""
    guest = Node(program, homes / "guest", "guest").start()
    try:
        show(page, "peers")
        page.get_by_role("button", name="Invite").click()
        page.get_by_role("dialog").get_by_label("Workspace of the new member").fill("team")
        page.get_by_role("button", name="Make a ticket").click()
        command = page.get_by_role("dialog").locator(".command").inner_text()
        assert command.startswith("klnode peer join "), command
        page.keyboard.press("Escape")
        other = browser.open(guest)
        show(other, "peers")
        other.get_by_role("button", name="Join").click()
        other.get_by_role("dialog").locator("textarea").fill(command.split(" ")[-1])
        other.get_by_role("dialog").get_by_role("button", name="Join").click()
        other.get_by_role("dialog").get_by_text("Both machines show the digits").wait_for()
        wait_for(lambda: [one for one in node.get("/v1/peers")["peers"] if one["name"] == "guest"], "the guest is paired")
        expect_no_problems(other)
        other.context.close()
    finally:
        guest.stop()
    key = [one["peer"] for one in node.get("/v1/peers")["peers"] if one["name"] == "guest"][0]
    node.post(f"/v1/peers/{key}/decision", dict(decision="remove"))
    expect_no_problems(page)


QUARANTINED = dict(digest="ab" * 32, entry="cd" * 16, author="ef" * 32, author_name="<b>mallory</b>", peer="ef" * 32,
                   peer_name="<b>mallory</b>", since=1_760_000_000_000, reason="rule ignore-instructions in content")


def check_quarantine(page):
    """A quarantined record is shown as text, and a key deletes it."""
    # A peer that skips its own scan cannot be built here, so the node's answers are samples.
    deleted = []
    page.route("**/v1/quarantine", lambda route: route.fulfill(json=dict(records=[] if deleted else [QUARANTINED], total=0 if deleted else 1)))
    page.route("**/v1/quarantine/*/reject", lambda route: (deleted.append(route.request.url), route.fulfill(json=dict(digest="ab" * 32, entry="cd" * 16, outcome="rejected"))))
    show(page, "inbox?kind=Quarantine")
    item = page.locator(".inbox-item", has_text="ignore-instructions")
    item.get_by_text("<b>mallory</b>").wait_for()
    page.keyboard.press("j")
    page.locator(".inbox-item.active").wait_for()
    page.keyboard.press("r")
    page.get_by_text("Deleted: the node does not request it again.").wait_for()
    item.wait_for(state="detached")
    assert len(deleted) == 1 and "ab" * 32 in deleted[0], deleted
    page.unroute("**/v1/quarantine")
    page.unroute("**/v1/quarantine/*/reject")
    expect_no_problems(page)


def check_person_key(browser, program, homes):
    """Acts that need the person's key show the command that does the same, and no passphrase field exists."""
    node, peer = Node(program, homes / "owned", "owned").start(), Node(program, homes / "colleague", "colleague").start()
    secret = homes / "passphrase"
    secret.write_text(PASSPHRASE)
    try:
        sample_data.pair(node, peer, "team")
        task = node.post("/v1/tasks", dict(agent="codex", goal="Review"))["task"]
        finding = dict(severity="high", confidence=0.9, text="The lock is taken twice.", anchors=['text:src/lock.rs~"lock"'], verify=["Read it"])
        node.post(f"/v1/tasks/{task}/findings", finding)
        node.run("identity", "new", "--passphrase-file", str(secret))
        page = browser.open(node)
        page.is_gone = True  # The browser logs refused requests.
        key = node.get("/v1/peers")["peers"][0]["peer"]
        show(page, f"peers/{key}")
        page.get_by_text("Edit the filter").click()
        page.get_by_label("Hold back tags").fill("secret it's")
        page.get_by_label("Hold back tags").press("Tab")
        page.get_by_label("Reach").select_option("created_here")
        page.get_by_label("stale", exact=True).click()
        page.get_by_role("button", name="Apply filter").click()
        command = page.locator(".notice .command").inner_text()
        assert command.startswith(f"klnode peer filter {key[:8]} --deny-tag secret --deny-tag 'it'\\''s'"), command
        assert "--reach created_here" in command and "--status" in command, command
        assert page.locator("input[type=password]").count() == 0
        apply_command(node, command, secret)
        egress = node.get(f"/v1/peers/{key}")["filters"]["egress"]
        assert sorted(egress["tags_deny"]) == ["it's", "secret"] and egress["reach"] == "created_here", egress
        page.reload()
        page.get_by_text("Edit the filter").click()
        wait_for(lambda: page.get_by_label("Hold back tags").input_value() != "", "the new filter is shown")
        page.get_by_label("Hold back tags").fill("")
        page.get_by_label("Hold back tags").press("Tab")
        page.get_by_role("button", name="Apply filter").click()
        cleared = page.locator(".notice .command", has_text="--deny-tag ''")
        cleared.wait_for()
        apply_command(node, cleared.inner_text(), secret)
        egress = node.get(f"/v1/peers/{key}")["filters"]["egress"]
        assert not egress.get("tags_deny") and egress["reach"] == "created_here", egress
        show(page, "inbox?kind=Finding")
        page.get_by_role("button", name="Keep as entry").click()
        page.locator(".notice .command", has_text="klnode task keep").wait_for()
        assert page.locator("input[type=password]").count() == 0
        assert node.get(f"/v1/tasks/{task}/findings")["findings"][0]["became"] == "waiting"
        page.is_gone = False
        expect_no_problems(page)
        page.context.close()
    finally:
        node.stop()
        peer.stop()


def apply_command(node, command, secret):
    """Runs a command of the page as a person would, in a shell."""
    words = shlex.split(command)
    assert words[0] == "klnode", command
    node.run(*words[1:], "--passphrase-file", str(secret))
