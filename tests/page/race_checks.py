"""Checks of the page while others write, and of answers that arrive late."""

import re

from playwright.sync_api import Error

from browser import expect_no_problems, show
from node import wait_for


MAIL_FINDING = "The mail queue drops a message after three bounces."


class Held:
    """Holds the requests for an address until they are released."""

    def __init__(self, page, address):
        self.page, self.address, self.routes, self.is_holding = page, address, [], True
        page.route(address, self.take)

    def take(self, route):
        if self.is_holding:
            self.routes.append(route)
        else:
            route.continue_()

    def wait(self, number=1):
        """Waits until this many requests are held."""
        # A question to the page lets Playwright hand over the requests.
        wait_for(lambda: self.page.evaluate("1") and len(self.routes) >= number, f"{self.address} is requested")

    def release(self):
        self.is_holding = False
        for route in self.routes:
            try:
                route.continue_()
            except Error:
                pass  # The page has aborted this request.
        self.page.unroute(self.address)


def check_concurrent_edit(page, node):
    """An edit keeps what others changed meanwhile, and replaces their text only knowingly."""
    made = node.post("/v1/entries", dict(title="Lint before you push", content="Run the linter.", tags=["lint"], evidence=["doc:lint"]))
    entry = lambda: node.get(f"/v1/entries/{made['id']}")
    write = lambda **edit: node.call("PATCH", f"/v1/entries/{made['id']}", edit)
    show(page, f"entry/{made['code']}")
    begin = page.get_by_role("toolbar").get_by_role("button", name="Edit")
    content = page.locator("textarea[name=content]")
    begin.click()
    page.keyboard.press("Escape")
    begin.click()
    content.fill("Run the linter twice.")
    write(registers=dict(title="Lint before each push"), add_tags=["push"])
    page.get_by_role("heading", name="Lint before each push").wait_for()
    content.press("Escape")
    assert content.input_value() == "Run the linter twice.", "Escape keeps a draft"
    page.get_by_role("button", name="Save").click()
    wait_for(lambda: entry()["content"] == "Run the linter twice.", "the edit is stored")
    assert entry()["title"] == "Lint before each push" and set(entry()["tags"]) == {"lint", "push"}, entry()
    page.locator(".notice", has_text="Saved.").last.get_by_role("button", name="Undo").click()
    wait_for(lambda: entry()["content"] == "Run the linter.", "the edit is undone")
    assert entry()["title"] == "Lint before each push" and set(entry()["tags"]) == {"lint", "push"}, entry()
    begin.click()
    content.fill("Run no linter.")
    write(registers=dict(content="Run the linter in CI."))
    page.get_by_text("Changed since you opened it: content.").wait_for()
    page.locator(".note", has_text="Run the linter in CI.").wait_for()
    assert entry()["content"] == "Run the linter in CI."
    page.get_by_role("button", name="Replace the other change").click()
    wait_for(lambda: entry()["content"] == "Run no linter.", "the other text is replaced on request")
    expect_no_problems(page)


def check_slow_load(page, node):
    """Changes do not abort a load that is in progress, and it is repeated once at its end."""
    show(page, "usage")
    held = Held(page, re.compile(r"/v1/workspaces$"))
    page.goto(f"{page.base}#/status")
    held.wait()
    for number in range(2):
        shown = page.locator(".pairs div", has_text="Position in the feed").locator("dd")
        before = shown.inner_text()
        node.post("/v1/entries", dict(title=f"Written during a slow load {number}", content="Slow.", evidence=["doc:slow"]))
        wait_for(lambda: shown.inner_text() != before, "the page follows the change")
    assert len(held.routes) == 1, "the load in progress is not repeated"
    repeated = []
    page.on("request", lambda request: repeated.append(request) if request.url.endswith("/v1/workspaces") else None)
    held.release()
    page.get_by_role("heading", name="Workspaces").wait_for()
    wait_for(lambda: page.evaluate("1") and repeated, "it is repeated at its end")
    expect_no_problems(page)


