"""Shows hostile entries, peers and playbooks on every view: nothing runs, nothing loads, and no invisible
control character reaches the page as it is."""

import re

import hostile_entries
import sample_data
from browser import expect_no_problems, show
from node import Node

# Invisible characters that hide letters or change the direction of a line.
CONTROLS = "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]"
"""Texts and attributes with a control. Fields for editing show the text itself."""
RAW_CONTROLS = """controls => {
  const pattern = new RegExp(controls, 'u'), found = [];
  for (const element of document.querySelectorAll('body, body *')) {
    if (element.matches('script, style, textarea')) continue;
    for (const node of element.childNodes) if (node.nodeType === Node.TEXT_NODE && pattern.test(node.data)) found.push(`${element.tagName}.${element.className}: ${JSON.stringify(node.data)}`);
    for (const {name, value} of element.attributes) if (name !== 'value' && pattern.test(value)) found.push(`${element.tagName} ${name}: ${JSON.stringify(value)}`);
  }
  return found;
}"""


def expect_visible_controls(page, what):
    found = page.evaluate(RAW_CONTROLS, CONTROLS)
    assert not found, f"{what} has raw controls: {found[:5]}"


def visit(page, address):
    show(page, address)
    expect_visible_controls(page, address)


def check_hostile(browser, program, homes, views):
    """No view of a node with hostile entries and a hostile peer runs or loads anything."""
    peer = Node(program, homes / "evil", "<img src=x onerror=globalThis.__hit=1>").start()
    node = Node(program, homes / "hostile", "victim").start()
    try:
        codes = hostile_entries.write(node)
        node.post("/v1/tasks", dict(agent="<script>globalThis.__hit=1</script>", goal=hostile_entries.TEXTS[2]))
        playbooks = hostile_entries.write_playbooks(node)
        sample_data.pair(node, peer, "team")
        hostile_entries.write_matters(node)
        extreme = hostile_entries.write_extremes(node)
        page = browser.open(node)
        check_hostile_previews(page)
        check_hostile_acts(page, node, codes, extreme)
        key = node.get("/v1/peers")["peers"][0]["peer"]
        task = node.get("/v1/tasks?limit=10")["tasks"][0]["task"]
        pair = "+".join(codes[34:36])
        others = ["search?q=script", "search?q=hostile%20number", f"peers/{key}", "entries?tag=hostile", f"tasks/{task}", f"compare/{pair}"]
        for view in [*views, *others]:
            visit(page, view)
        check_hostile_peer_name(page, key)
        for code in [*codes, *extreme]:
            visit(page, f"entry/{code}")
            page.get_by_role("heading", name="History").wait_for()
        for code in playbooks:
            show(page, f"playbooks/{code}")
            page.locator(".row-button").first.click()
            page.locator(".diff li").first.wait_for()
            page.get_by_role("button", name="Authors").click()
            page.locator(".blame li").first.wait_for()
            expect_visible_controls(page, f"playbooks/{code}")
        assert page.evaluate("globalThis.__hit") is None, "a script of an entry ran"
        made = page.evaluate("document.querySelectorAll('iframe, object, embed, base, video, audio, form[action]').length")
        assert made == 0, "markup of an entry became an element"
        links = page.evaluate("[...document.links].map(link => link.href)")
        assert not [link for link in links if link.lower().startswith(("javascript:", "data:"))], links
        expect_no_problems(page)
        page.context.close()
    finally:
        node.stop()
        peer.stop()


def check_hostile_previews(page):
    """Opens the previews and lists that show hostile texts."""
    show(page, "briefing")
    page.locator(".insight", has_text="may be one entry").get_by_text("one two three four").wait_for()
    page.get_by_role("button", name="Dedup").click()
    page.get_by_role("dialog").get_by_text(hostile_entries.TEXTS[4]).first.wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Promote").click()
    page.get_by_role("dialog").get_by_role("button", name="Preview").first.click()
    page.get_by_role("dialog").get_by_text(hostile_entries.TEXTS[7]).wait_for()
    page.keyboard.press("Escape")
    show(page, "usage")
    page.get_by_role("rowheader", name=hostile_entries.TEXTS[2]).wait_for()
    show(page, "inbox?kind=Held")
    page.locator(".inbox-item", has_text="db1.prod.internal").wait_for()



def check_hostile_acts(page, node, codes, extreme):
    """Opens the editor and the dialogs of entries with controls, without text, and with the longest text."""
    empty, longest, bidi = extreme
    show(page, f"entry/{bidi}")
    page.get_by_role("heading", level=1, name="U+202E").wait_for()
    page.get_by_role("toolbar").get_by_role("button", name="Forget").click()
    page.get_by_role("dialog").get_by_text("U+202E").first.wait_for()
    expect_visible_controls(page, "the Forget dialog")
    page.keyboard.press("Escape")
    page.get_by_role("toolbar").get_by_role("button", name="Promote").click()
    page.get_by_role("dialog").get_by_text("U+202E").first.wait_for()
    expect_visible_controls(page, "the Promote dialog")
    page.keyboard.press("Escape")
    for code in [bidi, empty, longest, codes[0]]:
        show(page, f"entry/{code}")
        page.get_by_role("toolbar").get_by_role("button", name="Edit").click()
        page.locator("textarea[name=content]").wait_for()
        expect_visible_controls(page, f"the editor of {code}")
        page.keyboard.press("Escape")
    show(page, f"entry/{longest}")
    page.get_by_text("more characters").wait_for()
    stale = re.compile(r"/v1/entries\?.*status=stale")
    # An entry becomes stale after a day at the earliest, so the list of stale entries is a sample.
    sample = node.get("/v1/entries?tag=extreme")
    page.route(stale, lambda route: route.fulfill(json=sample))
    show(page, "briefing")
    page.get_by_role("button", name="Stale").click()
    page.get_by_role("dialog").get_by_text("U+202E").first.wait_for()
    expect_visible_controls(page, "the Stale dialog")
    page.keyboard.press("Escape")
    page.unroute(stale)


def check_hostile_peer_name(page, key):
    """A node removes controls from the names of peers. If one got through, the page shows its code."""
    name = "\u202egnp\u202c <b>peer</b>"

    def rename(route):
        answer = route.fetch()
        found = answer.json()
        for peer in [found, *found.get("peers", [])]:
            peer["name"] = name
        route.fulfill(response=answer, json=found)

    peers = re.compile(r"/v1/peers(/[0-9a-f]+)?$")
    page.route(peers, rename)
    for address in ["peers", f"peers/{key}"]:
        visit(page, "status")
        visit(page, address)
        page.locator(".line", has_text="U+202E").first.wait_for()
    page.unroute(peers)
