"""Measures the page of a node with many entries: the first paint, search as you type, the way to the end of
the list, and the memory of the node. Prints one line for each figure."""

import argparse
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile
import time

from playwright.sync_api import sync_playwright

from browser import Browser, expect_no_problems, show
from node import Node, wait_for

PAINTS = 5
IMPORT_DEADLINE_S = 3600
END_DEADLINE_S = 900
TOPICS = "deploy database payment retry session cache tenant report webhook parser index migration worker queue gateway proxy token export import schema".split()
RULES = "fails needs returns rejects locks reads writes drops keeps waits limits expires merges splits".split()
PARTS = "handler client pool table header timeout batch lease shard replica bucket topic cursor budget flag".split()
"""Enters each text and waits for its results; returns milliseconds from the input event to the rendered results."""
TYPE = """async texts => {
  const field = document.getElementById('search');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const isShown = text => document.querySelector('.split')?.dataset.query === text;
  const times = [];
  for (const text of texts) {
    const begun = performance.now();
    set.call(field, text);
    field.dispatchEvent(new InputEvent('input', {bubbles: true}));
    await new Promise(resolve => {
      const observer = new MutationObserver(() => isShown(text) && (observer.disconnect(), resolve()));
      observer.observe(document.body, {subtree: true, childList: true, attributes: true});
    });
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - begun);
  }
  return times;
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
LAST_ROW = "document.querySelector(`[aria-posinset='${document.querySelector('.virtual-row')?.ariaSetSize}']`) !== null"


def text_lines(entries):
    """Plain lines for an import: different texts of about 400 bytes."""
    draw = random.Random(1)
    for number in range(entries):
        topic, part = draw.choice(TOPICS), draw.choice(PARTS)
        sentences = [f"The {draw.choice(TOPICS)} {draw.choice(PARTS)} {draw.choice(RULES)} when the {draw.choice(TOPICS)} {draw.choice(PARTS)} {draw.choice(RULES)}." for _ in range(6)]
        yield json.dumps(dict(title=f"The {topic} {part} {draw.choice(RULES)} in case {number}", content=" ".join(sentences), evidence=["doc:bench"]))


def resident_mb(node):
    status = pathlib.Path(f"/proc/{node.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


def fill(node, folder, entries):
    file = folder / "entries.jsonl"
    file.write_text("\n".join(text_lines(entries)) + "\n")
    command = [node.program, "--home", str(node.home), "import", str(file)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=IMPORT_DEADLINE_S)
    is_ready = lambda: (lambda index: index["lag"] == 0 and index["is_settled"])(node.get("/v1/status")["index"])
    wait_for(is_ready, "the index is complete", IMPORT_DEADLINE_S)


def questions():
    """Texts in the order of typing: each question letter by letter from its sixth letter on."""
    draw = random.Random(2)
    for _ in range(12):
        question = f"{draw.choice(TOPICS)} {draw.choice(PARTS)} {draw.choice(RULES)}"
        yield from (question[:end] for end in range(6, len(question) + 1) if question[end - 1] != " ")


def measure_end(page):
    """Seconds from a jump to the end of the list of entries until its last row is there."""
    show(page, "entries")
    page.locator(".virtual-row").first.wait_for()
    begun = time.monotonic()
    page.evaluate("(list => { list.scrollTop = list.scrollHeight; })(document.querySelector('.virtual'))")
    wait_for(lambda: page.evaluate(LAST_ROW), "the last row is there", END_DEADLINE_S)
    return time.monotonic() - begun


def main():
    options = argparse.ArgumentParser()
    options.add_argument("klnode")
    options.add_argument("--chromium", default="/usr/bin/chromium")
    options.add_argument("--entries", type=int, default=100_000)
    given = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="klnode-bench-"))
    node = Node(given.klnode, folder / "home", "bench").start()
    try:
        fill(node, folder, given.entries)
        node.stop()
        node.start()
        print(f"entries: {given.entries}")
        with sync_playwright() as playwright:
            browser = Browser(playwright, given.chromium)
            before = resident_mb(node)
            paints = []
            for _ in range(PAINTS):
                page = browser.open(node)
                paints.append(page.evaluate(PAINT))
                page.context.close()
            print(f"first contentful paint, median of {PAINTS}: {statistics.median(paints):.0f} ms")
            page = browser.open(node)
            show(page, "search")
            times = sorted(page.evaluate(TYPE, list(questions())))
            at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
            print(f"keystroke to results, {len(times)} texts: p50 {at(0.5):.0f} ms, p95 {at(0.95):.0f} ms")
            print(f"end of the list of entries: {measure_end(page):.1f} s")
            expect_no_problems(page)
            print(f"memory of the node: {before:.0f} MB before, {resident_mb(node):.0f} MB after")
    finally:
        node.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