def check_filters(page, node):
    """The list shows the answer to the last filter, and the error of a failed load."""
    show(page, "entries")
    status = page.get_by_label("Status", exact=True)
    held = Held(page, re.compile(r"/v1/entries\?.*status=archived"))
    status.select_option("archived")
    held.wait()
    status.select_option("candidate")
    page.locator(".virtual-row").first.wait_for()
    held.release()
    show(page, "entries?status=candidate")
    assert page.locator(".virtual-row .status-candidate").count() == page.locator(".virtual-row .badge[class*=status-]").count() > 0
    failing = re.compile(r"/v1/entries\?.*status=retracted")
    page.route(failing, lambda route: route.fulfill(status=503, json=dict(error=dict(kind="busy", message="The node is busy."))))
    page.is_gone = True  # The browser logs the failed request.
    status.select_option("retracted")
    page.get_by_role("alert").get_by_text("The node is busy.").wait_for()
    page.unroute(failing)
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("No entry passes these filters").wait_for()
    page.is_gone = False
    expect_no_problems(page)


def check_search_order(page, node):
    """Enter opens a hit of the typed question, and the results follow changes."""
    show(page, "search?q=database%20pool%20size")
    page.locator(".hit").first.wait_for()
    held = Held(page, re.compile(r"/v1/search$"))
    box = page.get_by_label("Search entries")
    box.fill("retry budget payment client")
    box.press("Enter")
    held.wait(2)
    assert page.locator("#search").count() == 1, "no hit of the earlier question is opened"
    held.release()
    page.get_by_role("heading", level=1, name="The retry budget of the payment client").wait_for()
    show(page, "search?q=zebra%20crossing%20timetable")
    made = node.post("/v1/entries", dict(title="The zebra crossing timetable is public", content="Ask the zebra.", evidence=["doc:zebra"]))
    page.locator(".hit", has_text="The zebra crossing timetable is public").wait_for()
    node.post(f"/v1/entries/{made['id']}/forget")
    page.locator(".hit", has_text="The zebra crossing timetable is public").wait_for(state="detached")
    expect_no_problems(page)


def check_inbox_shortcuts(page, node):
    """The shortcuts of the page act on no item of the inbox, and one decision runs at a time."""
    # A new finding is no event, so the inbox is opened again.
    show(page, "status")
    show(page, "inbox?kind=Finding")
    page.locator(".inbox-item", has_text=MAIL_FINDING).wait_for()
    waiting = page.locator(".inbox-item")
    before = waiting.count()
    page.keyboard.press("j")
    page.locator(".inbox-item.active").wait_for()
    for key in "ga":
        page.keyboard.press(key)
    for key in "ge":
        page.keyboard.press(key)
    page.get_by_role("heading", name="Entries").wait_for()
    assert page.url.endswith("#/entries"), page.url
    show(page, "inbox?kind=Finding")
    assert waiting.count() == before, "g and a letter decide nothing"
    sent = Held(page, re.compile(r"/findings/\d+/keep$"))
    page.keyboard.press("j")
    page.locator(".inbox-item.active").wait_for()
    for _ in range(3):
        page.keyboard.press("a")
    sent.wait()
    page.locator(".inbox-item.active").wait_for()
    assert len(sent.routes) == 1, "keys during a decision are ignored"
    sent.release()
    page.get_by_text("Kept: it is a candidate entry now.").wait_for()
    wait_for(lambda: waiting.count() == before - 1, "the finding left the inbox")
    expect_no_problems(page)


def add_finding(node):
    """A finding that waits for the decision of a check."""
    task = node.post("/v1/tasks", dict(agent="claude-code", goal="Review the mail service"))["task"]
    finding = dict(severity="high", confidence=0.8, text=MAIL_FINDING, anchors=['text:src/mail.rs~"bounce"'], verify=["Read mail.rs"])
    node.post(f"/v1/tasks/{task}/findings", finding)
