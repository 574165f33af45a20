// Acts on an entry: feedback, marks, archive, promote and forget with its receipts.

import { useEffect, useState } from 'preact/hooks';
import { get, patch, post, put, type Schemas } from '../api/request';
import { Dialog } from '../parts/dialog';
import { act } from '../parts/notice';
import { shellWord } from '../parts/shell';
import { Line, Passages } from '../parts/text';
import { ago } from '../parts/time';
import { goTo } from '../router';

type Entry = Schemas['Entry'];
type Mark = Schemas['MarkUpdate'];

interface ActsProps {
  entry: Entry;
  onEdit: () => void;
  onChange: () => void;
  onForgotten: () => void;
}

/** The names of a forgotten entry, which has no text any more. */
export type ForgottenEntry = Pick<Entry, 'id' | 'code'>;

export function EntryActs({ entry, onEdit, onChange, onForgotten }: ActsProps) {
  const [dialog, setDialog] = useState<'promote' | 'forget' | 'note' | null>(null);
  const path = { entry: entry.code };
  const isArchived = entry.status === 'archived';
  const observe = (outcome: 'success' | 'failure') =>
    act(() => post('/v1/entries/{entry}/observations', { path, body: { outcome } }), {
      done: (result) => (result.counted ? 'Counted.' : `Not counted: ${result.reason ?? 'already recorded today'}`),
    }).then(onChange);
  const mark = (body: Mark, undo: Mark, done: string) =>
    act(() => put('/v1/entries/{entry}/overlay', { path, body }), {
      done,
      undo: () => put('/v1/entries/{entry}/overlay', { path, body: undo }).then(onChange),
    }).then(onChange);
  const archive = (archived: boolean) =>
    act(() => patch('/v1/entries/{entry}', { path, body: { archived } }), {
      done: archived ? 'Archived.' : 'Restored.',
      undo: () => patch('/v1/entries/{entry}', { path, body: { archived: !archived } }).then(onChange),
    }).then(onChange);
  return (
    <div class="acts" role="toolbar" aria-label="Acts on this entry">
      <button type="button" onClick={() => void observe('success')} title="Counts as a success, once a day">
        It helped
      </button>
      <button type="button" onClick={() => void observe('failure')} title="Counts as a failure, once a day">
        It misled
      </button>
      <span class="divider" />
      <button type="button" onClick={onEdit}>
        Edit
      </button>
      <button type="button" onClick={() => void mark({ pinned: !entry.pinned }, { pinned: entry.pinned }, entry.pinned ? 'Unpinned.' : 'Pinned: it ranks higher here.')}>
        {entry.pinned ? 'Unpin' : 'Pin'}
      </button>
      <button type="button" onClick={() => void mark({ muted: !entry.muted }, { muted: entry.muted }, entry.muted ? 'Unmuted.' : 'Muted: this node no longer answers with it.')}>
        {entry.muted ? 'Unmute' : 'Mute'}
      </button>
      <button
        type="button"
        onClick={() => void mark({ invalidated: !entry.invalidated }, { invalidated: entry.invalidated }, entry.invalidated ? 'The mark is removed.' : 'Marked as wrong on this node.')}
      >
        {entry.invalidated ? 'Not wrong' : 'Mark wrong'}
      </button>
      <button type="button" onClick={() => setDialog('note')}>
        Note
      </button>
      <span class="divider" />
      <button type="button" onClick={() => setDialog('promote')}>
        Promote
      </button>
      <button type="button" onClick={() => void archive(!isArchived)}>
        {isArchived ? 'Restore' : 'Archive'}
      </button>
      <button type="button" class="danger" onClick={() => setDialog('forget')}>
        Forget
      </button>
      {dialog === 'promote' && <PromoteDialog entry={entry} onClose={() => setDialog(null)} />}
      {dialog === 'forget' && <ForgetDialog entry={entry} onClose={() => setDialog(null)} onForgotten={onForgotten} />}
      {dialog === 'note' && (
        <NoteDialog entry={entry} onClose={() => setDialog(null)} onSave={(note) => void mark({ note }, { note: entry.note ?? '' }, 'The note is saved on this node.')} />
      )}
    </div>
  );
}

function NoteDialog({ entry, onClose, onSave }: { entry: Entry; onClose: () => void; onSave: (note: string) => void }) {
  const [note, setNote] = useState(entry.note ?? '');
  return (
    <Dialog title="Note on this node" onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          onSave(note);
          onClose();
        }}
      >
        <label>
          Only this node shows the note. An empty note removes it.
          <textarea rows={4} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
        </label>
        <div class="actions">
          <button type="submit" class="primary">
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

