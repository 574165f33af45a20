// Collects everything that waits for a decision of the operator: findings, maintenance proposals,
// contradictions, conflicts, proposals of others, quarantine, held entries, and nodes that ask to
// join.

import { get, post, type Schemas } from '../api/request';
import { shellWord } from '../parts/shell';

export interface Decision {
  label: string;
  done: string;
  run: () => Promise<unknown>;
  undo?: (() => Promise<unknown>) | undefined;
  /** The command for a terminal; absent if no command does the same. */
  command?: string;
}

export interface InboxItem {
  key: string;
  kind: string;
  title: string;
  detail: string;
  from: string;
  at: number;
  tone: 'high' | 'medium' | 'low';
  accept?: Decision;
  reject?: Decision;
  /** The address where the matter is edited. */
  open?: string;
  texts?: { field: string; text: string }[];
}

/** How many of the newest tasks and entries are examined. */
export interface Reach {
  tasks: number;
  entries: number;
}

export interface Inbox {
  items: InboxItem[];
  /** Whether older tasks or entries were left out. */
  hasMore: boolean;
}

export const FIRST_REACH: Reach = { tasks: 40, entries: 300 };
/** The most rows of one answer of the node. */
const PAGE_MAX = 1000;

async function findingItems(reach: Reach, signal: AbortSignal): Promise<Inbox> {
  const { tasks, more } = await get('/v1/tasks', { query: { limit: Math.min(PAGE_MAX, reach.tasks) }, signal });
  const lists = await Promise.all(
    tasks.map((task) => get('/v1/tasks/{task}/findings', { path: { task: task.task }, signal })),
  );
  const items = lists
    .flatMap((list) => list.findings)
    .filter((finding) => finding.became === 'waiting')
    .map((finding) => {
      const path = { task: finding.task, number: String(finding.number) as never };
      const name = `${finding.task} ${finding.number}`;
      return {
        key: `finding ${name}`,
        kind: 'Finding',
        title: finding.text,
        detail: finding.reason || `${finding.severity} severity, ${Math.round(finding.confidence * 100)} % sure. Waits for a second, independent report.`,
        from: finding.agent,
        at: finding.at,
        tone: finding.severity === 'high' || finding.severity === 'critical' ? ('high' as const) : ('medium' as const),
        accept: {
          label: 'Keep as entry',
          done: 'Kept: it is a candidate entry now.',
          run: () => post('/v1/tasks/{task}/findings/{number}/keep', { path }),
          command: `klnode task keep ${name}`,
        },
        reject: {
          label: 'False positive',
          done: 'Dismissed as a false positive.',
          run: () => post('/v1/tasks/{task}/findings/{number}/dismiss', { path, body: { reason: 'dismissed by the operator' } }),
          command: `klnode task dismiss ${name} --reason "…"`,
        },
        open: `#/tasks/${finding.task}`,
      };
    });
  return { items, hasMore: more };
}

type JournalItem = Schemas['JournalItem'];

function journalItem(item: JournalItem): InboxItem {
  const number = String(item.number) as never;
  const codes = item.entries.map((entry) => entry.code).join(' and ');
  const isProposal = item.stage === 'proposed';
  const kinds: Record<string, string> = { sameness: 'Duplicate', contradiction: 'Contradiction', staleness: 'Stale' };
  return {
    key: `maintenance ${item.number}`,
    kind: kinds[item.matter] ?? item.matter,
    title: (item.titles ?? []).filter(Boolean).join(' ↔ ') || codes,
    detail: item.why,
    from: codes,
    at: item.at,
    tone: item.matter === 'contradiction' ? 'high' : 'low',
    ...(isProposal
      ? {
          accept: {
            label: 'Merge in answers',
            done: 'Merged: answers show one of them.',
            run: () => post('/v1/maintenance/{number}/accept', { path: { number } }),
            undo: () => post('/v1/maintenance/{number}/undo', { path: { number } }),
            command: `klnode maintain accept ${item.number}`,
          },
        }
      : {}),
    reject: {
      label: 'Dismiss',
      done: 'Dismissed.',
      run: () => post('/v1/maintenance/{number}/dismiss', { path: { number } }),
      command: `klnode maintain dismiss ${item.number}`,
    },
    ...(item.entries[0] ? { open: `#/compare/${item.entries.map((entry) => entry.code).join('+')}` } : {}),
  };
}

