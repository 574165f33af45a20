// The briefing: what stands out, by severity, with the suggested act as a button. Dedup, Stale and
// Promote show a preview before they apply anything.

import { useState } from 'preact/hooks';
import { get, patch, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Dialog } from '../parts/dialog';
import { Empty, Panel, Ready, View } from '../parts/frame';
import { Confidence, Status } from '../parts/judgement';
import { act } from '../parts/notice';
import { Line } from '../parts/text';
import { count } from '../parts/time';
import { entryAddress } from '../router';
import { PromoteDialog } from './entry_acts';

type Entry = Schemas['Entry'];
type Severity = 'high' | 'medium' | 'low';

interface Insight {
  severity: Severity;
  text: string;
  why: string;
  label: string;
  address: string;
}

const MARKS: Record<string, [Severity, string]> = {
  contradiction: ['high', 'Compare'],
  backflow: ['high', 'Open'],
  evidence: ['medium', 'Add evidence'],
  outdated: ['medium', 'Review'],
  links: ['medium', 'Repair'],
  orphaned: ['low', 'Review'],
  stale: ['low', 'Review'],
};
const ORDER: Severity[] = ['high', 'medium', 'low'];
const SEVERITY_TEXT = { high: 'Act now', medium: 'Look soon', low: 'Good to know' };

function insights(audit: Schemas['AuditReportPage'], status: Schemas['NodeStatus']): Insight[] {
  const attention = (status.attention ?? []).map(
    (text): Insight => ({ severity: 'high', text, why: 'The node needs its operator.', label: 'Status', address: '#/status' }),
  );
  const marked = audit.marked.map((item): Insight => {
    const [severity, label] = MARKS[item.mark] ?? ['low', 'Open'];
    return { severity: item.blocks ? 'high' : severity, text: item.title || item.code, why: `${item.mark}: ${item.why}`, label, address: entryAddress(item.code) };
  });
  return [...attention, ...marked].sort((one, two) => ORDER.indexOf(one.severity) - ORDER.indexOf(two.severity));
}

function DedupDialog({ onClose }: { onClose: () => void }) {
  const preview = useLoad(() => post('/v1/upkeep/run', { body: { service: 'duplicates', dry_run: true } }), 'dedup', 'never');
  const apply = async () => {
    await act(() => post('/v1/upkeep/run', { body: { service: 'duplicates' } }), {
      done: (result) => `${result.done} merged; each can be undone in Status.`,
    });
    onClose();
  };
  return (
    <Dialog title="Merge duplicates" onClose={onClose}>
      <p>Answers then show one entry of each group. No text is deleted, and each merge can be undone.</p>
      <Ready loaded={preview}>
        {(result) => (
          <>
            <p class="muted small">{count(result.examined)} entries examined.</p>
            {result.noted.length === 0 && <Empty title="No duplicates found" />}
            <ul class="plain preview">
              {result.noted.map((item) => (
                <li>
                  <strong>{item.entries.map((entry) => entry.code).join(' = ')}</strong>{' '}
                  <span class="muted">
                    <Line text={item.why} />
                  </span>
                  {(item.titles ?? []).map((title) => (
                    <div class="small">
                      <Line text={title} />
                    </div>
                  ))}
                </li>
              ))}
            </ul>
            <div class="actions">
              <button type="button" class="primary" disabled={result.noted.length === 0} onClick={() => void apply()}>
                Apply
              </button>
            </div>
          </>
        )}
      </Ready>
    </Dialog>
  );
}

function ChoiceList({ entries, chosen, setChosen }: { entries: Entry[]; chosen: Set<string>; setChosen: (next: Set<string>) => void }) {
  return (
    <ul class="plain preview">
      {entries.map((entry) => (
        <li>
          <label class="choice">
            <input
              type="checkbox"
              checked={chosen.has(entry.code)}
              onChange={(event) => {
                const next = new Set(chosen);
                if (event.currentTarget.checked) next.add(entry.code);
                else next.delete(entry.code);
                setChosen(next);
              }}
            />
            <span>
              <span class="code">{entry.code}</span> <Line text={entry.title} empty="(no title)" />
            </span>
          </label>
        </li>
      ))}
    </ul>
  );
}

function StaleDialog({ onClose }: { onClose: () => void }) {
  const stale = useLoad((signal) => get('/v1/entries', { query: { status: 'stale', limit: 200 }, signal }), 'stale', 'never');
  const [chosen, setChosen] = useState<Set<string> | null>(null);
  const archive = async (codes: string[]) => {
    const set = (archived: boolean) => Promise.all(codes.map((entry) => patch('/v1/entries/{entry}', { path: { entry }, body: { archived } })));
    await act(() => set(true), { done: `${codes.length} archived.`, undo: () => set(false) });
    onClose();
  };
  return (
    <Dialog title="Archive stale entries" onClose={onClose}>
      <p>An entry is stale if no agent was served it for 90 days. Archived entries answer only on request.</p>
      <Ready loaded={stale}>
        {({ entries }) => {
          const picked = chosen ?? new Set(entries.map((entry) => entry.code));
          return entries.length === 0 ? (
            <Empty title="No entry is stale" />
          ) : (
            <>
              <ChoiceList entries={entries} chosen={picked} setChosen={setChosen} />
              <div class="actions">
                <button type="button" class="primary" disabled={picked.size === 0} onClick={() => void archive([...picked])}>
                  Archive {picked.size}
                </button>
              </div>
            </>
          );
        }}
      </Ready>
    </Dialog>
  );
}

