// Panels of an entry that load their own data or settle something: conflicts, proposals, sharing,
// serving log and history.

import { useState } from 'preact/hooks';
import { get, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Empty, Panel, Ready } from '../parts/frame';
import { act } from '../parts/notice';
import { Line, MarkedLine, Passages } from '../parts/text';
import { ago, moment } from '../parts/time';

type Entry = Schemas['Entry'];

/** Concurrent versions of a field, side by side. One click keeps a version. */
export function Conflicts({ entry, onChange }: { entry: Entry; onChange: () => void }) {
  const versions = entry.versions ?? [];
  const fields = [...new Set(versions.map((version) => version.field))];
  const [text, setText] = useState<Record<string, string>>({});
  if (fields.length === 0) return null;
  const settle = async (field: string, choice: { take: number } | { text: string }) => {
    const seen = versions.filter((version) => version.field === field).map((version) => version.version);
    const body = { settle: [{ field, versions: seen, ...choice }] };
    const asPerson = entry.memory === 'procedural' ? ' --as-person' : '';
    const command = `klnode edit ${entry.code} ${'take' in choice ? `--take ${field}=${choice.take}` : `--resolve=${field}`}${asPerson}`;
    await act(() => post('/v1/entries/{entry}/resolve', { path: { entry: entry.code }, body }), { done: `The conflict in ${field} is resolved.`, command });
    onChange();
  };
  return (
    <Panel title="Conflicting versions" note="Two authors changed the same field at the same time." id="conflicts">
      {fields.map((field) => (
        <div>
          <h3>
            <Line text={field} />
          </h3>
          <div class="versions">
            {versions
              .filter((version) => version.field === field)
              .map((version) => (
                <div class={version.shown ? 'version shown' : 'version'}>
                  <p class="muted small">
                    {version.number}. by <Line text={version.author_name} />, {ago(version.at)}
                    {version.shown ? ' · shown until resolved' : ''}
                    {version.gate === 'shut' ? ' · author not trusted' : ''}
                  </p>
                  <Passages text={version.text} />
                  <button type="button" onClick={() => void settle(field, { take: version.number })}>
                    Keep version {version.number}
                  </button>
                </div>
              ))}
          </div>
          <details>
            <summary>Write another text instead</summary>
            <textarea rows={4} aria-label={`New text of ${field}`} value={text[field] ?? ''} onInput={(event) => setText({ ...text, [field]: event.currentTarget.value })} />
            <button type="button" disabled={!text[field]?.trim()} onClick={() => void settle(field, { text: text[field]! })}>
              Replace all versions
            </button>
          </details>
        </div>
      ))}
    </Panel>
  );
}

