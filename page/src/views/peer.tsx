// One peer: trust and its reasons, sync, decisions, and the egress preview with an editable filter.

import { useEffect, useState } from 'preact/hooks';
import { get, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Curve } from '../parts/curve';
import { Panel, Ready, View } from '../parts/frame';
import { Meter, percent } from '../parts/judgement';
import { act } from '../parts/notice';
import { shellWord } from '../parts/shell';
import { Line, MarkedLine, plainText } from '../parts/text';
import { ago, count } from '../parts/time';
import { VirtualList } from '../parts/virtual_list';
import { entryAddress, goTo } from '../router';
import { PeerState, SyncState, type Peer } from './peers';

type Filter = Schemas['Filter'];
type Preview = Schemas['Preview'];

const STATUSES = ['candidate', 'active', 'verified', 'stale'];
const MEMORIES = ['semantic', 'procedural', 'episodic'];
const PREVIEW_PAUSE_MS = 200;
const ROW_HEIGHT = 74;

function TrustPanel({ peer }: { peer: Peer }) {
  const trust = peer.trust;
  if (!trust) return null;
  const reasons: [string, string][] = [
    ['Helped here', `${count(trust.successes)} observations`],
    ['Misled here', `${count(trust.failures)} observations`],
    ['From all evidence', percent(trust.of_all)],
    ['From recent outcomes', trust.recent_outcomes === 0 ? 'no outcome yet' : `${percent(trust.of_recent)} of ${trust.recent_outcomes}`],
    ['Evidence left after decay', percent(trust.left)],
    ['Distance', trust.hop === null || trust.hop === undefined ? 'unknown' : trust.hop === 1 ? '1 hop' : `${trust.hop} hops`],
    ['Vouched by you', trust.vouched ? ago(trust.vouched.since) : 'no'],
  ];
  return (
    <Panel title="Trust" note={percent(trust.value)}>
      <Meter share={trust.value} label="Trust" />
      {trust.series.length > 1 && (
        <Curve x={trust.series.map((_, index) => index - trust.series.length + 1)} series={[{ label: 'Trust', values: trust.series, color: '--accent' }]} height={90} range={[0, 1]} formatX={(day) => `${day} d`} formatY={(share) => `${Math.round(share * 100)} %`} label={`Trust over the last ${trust.series.length} days, ${percent(trust.value)} today`} />
      )}
      <dl class="pairs">
        {reasons.map(([name, value]) => (
          <div>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Panel>
  );
}

interface Fate {
  id: string;
  code: string;
  title: string;
  fate: 'has' | 'will' | 'ends' | 'held';
  reason: string;
}

function fates(preview: Preview): Fate[] {
  const of = (list: Schemas['PreviewedEntry'][], fate: Fate['fate'], text: string): Fate[] =>
    list.map((one) => ({ id: one.id, code: one.code, title: one.title, fate, reason: one.reason ?? one.rule ?? text }));
  const ending = new Set(preview.would_end.map((one) => one.id));
  return [
    ...of(preview.would_end, 'ends', 'no longer passes the filter'),
    ...of(preview.would_be, 'will', 'passes the filter'),
    ...of(
      preview.released.filter((one) => !ending.has(one.id)),
      'has',
      'passes the filter',
    ),
    ...of(preview.held, 'held', 'held back'),
  ];
}

const FATE_TEXT = { has: 'Receives', will: 'Will receive', ends: 'Will lose', held: 'Held back' };
const FATES = ['ends', 'will', 'has', 'held'] as const;

function PreviewList({ preview, isDraft }: { preview: Preview; isDraft: boolean }) {
  const [only, setOnly] = useState<string>('');
  const all = fates(preview);
  const shown = all.filter((one) => only === '' || one.fate === only);
  return (
    <>
      <div class="chips" role="group" aria-label="Show only">
        {['', ...FATES].map((fate) => (
          <button type="button" class={fate === only ? 'chip on' : 'chip'} aria-pressed={fate === only} onClick={() => setOnly(fate)}>
            {fate === '' ? 'All' : FATE_TEXT[fate as Fate['fate']]} {fate === '' ? all.length : all.filter((one) => one.fate === fate).length}
          </button>
        ))}
        {isDraft && <span class="badge conflict">Preview of unsaved filter</span>}
      </div>
      {shown.length === 0 ? (
        <p class="muted">No entry in this group. A peer receives entries of shared workspaces that pass the filter.</p>
      ) : (
        <VirtualList
          items={shown}
          rowHeight={ROW_HEIGHT}
          label="Egress preview"
          onOpen={(one) => goTo(entryAddress(one.code))}
          row={(one) => (
            <div class="entry-row">
              <span class="entry-main">
                <span class="entry-title">
                  <Line text={one.title} empty="(no title)" />
                </span>
                <span class="entry-sub two-lines" title={plainText(one.reason)}>
                  <span class="code">{one.code}</span> · <MarkedLine text={one.reason} />
                </span>
              </span>
              <span class={`badge fate-${one.fate}`}>{FATE_TEXT[one.fate]}</span>
            </div>
          )}
        />
      )}
    </>
  );
}

function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== '');
}

/** A choice of at least one value: an empty list would hold every entry back. */
function Checks({ legend, values, chosen, onChange }: { legend: string; values: string[]; chosen: string[]; onChange: (next: string[]) => void }) {
  return (
    <fieldset>
      <legend>{legend}</legend>
      {values.map((value) => (
        <label class="choice">
          <input type="checkbox" checked={chosen.includes(value)} disabled={chosen.length === 1 && chosen.includes(value)} onChange={(event) => onChange(event.currentTarget.checked ? [...chosen, value] : chosen.filter((one) => one !== value))} /> {value}
        </label>
      ))}
    </fieldset>
  );
}

function FilterForm({ filter, onChange }: { filter: Filter; onChange: (changed: Filter) => void }) {
  const set = (part: Filter) => onChange({ ...filter, ...part });
  return (
    <div class="form filter-form">
      <label>
        Lowest confidence: {percent(filter.confidence_min ?? 0)}
        <input type="range" min="0" max="1" step="0.05" value={filter.confidence_min ?? 0} onInput={(event) => set({ confidence_min: Number(event.currentTarget.value) })} />
      </label>
      <label>
        Hold back tags
        <input value={(filter.tags_deny ?? []).join(' ')} placeholder="secret customers" onChange={(event) => set({ tags_deny: words(event.currentTarget.value) })} />
      </label>
      <label>
        Only these tags
        <input value={(filter.tags_allow ?? []).join(' ')} placeholder="all" onChange={(event) => set({ tags_allow: words(event.currentTarget.value) })} />
      </label>
      <label>
        Reach
        <select value={filter.reach ?? 'also_relayed'} onChange={(event) => set({ reach: event.currentTarget.value })}>
          <option value="created_here">entries created here</option>
          <option value="also_relayed">also entries of others</option>
        </select>
      </label>
      <Checks legend="Status" values={STATUSES} chosen={filter.statuses ?? []} onChange={(statuses) => set({ statuses })} />
      <Checks legend="Memory" values={MEMORIES} chosen={filter.memories ?? []} onChange={(memories) => set({ memories })} />
    </div>
  );
}

const LIST_FLAGS: [string, 'tags_deny' | 'tags_allow' | 'statuses' | 'memories'][] = [
  ['deny-tag', 'tags_deny'],
  ['allow-tag', 'tags_allow'],
  ['status', 'statuses'],
  ['memory', 'memories'],
];

/** The flags of `klnode peer filter` that change one filter into another. */
function filterFlags(before: Filter, after: Filter): string {
  const flags: string[] = [];
  const isSame = (one: string[], two: string[]) => [...one].sort().join('\n') === [...two].sort().join('\n');
  if ((after.confidence_min ?? 0) !== (before.confidence_min ?? 0)) flags.push(`--min-confidence ${after.confidence_min ?? 0}`);
  for (const [flag, field] of LIST_FLAGS) {
    const [old, next] = [before[field] ?? [], after[field] ?? []];
    if (isSame(old, next)) continue;
    // An empty value clears a list; without the flag its earlier value would stay.
    flags.push(...(next.length > 0 ? next : ['']).map((value) => `--${flag} ${shellWord(value)}`));
  }
  if (after.reach && after.reach !== before.reach) flags.push(`--reach ${after.reach}`);
  return flags.join(' ');
}

interface Draft {
  /** The filter that was in effect when the draft began. */
  before: Filter;
  filter: Filter;
}

function Egress({ peer }: { peer: Peer }) {
  const [draft, setDraft] = useState<Draft | null>(null);
  const [asked, setAsked] = useState<Filter | null>(null);
  useEffect(() => {
    const pause = setTimeout(() => setAsked(draft?.filter ?? null), PREVIEW_PAUSE_MS);
    return () => clearTimeout(pause);
  }, [draft]);
  const key = `egress ${peer.peer} ${JSON.stringify(asked)}`;
  // The preview examines every entry, so it does not follow each change.
  const loaded = useLoad((signal) => post('/v1/peers/{peer}/preview', { path: { peer: peer.peer }, body: asked ? { egress: asked } : {}, signal }), key, 'slowly');
  const [kept, setKept] = useState<Preview | null>(null);
  useEffect(() => {
    if (loaded.data) setKept(loaded.data);
  }, [loaded.data]);
  const flags = draft ? filterFlags(draft.before, draft.filter) : '';
  const apply = async () => {
    if (!draft) return;
    const set = (egress: Filter) => post('/v1/peers/{peer}/filter', { path: { peer: peer.peer }, body: { egress } });
    const { before, filter } = draft;
    const saved = await act(() => set(filter), {
      done: 'The filter is set.',
      undo: () => set(before),
      command: `klnode peer filter ${peer.peer.slice(0, 8)} ${flags}`,
    });
    if (saved) setDraft(null);
  };
  const preview = loaded.data ?? kept;
  return (
    <Panel title={`What ${peer.name.slice(0, 60)} receives`} note="each entry with the rule that decides">
      {loaded.error && (
        <p class="note error">
          <Line text={loaded.error.message} />
        </p>
      )}
      {preview && (
        <>
          <details>
            <summary>Edit the filter</summary>
            <FilterForm
              filter={draft?.filter ?? preview.filters.egress ?? {}}
              onChange={(filter) => setDraft({ before: draft?.before ?? preview.filters.egress ?? {}, filter })}
            />
            <div class="actions">
              <button type="button" class="primary" disabled={flags === ''} onClick={() => void apply()}>
                Apply filter
              </button>
              <button type="button" disabled={!draft} onClick={() => setDraft(null)}>
                Discard
              </button>
            </div>
          </details>
          <PreviewList preview={preview} isDraft={draft !== null} />
        </>
      )}
    </Panel>
  );
}

/** The decision that takes another one back. */
const OPPOSITES: Partial<Record<Schemas['PeerDecision'], Schemas['PeerDecision']>> = { vouch: 'unvouch', unvouch: 'vouch', block: 'unblock', unblock: 'block' };

function Decisions({ peer, reload }: { peer: Peer; reload: () => void }) {
  const [digits, setDigits] = useState('');
  const short = peer.peer.slice(0, 8);
  const send = (decision: Schemas['PeerDecision'], code?: string) =>
    post('/v1/peers/{peer}/decision', { path: { peer: peer.peer }, body: { decision, ...(code ? { code } : {}) } });
  const decide = (decision: Schemas['PeerDecision'], done: string, code?: string) => {
    const opposite = OPPOSITES[decision];
    return act(() => send(decision, code), {
      done,
      ...(opposite ? { undo: () => send(opposite).then(reload) } : {}),
      command: decision === 'unvouch' ? `klnode peer vouch ${short} --undo` : `klnode peer ${decision} ${short}${code ? ` --code ${shellWord(code)}` : ''}`,
    }).then(reload);
  };
  return (
    <div class="acts" role="toolbar" aria-label="Decisions about this peer">
      {peer.state !== 'approved' && (
        <>
          {peer.request && <input aria-label="Six digits that the other machine shows" placeholder="123 456" value={digits} onInput={(event) => setDigits(event.currentTarget.value)} />}
          <button type="button" class="primary" onClick={() => void decide('approve', 'Approved.', digits.replace(/\s/g, ''))}>
            Approve
          </button>
          <button type="button" onClick={() => void decide('refuse', 'Refused.')}>
            Refuse
          </button>
        </>
      )}
      <button type="button" onClick={() => void act(() => post('/v1/sync', { body: { peer: peer.peer } }), { done: (result) => `Synced: ${result.received} received, ${result.sent ?? 0} sent.` }).then(reload)}>
        Sync now
      </button>
      {!peer.mine &&
        (peer.trust?.vouched ? (
          <button type="button" onClick={() => void decide('unvouch', 'The vouch is withdrawn.')}>
            Withdraw vouch
          </button>
        ) : (
          <button type="button" onClick={() => void decide('vouch', 'You vouch for this author.')}>
            Vouch
          </button>
        ))}
      <button type="button" class="danger" onClick={() => void decide(peer.blocked ? 'unblock' : 'block', peer.blocked ? 'Unblocked.' : 'Blocked: its records are rejected.')}>
        {peer.blocked ? 'Unblock' : 'Block'}
      </button>
    </div>
  );
}

export function PeerView({ name }: { name: string }) {
  const loaded = useLoad((signal) => get('/v1/peers/{peer}', { path: { peer: name }, signal }), `peer ${name}`);
  return (
    <View title={loaded.data?.name.slice(0, 100) || 'Peer'} lead={name.slice(0, 16)}>
      <Ready loaded={loaded}>
        {(peer) => (
          <>
            <div class="entry-badges">
              <PeerState peer={peer} />
              <SyncState peer={peer} />
              {peer.mine && <span class="badge">your machine</span>}
              {peer.workspaces.map((one) => (
                <span class="badge">
                  <Line text={one} />
                </span>
              ))}
              {peer.code && <span class="badge">digits {peer.code}</span>}
            </div>
            <Decisions peer={peer} reload={loaded.reload} />
            {peer.reason && (
              <p class="note warn">
                <Line text={peer.reason} />
              </p>
            )}
            <div class="columns">
              <Egress peer={peer} />
              <div>
                <TrustPanel peer={peer} />
                <Panel title="Exchange">
                  <dl class="pairs">
                    <div>
                      <dt>Released to it</dt>
                      <dd>{count(peer.released)}</dd>
                    </div>
                    <div>
                      <dt>Offered by it</dt>
                      <dd>{count(peer.offered)}</dd>
                    </div>
                    <div>
                      <dt>Rejected from it</dt>
                      <dd>{count(peer.refused)}</dd>
                    </div>
                  </dl>
                  {(peer.refused_for ?? []).map((one) => (
                    <p class="muted small">
                      {count(one.records)} × <Line text={one.reason} />
                    </p>
                  ))}
                  {peer.addresses.map((address) => (
                    <p class="code small">
                      <Line text={address} />
                    </p>
                  ))}
                </Panel>
              </div>
            </div>
          </>
        )}
      </Ready>
    </View>
  );
}
