// Search as you type: the answer that an agent would get, beside all matches with their scores.

import { useEffect, useRef, useState } from 'preact/hooks';
import { get, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Empty, Ready, View } from '../parts/frame';
import { Confidence, ExplainBars, Status, Trust, percent } from '../parts/judgement';
import { Line, MarkedLine, plainText } from '../parts/text';
import { ago, count } from '../parts/time';
import { entryAddress, goTo, replaceQuery, route } from '../router';

type Hit = Schemas['Hit'];
type Answer = Schemas['SearchResponse'];

/** How much of a text the agent gets. */
const FORMS: Record<string, string> = { line: 'one line', summary: 'its summary', standard: 'the passage that answers', full: 'the whole text' };

const TYPING_PAUSE_MS = 120;
const LISTED_MAX = 60;

interface Found {
  query: string;
  engine: string;
  agent: Answer;
  all: Answer;
}

async function search(query: string, engine: string, signal: AbortSignal): Promise<Found> {
  const body = { query, explain: true, unrecorded: true, deterministic: true, ...(engine ? { engine } : {}) };
  const [agent, all] = await Promise.all([
    post('/v1/search', { body, signal }),
    post('/v1/search', {
      body: { ...body, all: true, all_threads: true, nearest: true, limit: LISTED_MAX, also: ['stale', 'archived'] },
      signal,
    }),
  ]);
  return { query, engine, agent, all };
}

/** Why an entry of the full list is not in the agent's answer. */
function omission(hit: Hit, agent: Answer): string {
  const reason = agent.left_out?.[hit.id];
  if (reason) return reason;
  if (hit.status === 'stale' || hit.status === 'archived') return `${hit.status}: answers only on request`;
  if (hit.foreign && hit.explain?.gate_reason) return hit.explain.gate_reason;
  if (agent.abstained) return 'not relevant enough for an answer';
  return hit.explain?.gate_reason ?? 'below the limit of the answer';
}