export function Proposals({ entry, onChange }: { entry: Entry; onChange: () => void }) {
  const proposed = entry.proposed ?? [];
  const others = entry.of_others ?? [];
  if (proposed.length === 0 && others.length === 0) return null;
  return (
    <Panel title="Proposals of other authors" note={`${entry.proposals}`}>
      <ul class="plain">
        {proposed.map((claim) => (
          <li class="proposal">
            <p class="muted small">
              <Line text={claim.author_name} /> proposes for <Line text={claim.register} />, {ago(claim.at)}
            </p>
            <Passages text={claim.text} />
            <button
              type="button"
              onClick={() =>
                void act(() => post('/v1/entries/{entry}/accept', { path: { entry: entry.code }, body: { author: claim.author, what: claim.register } }), {
                  done: 'Accepted: this node states it too.',
                  // The text of a procedural entry needs the person; the node names the way.
                  ...(entry.memory === 'procedural' ? {} : { command: `klnode inbox accept ${entry.code} --from ${claim.author.slice(0, 8)} --field ${claim.register}` }),
                }).then(onChange)
              }
            >
              Accept
            </button>
          </li>
        ))}
        {others.map((value) => (
          <li>
            <span class="badge">
              <Line text={value.field} />
            </span> <Line text={value.text} />{' '}
            <span class="muted">
              by <Line text={value.author_name} />
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

interface PeerFate {
  name: string;
  fate: 'has' | 'will' | 'ends' | 'held';
  reason: string;
}

async function fates(id: string, signal: AbortSignal): Promise<PeerFate[]> {
  const { peers } = await get('/v1/peers', { signal });
  const approved = peers.filter((peer) => peer.state === 'approved' && !peer.blocked);
  return Promise.all(
    approved.map(async ({ peer, name }): Promise<PeerFate> => {
      const preview = await post('/v1/peers/{peer}/preview', { path: { peer }, query: { entry: id }, body: {}, signal });
      const find = (list: Schemas['PreviewedEntry'][]) => list.find((one) => one.id === id);
      if (find(preview.would_end)) return { name, fate: 'ends', reason: 'no longer passes the filter; it will be withdrawn' };
      if (find(preview.released)) return { name, fate: 'has', reason: 'released' };
      if (find(preview.would_be)) return { name, fate: 'will', reason: 'passes the filter' };
      const held = find(preview.held);
      return { name, fate: 'held', reason: held?.reason ?? held?.rule ?? 'not in a workspace shared with this peer' };
    }),
  );
}

const FATE_TEXT = { has: 'Receives', will: 'Will receive', ends: 'Will lose', held: 'Held back' };

/** Which peers receive the entry, and the rule that holds it back from the others. */
export function Sharing({ entry }: { entry: Entry }) {
  const loaded = useLoad((signal) => fates(entry.id, signal), `sharing ${entry.id}`, 'slowly');
  return (
    <Panel title="Who receives it">
      <Ready loaded={loaded}>
        {(list) =>
          list.length === 0 ? (
            <p class="muted">No peer is paired, so the entry stays on this node.</p>
          ) : (
            <ul class="plain">
              {list.map((one) => (
                <li class="fate">
                  <span class={`badge fate-${one.fate}`}>{FATE_TEXT[one.fate]}</span> <Line text={one.name} />
                  <span class="muted">
                    <MarkedLine text={one.reason} />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Ready>
    </Panel>
  );
}

export function Served({ entry }: { entry: Entry }) {
  const served = useLoad((signal) => get('/v1/served', { query: { entry: entry.id, limit: 8 }, signal }), `served ${entry.id}`);
  return (
    <Panel title="Served to">
      <Ready loaded={served}>
        {(log) =>
          log.answers.length === 0 ? (
            <p class="muted">No agent has received this entry yet. Looking at it here does not count.</p>
          ) : (
            <ul class="plain">
              {log.answers.map((answer) => (
                <li>
                  <strong>
                    <Line text={answer.caller} />
                  </strong>{' '}
                  <span class="muted">{ago(answer.at)}</span>
                  <br />
                  <span class="small">
                    <Line text={answer.query} empty="(no question)" />
                  </span>
                </li>
              ))}
            </ul>
          )
        }
      </Ready>
    </Panel>
  );
}

type HistoryRecord = Schemas['HistoryRecord'];
const HISTORY_SHOWN = 12;

function changeText(record: HistoryRecord): string {
  if (record.facet === 'tombstone') return 'forgot the entry';
  if (record.facet === 'retraction') return 'retracted its claims';
  if (record.facet === 'tally') {
    const sum = (pick: (day: Schemas['DayCount']) => number) => record.observations.reduce((all, day) => all + pick(day), 0);
    const counts: [number, string][] = [
      [sum((day) => day.successes), 'successes'],
      [sum((day) => day.failures), 'failures'],
      [sum((day) => day.confirmations), 'confirmations'],
    ];
    return `observed ${counts.filter(([number]) => number > 0).map(([number, name]) => `${number.toFixed(1).replace(/\.0$/, '')} ${name}`).join(', ') || 'nothing'}`;
  }
  return `stated ${[...new Set(record.changes.map((change) => change.field))].join(', ') || 'nothing'}`;
}

export function History({ entry }: { entry: Entry }) {
  const [isLong, setLong] = useState(false);
  const history = useLoad((signal) => get('/v1/entries/{entry}/history', { path: { entry: entry.id }, signal }), `history ${entry.id}`);
  return (
    <Panel title="History">
      <Ready loaded={history}>
        {({ records }) => {
          const newest = [...records].sort((one, two) => two.at - one.at);
          const shown = isLong ? newest : newest.slice(0, HISTORY_SHOWN);
          return (
            <>
              {records.length === 0 && <Empty title="No record is left" />}
              <ol class="timeline">
                {shown.map((record) => (
                  <li class={record.own ? 'own' : ''}>
                    <time dateTime={new Date(record.at).toISOString()} title={moment(record.at)}>
                      {ago(record.at)}
                    </time>
                    <span>
                      <strong>
                        <Line text={record.author_name ?? record.author.slice(0, 8)} />
                      </strong>{' '}
                      <Line text={changeText(record)} />
                      {record.heard === false && <span class="muted"> (not displayed)</span>}
                      {record.caller?.client && (
                        <span class="muted">
                          {' '}
                          through <Line text={record.caller.client} />
                        </span>
                      )}
                    </span>
                    {record.facet === 'claims' && record.changes.length > 0 && (
                      <details>
                        <summary>Values</summary>
                        <ul class="plain small">
                          {record.changes.map((change) => (
                            <li>
                              <span class="badge">
                                <Line text={change.field} />
                              </span> {change.act !== 'set' && `${change.act}: `}
                              <Line text={change.value} />
                            </li>
                          ))}
                        </ul>
                      </details>
                    )}
                  </li>
                ))}
              </ol>
              {newest.length > shown.length && (
                <button type="button" class="quiet small" onClick={() => setLong(true)}>
                  Show all {newest.length}
                </button>
              )}
            </>
          );
        }}
      </Ready>
    </Panel>
  );
}