async function journalItems(signal: AbortSignal): Promise<InboxItem[]> {
  const maintenance = await get('/v1/maintenance', { query: { limit: 100 }, signal });
  const isWaiting = (item: JournalItem) => (item.stage === 'proposed' || item.stage === 'open') && item.number !== null && item.number !== undefined;
  return [...maintenance.proposals, ...maintenance.contradictions].filter(isWaiting).map(journalItem);
}

async function entryItems(reach: Reach, signal: AbortSignal): Promise<Inbox> {
  const entries: Schemas['Entry'][] = [];
  let next: string | null | undefined;
  do {
    const limit = Math.min(PAGE_MAX, reach.entries - entries.length);
    const page = await get('/v1/entries', { query: { limit, recent: true, ...(next ? { after: next } : {}) }, signal });
    entries.push(...page.entries);
    next = page.next;
  } while (next && entries.length < reach.entries);
  const conflicts = entries
    .filter((entry) => entry.contested.length > 0)
    .map((entry): InboxItem => ({
      key: `conflict ${entry.id}`,
      kind: 'Conflict',
      title: entry.title,
      detail: `Concurrent versions of ${entry.contested.join(', ')}. Open it to compare them.`,
      from: entry.code,
      at: entry.updated ?? 0,
      tone: 'high',
      open: `#/entry/${entry.code}?at=conflicts`,
    }));
  const proposals = entries
    .filter((entry) => entry.proposals > 0)
    .map((entry): InboxItem => {
      const claim = entry.proposed?.[0];
      return {
        key: `proposal ${entry.id}`,
        kind: 'Proposal',
        title: entry.title || (claim?.text ?? ''),
        detail: `${entry.proposals} claims by authors who are not displayed.`,
        from: claim?.author_name ?? entry.code,
        at: entry.updated ?? claim?.at ?? 0,
        tone: 'medium',
        accept: {
          label: 'Accept',
          done: 'Accepted: this node states it too.',
          run: () => post('/v1/entries/{entry}/accept', { path: { entry: entry.code }, body: {} }),
          // The text of a procedural entry needs the person; the node names the way.
          ...(entry.memory === 'procedural' ? {} : { command: `klnode inbox accept ${entry.code}` }),
        },
        open: `#/entry/${entry.code}`,
      };
    });
  return { items: [...conflicts, ...proposals], hasMore: Boolean(next) };
}

async function quarantineItems(signal: AbortSignal): Promise<InboxItem[]> {
  const { records } = await get('/v1/quarantine', { signal });
  return records.map((record): InboxItem => {
    const path = { digest: record.digest };
    return {
      key: `quarantine ${record.digest}`,
      kind: 'Quarantine',
      title: record.texts?.[0]?.text ?? `A record of entry ${record.entry.slice(0, 8)}`,
      detail: record.reason,
      from: record.peer_name,
      at: record.since,
      tone: 'high',
      ...(record.texts ? { texts: record.texts } : {}),
      accept: {
        label: 'Release',
        done: 'Released: it is shown and sent to peers.',
        run: () => post('/v1/quarantine/{digest}/release', { path }),
        command: `klnode inbox release ${record.digest.slice(0, 12)}`,
      },
      reject: {
        label: 'Delete',
        done: 'Deleted: the node does not request it again.',
        run: () => post('/v1/quarantine/{digest}/reject', { path }),
        command: `klnode inbox reject ${record.digest.slice(0, 12)}`,
      },
    };
  });
}