function HitRow({ hit, place, why, isTop }: { hit: Hit; place: number; why: string | null; isTop: boolean }) {
  const [isOpen, setOpen] = useState(isTop);
  const explain = hit.explain;
  return (
    <li class={why ? 'hit withheld' : 'hit'}>
      <div class="hit-head">
        <a href={entryAddress(hit.code)} class="hit-title">
          <Line text={hit.title} empty="(no title)" />
        </a>
        <Status status={hit.status} {...(explain ? { reason: explain.status_reason } : {})} />
        {(hit.contested?.length ?? 0) > 0 && <span class="badge conflict">Conflict</span>}
        {(hit.competing_with?.length ?? 0) > 0 && <span class="badge conflict">Contradicted</span>}
        {hit.pinned && <span class="badge">Pinned</span>}
      </div>
      <p class="hit-text">
        <MarkedLine text={hit.one_liner || hit.content} />
      </p>
      <div class="hit-foot">
        <span class="code">{hit.code}</span>
        <Confidence alpha={hit.alpha} beta={hit.beta} mean={hit.mean} />
        <Trust value={hit.trust} name={hit.author_name ?? ''} isForeign={hit.foreign} />
        {hit.foreign && (
          <span class="muted">
            <Line text={hit.author_name} />
          </span>
        )}
        <span class="muted">{ago(hit.updated)}</span>
        <span class="score" title="The score by which hits are ranked">
          {hit.score.toFixed(2)}
        </span>
        {explain && (
          <button type="button" class="quiet small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide score' : 'Explain'} <span class="hidden">of hit {place}</span>
          </button>
        )}
      </div>
      {why && (
        <p class="withheld-reason">
          <strong>Not in the agent’s answer:</strong> <Line text={why} />
        </p>
      )}
      {isOpen && explain && (
        <div class="hit-explain">
          <ExplainBars adds={explain.adds} signals={explain.signals} />
          <p class="muted small">
            {hit.probability ? `Answers the question with a probability of ${percent(hit.probability)}. ` : ''}Covers {percent(explain.coverage)} of the words, meaning {percent(explain.meaning)}
            {explain.foreign_factor ? `, × ${explain.foreign_factor.toFixed(2)} because another person wrote it` : ''}
            {explain.pin_bonus ? `, + ${explain.pin_bonus.toFixed(2)} pinned` : ''}
            {explain.demotion ? `, − ${explain.demotion.toFixed(2)} weak answers before` : ''}.
          </p>
        </div>
      )}
      {(hit.caveats?.length ?? 0) > 0 && (
        <ul class="caveats caveat">
          {hit.caveats!.map((caveat) => (
            <li>
              <Line text={caveat} />
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}

function AgentAnswer({ answer }: { answer: Answer }) {
  return (
    <aside class="panel agent" aria-label="The answer an agent gets">
      <header>
        <h2>An agent receives</h2>
        <span class="muted">
          {answer.hits.length} of {answer.hits.length + (answer.withheld ?? 0) + Object.keys(answer.left_out ?? {}).length} · {count(answer.tokens)} tokens
        </span>
      </header>
      {answer.hits.length > 0 && answer.grade === 'weak' && (
        <p class="note warn">A weak answer: the agent gets these titles as near the topic, not as an answer.</p>
      )}
      {answer.hits.length === 0 && (
        <p class="muted">
          <Line text={answer.reason ?? 'Nothing: no entry is relevant enough.'} />
        </p>
      )}
      <ol class="quotes">
        {answer.hits.map((hit) => (
          <li>
            <span class="code">{hit.code}</span> <Line text={hit.title} empty="(no title)" />
            <p class="quote">
              <MarkedLine text={hit.content} />
            </p>
            <span class="muted small">{FORMS[hit.form] ?? hit.form}</span>
          </li>
        ))}
      </ol>
      {(answer.withheld ?? 0) > 0 && (
        <p class="note warn">
          {answer.withheld} relevant {answer.withheld === 1 ? 'entry is' : 'entries are'} withheld: the author is not trusted enough yet.
        </p>
      )}
      {answer.fallback && (
        <p class="note warn">
          Answered by <Line text={answer.fallback.engine} />: <Line text={answer.fallback.reason} />
        </p>
      )}
    </aside>
  );
}

function Results({ found }: { found: Found }) {
  const { agent, all } = found;
  const served = new Set(agent.hits.map((hit) => hit.id));
  const isNear = all.hits.length === 0 && (all.nearest?.length ?? 0) > 0;
  const hits = isNear ? all.nearest! : all.hits;
  return (
    <div class="split" data-query={plainText(found.query)}>
      <div>
        <p class="muted summary" role="status">
          {isNear ? 'No relevant entry. The nearest are:' : `${all.hits.length}${all.hits.length >= LISTED_MAX ? '+' : ''} matches`}
          {all.index_lag > 0 && ` · ${count(all.index_lag)} records not indexed yet`}
        </p>
        {hits.length === 0 && <Empty title="No entry matches">Try other words, or the name of a file or function.</Empty>}
        <ol class="hits">
          {hits.map((hit, index) => (
            <HitRow key={hit.id} hit={hit} place={index + 1} isTop={index === 0} why={served.has(hit.id) ? null : omission(hit, agent)} />
          ))}
        </ol>
      </div>
      <AgentAnswer answer={agent} />
    </div>
  );
}

function Recent() {
  const recent = useLoad((signal) => get('/v1/entries', { query: { limit: 12, recent: true }, signal }), 'recent');
  return (
    <Ready loaded={recent}>
      {(page) =>
        page.entries.length === 0 ? (
          <Empty title="This node holds no entries yet" command={'klnode add --title "…" --content "…" --evidence doc:notes'}>
            An entry is a piece of knowledge with evidence. Agents add entries while they work; you can add one in a terminal.
          </Empty>
        ) : (
          <>
            <h2 class="section">Recently changed</h2>
            <ul class="cards">
              {page.entries.map((entry) => (
                <li>
                  <a class="card" href={entryAddress(entry.code)}>
                    <span class="card-head">
                      <span class="code">{entry.code}</span>
                      <Status status={entry.status} reason={entry.status_reason} />
                    </span>
                    <strong>
                      <Line text={entry.title} empty="(no title)" />
                    </strong>
                    <span class="card-foot">
                      <Confidence alpha={entry.alpha} beta={entry.beta} mean={entry.mean} />
                      <span class="muted">{ago(entry.updated)}</span>
                    </span>
                  </a>
                </li>
              ))}
            </ul>
          </>
        )
      }
    </Ready>
  );
}

export function SearchView() {
  const [text, setText] = useState(route.value.query.get('q') ?? '');
  const [engine, setEngine] = useState(route.value.query.get('engine') ?? '');
  const [query, setQuery] = useState(text);
  // The results of the last question stay until those of the next are here.
  const [found, setFound] = useState<Found | null>(null);
  const input = useRef<HTMLInputElement>(null);
  /** The question whose first hit Enter opens as soon as its results are here. */
  const opening = useRef<string | null>(null);
  useEffect(() => {
    const pause = setTimeout(() => setQuery(text.trim()), TYPING_PAUSE_MS);
    return () => clearTimeout(pause);
  }, [text]);
  const loaded = useLoad(async (signal) => (query === '' ? null : search(query, engine, signal)), `search ${engine} ${query}`);
  const result = loaded.data;
  useEffect(() => {
    if (result === undefined) return;
    setFound(result);
    const first = result?.all.hits[0];
    if (first && opening.current === result.query) goTo(entryAddress(first.code));
    else if (result) opening.current = null;
  }, [result]);
  useEffect(() => replaceQuery({ q: query, engine }), [query, engine]);
  // A link or the browser's history may change the question as well.
  const asked = route.value.query.get('q') ?? '';
  useEffect(() => {
    if (asked !== query) {
      setText(asked);
      setQuery(asked);
    }
  }, [asked]);
  useEffect(() => input.current?.focus(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape') setText('');
    if (event.key !== 'Enter') return;
    const asked = text.trim();
    const isAnswered = found?.query === asked && found.engine === engine;
    const first = isAnswered ? found.all.hits[0] : undefined;
    if (first) goTo(entryAddress(first.code));
    if (isAnswered || asked === '') return;
    // The results of an earlier question are still shown.
    opening.current = asked;
    setQuery(asked);
  };
  return (
    <View title="Search">
      <div class="search-bar" role="search">
        <input
          id="search"
          ref={input}
          type="search"
          autocomplete="off"
          spellcheck={false}
          placeholder="Ask in plain words, or type a symbol, path or error code"
          aria-label="Search entries"
          value={text}
          onInput={(event) => {
            opening.current = null;
            setText(event.currentTarget.value);
          }}
          onKeyDown={onKeyDown}
        />
        <select aria-label="Search engine" value={engine} onChange={(event) => setEngine(event.currentTarget.value)}>
          <option value="">Hybrid</option>
          <option value="keyword">Keywords</option>
          <option value="vectors">Meaning</option>
        </select>
      </div>
      {loaded.error && (
        <p class="note error" role="alert">
          <Line text={loaded.error.message} />
        </p>
      )}
      {query === '' ? (
        <Recent />
      ) : found ? (
        <Results found={found} />
      ) : (
        !loaded.error && (
          <div class="skeleton" aria-busy="true" aria-label="Searching">
            <span />
            <span />
          </div>
        )
      )}
    </View>
  );
}
