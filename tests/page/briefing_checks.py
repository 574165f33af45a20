"""Checks of the briefing with its acts, of held entries, outcomes and settings, and of empty views."""

import re

import sample_data
from browser import expect_no_problems, show
from conformance import conforms
from node import Node, wait_for

EMPTY_VIEWS = ["search", "entries", "briefing", "inbox", "tasks", "usage", "peers", "playbooks"]


def is_focused(locator):
    return locator.evaluate("element => element === document.activeElement")


def undo(page, message):
    page.locator(".notice", has_text=message).get_by_role("button", name="Undo").click()


def check_insights(page, node):
    """The most severe insight is first, its suggestion is a button, and a dismissal can be undone."""
    show(page, "briefing")
    item = page.locator(".insight", has_text="contradict each other")
    item.get_by_text(sample_data.OPPOSITES[0]["title"]).wait_for()
    assert "contradict each other" in page.locator(".insight").first.inner_text()
    assert page.get_by_role("region", name="Act now").locator(".insight").count() == 1
    tasks = lambda: len(node.get("/v1/tasks?limit=1000")["tasks"])
    before = tasks()
    begin = item.get_by_role("button", name="Begin a task")
    begin.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_text("researcher").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    assert is_focused(begin) and tasks() == before, "a preview changes nothing"
    begin.click()
    page.get_by_role("button", name="Begin", exact=True).click()
    page.get_by_role("heading", name="Task", exact=True).wait_for()
    assert tasks() == before + 1
    show(page, "briefing")
    item.get_by_role("link", name="Compare").click()
    page.get_by_role("heading", name="Compare").wait_for()
    for one in sample_data.OPPOSITES:
        page.get_by_role("link", name=one["title"]).wait_for()
    check_dismissal(page, node, item)
    expect_no_problems(page)


def check_dismissal(page, node, item):
    listed = lambda: [one for one in node.get("/v1/insights")["insights"] if one["rule"] == 2]
    show(page, "briefing")
    item.get_by_role("button", name="Dismiss").click()
    item.wait_for(state="detached")
    assert not listed(), "the insight is dismissed on the node"
    undo(page, "It returns only with new evidence.")
    item.wait_for()
    assert listed(), "the dismissal is taken back"
    item.get_by_role("button", name="Dismiss").click()
    item.wait_for(state="detached")
    page.get_by_role("button", name="Show 1 dismissed").click()
    item.get_by_role("button", name="Show again").click()
    item.get_by_role("button", name="Dismiss").wait_for()
    assert listed()
    page.get_by_role("button", name="Hide dismissed").click()


def check_dedup(page, node):
    """Equal texts are merged after a preview only, and the merge can be undone."""
    conforms("S004-65")
    made = [node.post("/v1/entries", entry) for entry in sample_data.EQUAL]
    merged = lambda: [one for one in made if node.get(f"/v1/entries/{one['id']}").get("merged_into")]
    show(page, "briefing")
    page.get_by_role("button", name="Dedup").click()
    page.get_by_role("dialog").get_by_text(made[0]["code"]).wait_for()
    assert not merged(), "a preview merges nothing"
    page.get_by_role("dialog").get_by_role("button", name="Merge").click()
    wait_for(merged, "the equal texts are merged")
    undo(page, "merged. Each can be undone")
    wait_for(lambda: not merged(), "the merge is undone")
    expect_no_problems(page)


