"""Forty hostile entries: markup, handlers, links, controls and sizes that a careless page would run."""

MARK = "globalThis.__hit=1"
AWAY = "http://127.0.0.2:9/away"

TEXTS = [
    f"<script>{MARK}</script>",
    f"<SCRIPT SRC={AWAY}></SCRIPT>",
    f"<img src=x onerror={MARK}>",
    f"<img src={AWAY}.png>",
    f"<svg onload={MARK}></svg>",
    f"<svg><script>{MARK}</script></svg>",
    f"<svg><a xlink:href='javascript:{MARK}'><text>x</text></a></svg>",
    f"<iframe src=javascript:{MARK}></iframe>",
    f"<iframe srcdoc='<script>parent.__hit=1</script>'></iframe>",
    f"<object data={AWAY}></object>",
    f"<embed src={AWAY}>",
    f"<link rel=stylesheet href={AWAY}.css>",
    f"<style>body{{background:url({AWAY}.gif)}}</style>",
    f"<style>@import '{AWAY}.css';</style>",
    f"<div style='background:url({AWAY})'>x</div>",
    f"<body onload={MARK}>",
    f"<input autofocus onfocus={MARK}>",
    f"<details open ontoggle={MARK}>x</details>",
    f"<video><source onerror={MARK}></video>",
    f"<audio src={AWAY} autoplay onerror={MARK}></audio>",
    f"<math><mtext><img src=x onerror={MARK}></mtext></math>",
    f"<base href={AWAY}/>",
    f"<meta http-equiv=refresh content='0;url={AWAY}'>",
    f"<form action={AWAY}><button>x</button></form>",
    f"<a href=javascript:{MARK}>click</a>",
    f"[click](javascript:{MARK})",
    f"![image]({AWAY}.png)",
    f"javascript:{MARK}",
    f"data:text/html,<script>{MARK}</script>",
    f"https://example.invalid/\"onmouseover=\"{MARK}",
    f"`code`<script>{MARK}</script>`code`",
    f"</p></div></main><script>{MARK}</script>",
    f"{{{{constructor.constructor('{MARK}')()}}}}",
    f"${{{MARK}}} <%= {MARK} %> {{% raw %}}",
    "bidi \u202eevil\u202c and \u2066isolate\u2069",
    "zero\u200bwidth\u200djoiner\ufeffmark \u00adsoft",
    "combining z" + "\u0351\u0334\u0321" * 200,
    "W" * 3000,
    "line\n" * 400,
    f"&lt;script&gt;{MARK}&lt;/script&gt; &#60;img src=x onerror={MARK}&#62;",
]


def write(node):
    """Writes the entries with hostile titles, texts, tags and evidence; returns their codes."""
    codes = []
    for number, text in enumerate(TEXTS):
        line = text.replace("\n", " ")[:180]
        entry = dict(title=f"{line}", content=f"{text}\n\nnumber {number}", tags=[f"hostile/{number}"],
                     evidence=[f"url:https://example.invalid/{number}?\"><script>{MARK}</script>"], summary=line)
        codes.append(node.post("/v1/entries", entry)["code"])
    assert len(codes) == 40, len(codes)
    return codes


def write_matters(node):
    """Writes entries, an episode and a task that make hostile insights, previews and outcomes."""
    for title in [f"<img src=x onerror={MARK}> one two three four", f"<img src=x onerror={MARK}> one two three five"]:
        node.post("/v1/entries", dict(title=title, content=f"{title} {TEXTS[0]}", tags=[f"<script>{MARK}</script>"], evidence=["doc:x"]))
    for source in ["doc:x", "doc:y"]:
        node.post("/v1/entries", dict(title=TEXTS[4], content=TEXTS[5], evidence=[source]))
    node.post("/v1/entries", dict(title=TEXTS[2], content=TEXTS[7], type="signal", memory="episodic", evidence=["doc:x"]))
    node.post("/v1/entries", dict(title=TEXTS[3], content=f"{TEXTS[4]} db1.prod.internal", workspace="team", evidence=["doc:x"]))
    task = node.post("/v1/tasks", dict(agent=TEXTS[0], goal=TEXTS[2]))["task"]
    node.post(f"/v1/tasks/{task}/finish", dict(outcome="success", strategy=TEXTS[2][:60], conclusion=TEXTS[0]))


def write_playbooks(node):
    """Writes the texts into playbooks, with hostile titles and headings; returns their codes."""
    codes = []
    for part in [TEXTS[:20], TEXTS[20:]]:
        text = "\n\n".join(f"## {line[:60]}\n\n{line}" for line in part if "\n" not in line)
        codes.append(node.post("/v1/playbooks", dict(title=part[0][:180], text=text))["code"])
    return codes


CONTENT_BYTES_MAX = 64 * 1024


def write_extremes(node):
    """Writes an entry without visible text, one with the longest text, and one with controls in every field."""
    tags, evidence = ["extreme"], ["doc:extreme"]
    bidi = "Pay \u202e05$\u202c to \u2066mallory\u2069\u200b"
    texts = [
        dict(title="No text", content="\u200b"),
        dict(title="The longest text", content="<b>W</b> " * (CONTENT_BYTES_MAX // 9), summary=""),
        dict(title=bidi, content=bidi, summary=bidi),
    ]
    return [node.post("/v1/entries", dict(one, tags=tags, evidence=evidence))["code"] for one in texts]
