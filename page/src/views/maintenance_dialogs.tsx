// Dedup, Stale and Promote: each shows a preview before it applies anything.

import { useState } from 'preact/hooks';
import { get, patch, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Dialog } from '../parts/dialog';
import { Empty, Ready } from '../parts/frame';
import { act } from '../parts/notice';
import { Line } from '../parts/text';
import { ago, count } from '../parts/time';
import { entryAddress } from '../router';
import { ChoiceList } from './choice_list';

type Entry = Schemas['Entry'];
type Item = Schemas['JournalItem'];

/** A pass has many steps on a large store; the node continues it in the background. */
const STEPS_MAX = 50;
const WAIT_MS = 500;
const ENTRIES_MAX = 200;

function pairName(item: Item): string {
  return item.entries.map((entry) => entry.code).join(' = ');
}

interface Preview {
  fresh: Item[];
  waiting: Item[];
  examined: number;
}

type Run = Schemas['MaintenanceResult'];

/** Runs steps until the pass is through. Waits while the index of vectors is being built. */
async function runSteps(body: Omit<Schemas['MaintenanceRun'], 'service'>, onStep: (result: Run) => void, signal?: AbortSignal): Promise<void> {
  let from: Schemas['MaintenancePosition'] | undefined;
  for (let step = 0; step < STEPS_MAX; step += 1) {
    const result = await post('/v1/maintenance/run', { body: { service: 'duplicates', ...body, ...(from ? { from } : {}) }, ...(signal ? { signal } : {}) });
    onStep(result);
    if (result.waits_for) await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    else if (result.through) return;
    // A dry run moves no cursor of the node.
    if (body.dry_run) from = result.next;
  }
}

/** Walks through the whole pass without a change, and reads the proposals of earlier passes. */
async function duplicates(signal: AbortSignal): Promise<Preview> {
  const { proposals } = await get('/v1/maintenance', { query: { limit: ENTRIES_MAX }, signal });
  const waiting = proposals.filter((item) => item.matter === 'sameness' && item.number !== null && item.number !== undefined);
  const preview: Preview = { fresh: [], waiting, examined: 0 };
  // Two steps find the same pair if they examine one of its entries each.
  const pairs = new Map<string, Item>();
  const note = (result: Run) => {
    for (const item of result.noted) pairs.set(item.entries.map(({ id }) => id).sort().join(), item);
    preview.examined += result.examined;
  };
  await runSteps({ dry_run: true }, note, signal);
  preview.fresh = [...pairs.values()];
  return preview;
}

/** Runs the pass to its end and returns the pairs that it merged. */
async function runDuplicates(): Promise<Item[]> {
  const made: Item[] = [];
  await runSteps({}, (result) => made.push(...result.noted.filter((item) => item.stage === 'made')));
  return made;
}

function undoAll(items: Item[]): Promise<unknown> {
  return Promise.all(items.map((item) => post('/v1/maintenance/{number}/undo', { path: { number: String(item.number) as never } })));
}

export function DedupDialog({ onClose }: { onClose: () => void }) {
  const preview = useLoad(duplicates, 'dedup', 'never');
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const merge = async (waiting: Item[]) => {
    const picked = waiting.filter((item) => chosen.has(String(item.number)));
    const work = async () => {
      for (const item of picked) await post('/v1/maintenance/{number}/accept', { path: { number: String(item.number) as never } });
      return [...picked, ...(await runDuplicates())];
    };
    let merged: Item[] = [];
    await act(async () => (merged = await work()), {
      done: (all) => `${all.length} merged. Each can be undone in Status.`,
      undo: () => undoAll(merged),
      command: 'klnode maintain duplicates',
    });
    onClose();
  };
  return (
    <Dialog title="Merge duplicates" onClose={onClose}>
      <p>Answers then show one entry of each group. No text is deleted, and each merge can be undone.</p>
      <Ready loaded={preview}>
        {({ fresh, waiting, examined }) => {
          const equal = fresh.filter((item) => item.stage === 'made');
          const near = fresh.filter((item) => item.stage === 'proposed');
          const total = equal.length + chosen.size;
          return (
            <>
              {equal.length + near.length + waiting.length === 0 && (
                <Empty title="No duplicates found">{examined > 0 ? `${count(examined)} changed entries were examined.` : 'The node has examined every entry already.'}</Empty>
              )}
              {equal.length > 0 && (
                <>
                  <h3>Equal texts, merged when you apply</h3>
                  <ul class="plain preview">
                    {equal.map((item) => (
                      <li>
                        <span class="code">{pairName(item)}</span> <Line text={item.titles?.[0]} empty="" />
                      </li>
                    ))}
                  </ul>
                </>
              )}
              {waiting.length > 0 && (
                <>
                  <h3>Near texts: choose the pairs that say the same</h3>
                  <ul class="plain preview">
                    {waiting.map((item) => {
                      const number = String(item.number);
                      return (
                        <li>
                          <label class="choice">
                            <input
                              type="checkbox"
                              checked={chosen.has(number)}
                              onChange={(event) => {
                                const next = new Set(chosen);
                                if (event.currentTarget.checked) next.add(number);
                                else next.delete(number);
                                setChosen(next);
                              }}
                            />
                            <span>
                              <span class="code">{pairName(item)}</span>
                              {(item.titles ?? []).map((title) => (
                                <span class="small block">
                                  <Line text={title} />
                                </span>
                              ))}
                              <a class="small" href={`#/compare/${item.entries.map((entry) => entry.code).join('+')}`} onClick={onClose}>
                                Compare
                              </a>
                            </span>
                          </label>
                        </li>
                      );
                    })}
                  </ul>
                </>
              )}
              {near.length > 0 && <p class="muted small">{near.length} more near pairs will be proposed in the inbox.</p>}
              <div class="actions">
                <button type="button" class="primary" disabled={total + near.length === 0} onClick={() => void merge(waiting)}>
                  {total > 0 || near.length === 0 ? `Merge ${total}` : `Propose ${near.length}`}
                </button>
              </div>
            </>
          );
        }}
      </Ready>
    </Dialog>
  );
}