function PromoteList({ onClose, onChoose }: { onClose: () => void; onChoose: (entry: Entry) => void }) {
  const verified = useLoad((signal) => get('/v1/entries', { query: { status: 'verified', limit: 100 }, signal }), 'promotable', 'never');
  return (
    <Dialog title="Promote verified entries" onClose={onClose}>
      <p>These entries have proved themselves. Promoting makes a new entry for a wider audience or a more lasting memory.</p>
      <Ready loaded={verified}>
        {({ entries }) =>
          entries.length === 0 ? (
            <Empty title="No entry is verified yet">An entry becomes verified when it has helped often enough.</Empty>
          ) : (
            <ul class="plain preview">
              {entries.map((entry) => (
                <li class="row">
                  <span>
                    <span class="code">{entry.code}</span> <Line text={entry.title} empty="(no title)" />
                  </span>
                  <button type="button" class="small" onClick={() => onChoose(entry)}>
                    Preview
                  </button>
                </li>
              ))}
            </ul>
          )
        }
      </Ready>
    </Dialog>
  );
}

function Insights({ list }: { list: Insight[] }) {
  if (list.length === 0) {
    return <Empty title="Nothing stands out">The audit found no contradiction, no missing evidence and no stale knowledge.</Empty>;
  }
  return (
    <ul class="insights">
      {list.slice(0, 100).map((one) => (
        <li class={`insight tone-${one.severity}`}>
          <span class={`badge kind-${one.severity}`}>{SEVERITY_TEXT[one.severity]}</span>
          <span class="insight-text">
            <strong>
              <Line text={one.text} />
            </strong>
            <span class="muted small">
              <Line text={one.why} />
            </span>
          </span>
          <a class="button small" href={one.address}>
            {one.label}
          </a>
        </li>
      ))}
    </ul>
  );
}

export function BriefingView() {
  const [dialog, setDialog] = useState<'dedup' | 'stale' | 'promote' | Entry | null>(null);
  const loaded = useLoad(
    (signal) => Promise.all([get('/v1/survey', { signal }), get('/v1/status', { signal }), get('/v1/briefing', { signal })]),
    'briefing',
  );
  const close = () => setDialog(null);
  return (
    <View
      title="Briefing"
      lead="What stands out on this node, and what an agent reads at the start of its work."
      actions={
        <>
          <button type="button" onClick={() => setDialog('promote')}>
            Promote
          </button>
          <button type="button" onClick={() => setDialog('dedup')}>
            Dedup
          </button>
          <button type="button" onClick={() => setDialog('stale')}>
            Stale
          </button>
        </>
      }
    >
      <Ready loaded={loaded}>
        {([audit, status, briefing]) => (
          <div class="split">
            <div>
              <Panel title="Insights" note={`${count(audit.counts.entries)} entries audited`}>
                <Insights list={insights(audit, status)} />
              </Panel>
            </div>
            <aside class="panel agent" aria-label="The briefing of an agent">
              <header>
                <h2>An agent’s briefing</h2>
                <span class="muted">{count(briefing.tokens)} tokens</span>
              </header>
              {briefing.sections.length === 0 && <p class="muted">Nothing stands out, so an agent starts with an empty briefing.</p>}
              {briefing.sections.map((section) => (
                <div>
                  <h3>{section.title}</h3>
                  <ul class="plain">
                    {section.entries.map((entry) => (
                      <li class="small">
                        {section.kind === 'tasks' ? (
                          <a href={`#/tasks/${entry.id}`}>
                            <Line text={entry.title} />
                          </a>
                        ) : (
                          <>
                            <a href={entryAddress(entry.code)}>{entry.code}</a> <Line text={entry.title} />
                          </>
                        )}
                      </li>
                    ))}
                  </ul>
                </div>
              ))}
              {briefing.left_out > 0 && <p class="muted small">{briefing.left_out} more did not fit the budget.</p>}
            </aside>
          </div>
        )}
      </Ready>
      {dialog === 'dedup' && <DedupDialog onClose={close} />}
      {dialog === 'stale' && <StaleDialog onClose={close} />}
      {dialog === 'promote' && <PromoteList onClose={close} onChoose={setDialog} />}
      {dialog !== null && typeof dialog === 'object' && <PromoteDialog entry={dialog} onClose={close} />}
    </View>
  );
}

export function EntryLine({ entry }: { entry: Entry }) {
  return (
    <span class="row">
      <a href={entryAddress(entry.code)}>
        <Line text={entry.title} empty="(no title)" />
      </a>
      <Confidence alpha={entry.alpha} beta={entry.beta} mean={entry.mean} />
      <Status status={entry.status} reason={entry.status_reason} />
    </span>
  );
}
