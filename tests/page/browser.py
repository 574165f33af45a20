"""Chromium with sessions of a node, and the waits of the page checks."""

from node import wait_for

# A machine that builds at the same time is slow.
PATIENCE_MS = 60_000
# Chromium has no sandbox for root, and these checks need no services of its maker.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Browser:
    """Chromium, and pages with a session of a node."""

    def __init__(self, playwright, chromium):
        self.chromium = playwright.chromium.launch(executable_path=chromium, args=FLAGS, timeout=PATIENCE_MS)

    def open(self, node, **options):
        """A page with a new session. Its problems are collected in `page.problems`."""
        options.setdefault("viewport", dict(width=1280, height=860))
        context = self.chromium.new_context(reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        page.problems, page.is_gone = [], False
        ticket = node.post("/v1/page")
        page.base = ticket["address"]
        page.on("pageerror", lambda error: page.problems.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (page.problems.append("dialog"), dialog.dismiss()))
        page.on("console", lambda message: self.note_console(page, message))
        page.on("request", lambda request: self.note_request(page, request))
        page.goto(f"{page.base}#code={ticket['code']}")
        page.get_by_role("navigation").wait_for()
        page.get_by_text("Live", exact=True).first.wait_for(state="attached")
        return page

    @staticmethod
    def note_console(page, message):
        if message.type == "error" and not page.is_gone:
            page.problems.append(f"console: {message.text}")

    @staticmethod
    def note_request(page, request):
        if not request.url.startswith(page.base):
            page.problems.append(f"request: {request.url}")


def show(page, address):
    """Opens a view and waits until its data is there."""
    page.goto(f"{page.base}#/{address}")
    page.locator("#view-title").wait_for()
    wait_for(lambda: page.locator(".skeleton").count() == 0, f"{address} has its data")


def expect_no_problems(page):
    assert not page.problems, page.problems