def check_stale(page, node):
    """The chosen entries are archived after a preview, and restored by Undo."""
    conforms("S004-65")
    code = node.post("/v1/entries", sample_data.OUTDATED)["code"]
    status = lambda: node.get(f"/v1/entries/{code}")["status"]
    # An entry becomes stale after a day at the earliest, so the list of stale entries is a sample.
    sample = node.get(f"/v1/entries?tag={sample_data.OUTDATED['tags'][0]}")
    # A pattern, not a function: while a check waits, no function of it is called.
    is_stale = re.compile(r"/v1/entries\?.*status=stale")
    page.route(is_stale, lambda route: route.fulfill(json=sample))
    show(page, "briefing")
    page.get_by_role("button", name="Stale").click()
    box = page.get_by_role("dialog").get_by_role("checkbox")
    box.click()
    assert page.get_by_role("button", name="Archive 0").is_disabled()
    box.click()
    assert status() == "candidate", "a preview archives nothing"
    page.get_by_role("button", name="Archive 1").click()
    wait_for(lambda: status() == "archived", "the entry is archived")
    undo(page, "1 archived.")
    wait_for(lambda: status() == "candidate", "the entry is restored")
    page.unroute(is_stale)
    show(page, "briefing")
    page.get_by_role("button", name="Stale").click()
    page.get_by_text("No entry is stale").wait_for()
    page.keyboard.press("Escape")
    expect_no_problems(page)


def check_promotion(page, node):
    """An episode is promoted with a reason, which the ledger keeps and shows."""
    conforms("S004-65")
    reason = "Seen in two incidents"
    ledger = lambda: [one["reason"] for one in node.get("/v1/promotions")["promotions"]]
    show(page, "briefing")
    page.get_by_role("button", name="Promote").click()
    row = page.locator("dialog li", has_text=sample_data.EPISODE["title"])
    row.get_by_role("button", name="Preview").click()
    page.get_by_role("dialog", name="Approve a promotion").get_by_text(sample_data.EPISODE["content"]).wait_for()
    page.get_by_role("button", name="Approve and promote").click()
    assert page.locator("input[name=approve]:invalid").count() == 1, "an approval needs a reason"
    assert ledger() == [], "a preview promotes nothing"
    page.locator("input[name=approve]").fill(reason)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Links").wait_for()
    assert ledger() == [reason], ledger()
    show(page, "briefing")
    page.get_by_role("button", name="Promote").click()
    page.get_by_text("Promotions so far: 1").click()
    page.get_by_role("dialog").get_by_text(reason).wait_for()
    page.keyboard.press("Escape")
    expect_no_problems(page)


def check_held(page, node):
    """An entry that discloses a host name waits in the inbox, and a key releases it."""
    held = lambda: len(node.get("/v1/held")["entries"])
    assert held() == 1
    show(page, "inbox?kind=Held")
    page.locator(".inbox-item", has_text=sample_data.HELD_HOST).wait_for()
    page.keyboard.press("j")
    page.locator(".inbox-item.active").wait_for()
    page.keyboard.press("a")
    page.get_by_text("Released: peers and agents get it").wait_for()
    wait_for(lambda: held() == 0, "the entry is released")
    page.locator(".inbox-item", has_text=sample_data.HELD_HOST).wait_for(state="detached")
    expect_no_problems(page)


def check_outcomes(page):
    show(page, "usage")
    row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=sample_data.STRATEGY))
    row.get_by_text("75 %").wait_for()
    expect_no_problems(page)


def check_settings(page):
    """Settings that are set come first, with their origin; a search finds the others and explains them."""
    show(page, "status")
    assert re.search(r"\d [KMGT]iB", page.locator(".pairs div", has_text="Free on the disk").inner_text())
    row = page.locator(".setting", has_text="network.name")
    row.wait_for()
    assert "flag --set" in row.inner_text() and "laptop" in row.inner_text()
    find = page.get_by_label("Find a setting")
    find.fill("trust.hop_max")
    row = page.locator(".setting")
    wait_for(lambda: row.count() == 1, "the search finds one setting")
    assert "default" in row.inner_text()
    row.locator("summary").press("Enter")
    row.get_by_text("KLNODE__TRUST__HOP_MAX").wait_for()
    find.fill("no such setting")
    page.get_by_text("No key or comment contains these words.").wait_for()
    expect_no_problems(page)


def check_empty(browser, program, homes):
    """Each view of an empty node teaches how to fill it."""
    node = Node(program, homes / "empty", "empty").start()
    try:
        page = browser.open(node, viewport=dict(width=360, height=740))
        for view in EMPTY_VIEWS:
            show(page, view)
            page.locator(".empty").first.wait_for()
        expect_no_problems(page)
        page.context.close()
    finally:
        node.stop()