export function StaleDialog({ onClose }: { onClose: () => void }) {
  const stale = useLoad((signal) => get('/v1/entries', { query: { status: 'stale', limit: ENTRIES_MAX }, signal }), 'stale', 'never');
  const [chosen, setChosen] = useState<Set<string> | null>(null);
  const archive = async (codes: string[]) => {
    const set = (archived: boolean) => Promise.all(codes.map((entry) => patch('/v1/entries/{entry}', { path: { entry }, body: { archived } })));
    await act(() => set(true), { done: `${codes.length} archived.`, undo: () => set(false), command: 'klnode archive --stale' });
    onClose();
  };
  return (
    <Dialog title="Archive stale entries" onClose={onClose}>
      <p>An entry is stale if no agent was served it for a long time. Archived entries answer only on request, and can be restored.</p>
      <Ready loaded={stale}>
        {({ entries, next }) =>
          entries.length === 0 ? (
            <Empty title="No entry is stale">An entry that agents still receive stays fresh.</Empty>
          ) : (
            <>
              <ChoiceList choices={entries.map(({ code, title, updated }) => ({ code, title, note: `changed ${ago(updated)}` }))} chosen={chosen} setChosen={setChosen} />
              {next && <p class="muted small">These are the first {ENTRIES_MAX}; open the dialog again for more.</p>}
              <div class="actions">
                <button type="button" class="primary" disabled={chosen?.size === 0} onClick={() => void archive([...(chosen ?? entries.map((entry) => entry.code))])}>
                  Archive {chosen?.size ?? entries.length}
                </button>
              </div>
            </>
          )
        }
      </Ready>
    </Dialog>
  );
}

const APPROVERS: Record<string, string> = { person: "approved with the person's key", caller: 'approved', none: 'needed no approval' };

function Ledger() {
  const ledger = useLoad((signal) => get('/v1/promotions', { query: { limit: 1000 }, signal }), 'promotions');
  return (
    <Ready loaded={ledger}>
      {({ promotions }) => (
        <details class="ledger">
          <summary>Promotions so far: {promotions.length}</summary>
          {promotions.length === 0 && <p class="muted small">The ledger records each promotion with its evidence, its approver and the reason.</p>}
          <ul class="plain small">
            {[...promotions]
              .sort((one, two) => two.at - one.at)
              .map((row) => (
                <li>
                  <a href={entryAddress(row.source_code)}>{row.source_code}</a> → <a href={entryAddress(row.target_code)}>{row.target_code}</a>{' '}
                  <span class="muted">
                    {row.target_memory ?? 'forgotten'}, {ago(row.at)}, {APPROVERS[row.approver] ?? row.approver}
                  </span>
                  {row.reason && (
                    <span class="block">
                      “<Line text={row.reason} />”
                    </span>
                  )}
                </li>
              ))}
          </ul>
        </details>
      )}
    </Ready>
  );
}

async function promotable(signal: AbortSignal): Promise<{ verified: Entry[]; episodic: Entry[] }> {
  const [verified, episodic] = await Promise.all([
    get('/v1/entries', { query: { status: 'verified', limit: 100 }, signal }),
    get('/v1/entries', { query: { memory: 'episodic', limit: 100, recent: true }, signal }),
  ]);
  return { verified: verified.entries.filter((entry) => entry.memory !== 'episodic'), episodic: episodic.entries };
}

function Promotable({ title, entries, onChoose }: { title: string; entries: Entry[]; onChoose: (entry: Entry) => void }) {
  if (entries.length === 0) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="plain preview">
        {entries.map((entry) => (
          <li class="row">
            <span>
              <span class="code">{entry.code}</span> <Line text={entry.title} empty="(no title)" />
            </span>
            <button type="button" class="small" onClick={() => onChoose(entry)}>
              Preview <span class="hidden">{entry.code}</span>
            </button>
          </li>
        ))}
      </ul>
    </>
  );
}

export function PromoteList({ onClose, onChoose }: { onClose: () => void; onChoose: (entry: Entry) => void }) {
  const loaded = useLoad(promotable, 'promotable', 'never');
  return (
    <Dialog title="Promote entries" onClose={onClose}>
      <p>Promoting copies an entry for a wider audience, or into a more lasting memory. The source stays as it is.</p>
      <Ready loaded={loaded}>
        {({ verified, episodic }) => (
          <>
            {verified.length + episodic.length === 0 && <Empty title="No entry is verified yet">An entry becomes verified when it has helped often enough.</Empty>}
            <Promotable title="Verified knowledge" entries={verified} onChoose={onChoose} />
            <Promotable title="Episodes, which need your approval" entries={episodic} onChoose={onChoose} />
          </>
        )}
      </Ready>
      <Ledger />
    </Dialog>
  );
}