async function peerItems(signal: AbortSignal): Promise<InboxItem[]> {
  const { peers } = await get('/v1/peers', { signal });
  const waiting = peers.filter((peer) => peer.state === 'waiting' || peer.request);
  const requests = waiting.map((peer): InboxItem => {
    const path = { peer: peer.peer };
    const decide = (decision: 'approve' | 'refuse') => post('/v1/peers/{peer}/decision', { path, body: { decision } });
    return {
      key: `join ${peer.peer}`,
      kind: 'Join request',
      title: peer.name,
      detail: `Asks to join this node${peer.request?.wants ? ` as ${peer.request.wants}` : ''}. Compare the digits on both machines first${peer.code ? `: ${peer.code}` : ''}.`,
      from: peer.peer.slice(0, 8),
      at: peer.since,
      tone: 'medium',
      // A request by address needs the digits, which the Peers view asks for.
      ...(peer.request ? {} : { accept: { label: 'Approve', done: 'Approved.', run: () => decide('approve'), command: `klnode peer approve ${peer.peer.slice(0, 8)}` } }),
      reject: { label: 'Refuse', done: 'Refused.', run: () => decide('refuse'), command: `klnode peer refuse ${peer.peer.slice(0, 8)}` },
      open: `#/peers/${peer.peer}`,
    };
  });
  const offers = peers
    .flatMap((peer) => peer.offers ?? [])
    .map((offer): InboxItem => ({
      key: `offer ${offer.id}`,
      kind: 'Invitation',
      title: `Membership in workspace ${offer.name}`,
      detail: 'After you accept, both nodes exchange the entries of this workspace.',
      from: offer.peer_name,
      at: 0,
      tone: 'medium',
      accept: { label: 'Accept', done: 'Joined the workspace.', run: () => post('/v1/offers/decision', { body: { accept: true, workspace: offer.id, from: offer.peer } }), command: `klnode workspace accept ${shellWord(offer.name)} --from ${offer.peer.slice(0, 8)}` },
      reject: { label: 'Decline', done: 'Declined.', run: () => post('/v1/offers/decision', { body: { accept: false, workspace: offer.id, from: offer.peer } }), command: `klnode workspace decline ${shellWord(offer.name)} --from ${offer.peer.slice(0, 8)}` },
    }));
  return [...requests, ...offers];
}

async function heldItems(signal: AbortSignal): Promise<InboxItem[]> {
  const { entries } = await get('/v1/held', { signal });
  return entries.map((entry): InboxItem => {
    const topics = [...new Set(entry.flags.map((flag) => flag.topic))].join(', ');
    return {
      key: `held ${entry.id}`,
      kind: 'Held',
      title: entry.title,
      detail: `Neither peers nor agents get it, because its text may disclose something: ${topics}. Open it to rephrase the text, or release it as it is.`,
      from: `${entry.code} in ${entry.workspace}`,
      at: entry.since,
      tone: 'medium',
      texts: entry.flags.map((flag) => ({ field: flag.field, text: flag.text })),
      accept: {
        label: 'Release',
        done: 'Released: peers and agents get it from now on.',
        run: () => post('/v1/held/{entry}/release', { path: { entry: entry.code } }),
        command: `klnode inbox release ${entry.code}`,
      },
      open: `#/entry/${entry.code}`,
    };
  });
}

const TONES = { high: 0, medium: 1, low: 2 };

export async function inboxItems(signal: AbortSignal, reach: Reach = FIRST_REACH): Promise<Inbox> {
  const [ofEntries, findings, ...lists] = await Promise.all([
    entryItems(reach, signal),
    findingItems(reach, signal),
    quarantineItems(signal),
    journalItems(signal),
    peerItems(signal),
    heldItems(signal),
  ]);
  const items = [...lists.flat(), ...ofEntries.items, ...findings.items];
  return {
    items: items.sort((one, two) => TONES[one.tone] - TONES[two.tone] || two.at - one.at),
    hasMore: ofEntries.hasMore || findings.hasMore,
  };
}