export function PromoteDialog({ entry, onClose }: { entry: Pick<Entry, 'code' | 'title' | 'content' | 'memory' | 'workspace' | 'registers'>; onClose: () => void }) {
  const [to, setTo] = useState('');
  const [memory, setMemory] = useState(entry.memory === 'episodic' ? 'semantic' : entry.memory);
  const [reason, setReason] = useState('');
  const [workspaces, setWorkspaces] = useState<Schemas['Workspace'][]>([]);
  useEffect(() => {
    get('/v1/workspaces').then(
      ({ workspaces: list }) => setWorkspaces(list),
      () => undefined,
    );
  }, []);
  const needsApproval = entry.memory === 'episodic';
  const isThreaded = Boolean(entry.registers['thread']);
  // The node refuses a copy that differs in nothing.
  const isChange = to !== '' || memory !== entry.memory || isThreaded;
  const others = Math.max(0, (workspaces.find((one) => one.name === to)?.members.length ?? 0) - 1);
  const promote = async () => {
    const approve = reason.trim();
    const body = { memory, ...(to ? { to } : {}), ...(approve ? { approve } : {}) };
    const path = { entry: entry.code };
    const command = `klnode add --from ${entry.code} --memory ${memory}${to ? ` --workspace ${shellWord(to)}` : ''}${approve ? ' --approve "…"' : ''}`;
    const work = () => {
      if (memory === 'procedural') return post('/v1/entries/{entry}/promote/procedural', { path, body });
      return approve ? post('/v1/entries/{entry}/promote/approved', { path, body }) : post('/v1/entries/{entry}/promote', { path, body });
    };
    const made = await act(work, { done: (result) => (result.known ? `${result.code} exists already.` : `Promoted as ${result.code}.`), command });
    if (!made) return;
    onClose();
    goTo(`#/entry/${made.code}`);
  };
  return (
    <Dialog title={needsApproval ? 'Approve a promotion' : 'Promote'} onClose={onClose}>
      <p>
        A new entry is made from <strong>{entry.code}</strong>. The source stays as it is.
      </p>
      <blockquote class="preview">
        <strong>
          <Line text={entry.title} empty="(no title)" />
        </strong>
        <Passages text={entry.content} charactersMax={600} />
      </blockquote>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void promote();
        }}
      >
        <label>
          Workspace
          <select name="to" value={to} onChange={(event) => setTo(event.currentTarget.value)}>
            <option value="">
              {entry.workspace}
              {isThreaded ? ' (out of its thread)' : ' (as now)'}
            </option>
            {workspaces
              .filter(({ name }) => name !== entry.workspace)
              .map(({ name }) => (
                <option value={name}>{name}</option>
              ))}
          </select>
        </label>
        <label>
          Memory
          <select name="memory" value={memory} onChange={(event) => setMemory(event.currentTarget.value as typeof memory)}>
            <option value="semantic">semantic: knowledge</option>
            <option value="procedural">procedural: instructions that agents follow</option>
          </select>
        </label>
        {needsApproval && (
          <label>
            Why you approve it. The ledger of promotions keeps the reason.
            <input name="approve" required maxLength={500} value={reason} onInput={(event) => setReason(event.currentTarget.value)} placeholder="Seen in two incidents" />
          </label>
        )}
        <p class="muted small">
          {!isChange
            ? 'Choose another workspace or another memory.'
            : `Result: a ${memory} entry in ${to || entry.workspace}${others > 0 ? `, which ${others} other ${others === 1 ? 'member receives' : 'members receive'}` : ''}.`}
        </p>
        <div class="actions">
          <button type="submit" class="primary" disabled={!isChange}>
            {needsApproval ? 'Approve and promote' : 'Promote'}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

const RECEIPT_POLL_MS = 1000;

function ForgetDialog({ entry, onClose, onForgotten }: { entry: Entry; onClose: () => void; onForgotten: () => void }) {
  const [typed, setTyped] = useState('');
  const forget = async () => {
    const done = await act(() => post('/v1/entries/{entry}/forget', { path: { entry: entry.code } }), {
      done: `${entry.code} is forgotten on this node.`,
      command: `klnode forget ${entry.code}`,
    });
    if (!done) return;
    onClose();
    onForgotten();
  };
  return (
    <Dialog title="Forget this entry" onClose={onClose}>
      <p>
        The text of “<Line text={entry.title} />” is erased here and on every peer that received it. This cannot be undone. To hide it instead, archive or mute it.
      </p>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void forget();
        }}
      >
        <label>
          Type {entry.code} to confirm
          <input name="confirm" autocomplete="off" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
        </label>
        <div class="actions">
          <button type="submit" class="danger" disabled={typed.trim().toUpperCase() !== entry.code.toUpperCase()}>
            Forget for good
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** The confirmations of peers that the text is erased there, as they come in. */
export function ReceiptsDialog({ entry, onClose }: { entry: ForgottenEntry; onClose: () => void }) {
  const [receipts, setReceipts] = useState<Schemas['Receipts'] | null>(null);
  useEffect(() => {
    const load = () =>
      get('/v1/entries/{entry}/receipts', { path: { entry: entry.id } }).then(setReceipts, () => undefined);
    void load();
    const timer = setInterval(load, RECEIPT_POLL_MS);
    return () => clearInterval(timer);
  }, []);
  const peers = receipts?.peers ?? [];
  const missing = peers.filter((peer) => peer.erased === null || peer.erased === undefined).length;
  return (
    <Dialog title="Forgotten" onClose={onClose}>
      <p>
        {entry.code} is erased on this node.
        {receipts && peers.length === 0 && ' No peer had received it.'}
        {peers.length > 0 && (missing === 0 ? ' All peers confirmed.' : ` Waiting for ${missing} of ${peers.length} peers.`)}
      </p>
      <ul class="plain receipts">
        {peers.map((peer) => (
          <li>
            <span class={peer.erased ? 'badge fate-has' : 'badge'}>{peer.erased ? 'Erased' : 'Waiting'}</span> <Line text={peer.name} />{' '}
            <span class="muted">{peer.erased ? ago(peer.erased) : 'not confirmed yet'}</span>
          </li>
        ))}
      </ul>
      <div class="actions">
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
