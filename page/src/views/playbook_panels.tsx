// The past of a playbook: its edits, the lines that an edit changed, the last author of each line,
// and the restoration of an earlier version after a preview.

import { useState } from 'preact/hooks';
import { ApiError, get, patch, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Dialog } from '../parts/dialog';
import { Panel, Ready } from '../parts/frame';
import { announce } from '../parts/notice';
import { Line } from '../parts/text';
import { ago, count, moment } from '../parts/time';
import { NodeError } from './playbook_editor';

type Playbook = Schemas['Playbook'];
type Change = Schemas['PlaybookChange'];
type Waiting = Schemas['WaitingEdit'];

const EDITS_STEP = 20;
const LINES_STEP = 1000;
const DIFF_LINES_MAX = 1000;
const HASH_CHARACTERS = 8;

function short(hash: string): string {
  return hash.slice(0, HASH_CHARACTERS);
}

function Time({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={moment(at)}>
      {ago(at)}
    </time>
  );
}

function More({ shown, all, onMore }: { shown: number; all: number; onMore: () => void }) {
  if (all <= shown) return null;
  return (
    <button type="button" class="quiet small" onClick={onMore}>
      Show more ({count(all - shown)} left)
    </button>
  );
}

/** Each line with its last author. The author is named once per run of lines of the same edit. */
export function Blame({ book, section }: { book: Playbook; section: string }) {
  const [shown, setShown] = useState(LINES_STEP);
  const query = section ? { section } : {};
  const loaded = useLoad((signal) => get('/v1/playbooks/{entry}/blame', { path: { entry: book.code }, query, signal }), `blame ${book.id} ${book.version} ${section}`, 'never');
  return (
    <Ready loaded={loaded}>
      {({ lines }) => (
        <>
          {lines.length === 0 && <p class="muted">This playbook has no text.</p>}
          <ol class="blame">
            {lines.slice(0, shown).map((line, index) => (
              <li class={lines[index - 1]?.edit === line.edit ? '' : 'first'}>
                <span class="muted small" title={`edit ${short(line.edit)}, ${moment(line.at)}`}>
                  {lines[index - 1]?.edit !== line.edit && (
                    <>
                      <Line text={line.author_name} empty={short(line.author)} />, {ago(line.at)}
                    </>
                  )}
                </span>
                <span class="source">
                  <Line text={line.text} empty=" " />
                </span>
              </li>
            ))}
          </ol>
          <More shown={shown} all={lines.length} onMore={() => setShown(shown + LINES_STEP)} />
        </>
      )}
    </Ready>
  );
}

/** Removed and added lines. Without `from`, the lines that the edit `to` itself changed. */
function Difference({ book, from, to, equal }: { book: Playbook; from?: string; to: string; equal: string }) {
  const query = from ? { from, to } : { to };
  const loaded = useLoad((signal) => get('/v1/playbooks/{entry}/diff', { path: { entry: book.code }, query, signal }), `diff ${book.id} ${from} ${to}`, 'never');
  return (
    <Ready loaded={loaded}>
      {({ changes }) => {
        const lines = changes.flatMap((place) => [
          ...place.removed.map((text, index) => ({ sign: '−', name: 'removed', number: place.old_line + index, text })),
          ...place.added.map((text, index) => ({ sign: '+', name: 'added', number: place.new_line + index, text })),
        ]);
        return (
          <>
            {lines.length === 0 && <p class="muted">{equal}</p>}
            <ol class="diff">
              {lines.slice(0, DIFF_LINES_MAX).map((line) => (
                <li class={line.name}>
                  <span class="diff-place">
                    <span class="hidden">{line.name} line </span>
                    {line.number} <span aria-hidden="true">{line.sign}</span>
                  </span>
                  <span class="source">
                    <Line text={line.text} empty=" " />
                  </span>
                </li>
              ))}
            </ol>
            {lines.length > DIFF_LINES_MAX && <p class="muted">… {count(lines.length - DIFF_LINES_MAX)} more lines</p>}
          </>
        );
      }}
    </Ready>
  );
}

function RestoreDialog({ book, change, onClose, onRestore }: { book: Playbook; change: Change; onClose: () => void; onRestore: () => void }) {
  const [error, setError] = useState<ApiError | null>(null);
  const restore = async () => {
    setError(null);
    try {
      await patch('/v1/playbooks/{entry}', { path: { entry: book.code }, body: { restore: change.edit } });
    } catch (thrown) {
      setError(thrown instanceof ApiError ? thrown : new ApiError('failed', String(thrown)));
      return;
    }
    announce(`The version of ${moment(change.at)} is the text again.`);
    onClose();
    onRestore();
  };
  return (
    <Dialog title="Restore an earlier version" onClose={onClose}>
      <p>
        The text after the edit of <Line text={change.author_name} empty={short(change.author)} />, {moment(change.at)}, becomes the present text, as a new edit. The history stays.
      </p>
      <h3>The present text would change like this</h3>
      <div class="preview" tabIndex={0} role="region" aria-label="Preview">
        <Difference book={book} from={book.version} to={change.edit} equal="This version equals the present text." />
      </div>
      {error && <NodeError error={error} command={`klnode playbook restore ${book.code} ${short(change.edit)}`} />}
      <div class="actions">
        <button type="button" class="primary" onClick={() => void restore()}>
          Restore
        </button>
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

function HistoryRow({ book, change, isChosen, onChoose, onRestore }: { book: Playbook; change: Change; isChosen: boolean; onChoose: () => void; onRestore: () => void }) {
  const isPresent = book.version === change.edit;
  return (
    <li class={isChosen ? 'own' : ''}>
      <button type="button" class="row-button" aria-expanded={isChosen} onClick={onChoose}>
        <Time at={change.at} />
        <span>
          <strong>
            <Line text={change.author_name} empty={short(change.author)} />
          </strong>{' '}
          <span class="good">
            +{count(change.inserted)}
            <span class="hidden"> characters inserted,</span>
          </span>{' '}
          <span class="bad">
            −{count(change.deleted)}
            <span class="hidden"> characters deleted,</span>
          </span>{' '}
          <span class="code">{short(change.edit)}</span>
        </span>
      </button>
      {isChosen && (
        <div class="history-detail">
          <Difference book={book} to={change.edit} equal="This edit changed no line." />
          {!isPresent && (
            <button type="button" class="small" onClick={onRestore}>
              Restore this version
            </button>
          )}
        </div>
      )}
    </li>
  );
}

function WaitingEdits({ waiting }: { waiting: Waiting[] }) {
  if (waiting.length === 0) return null;
  return (
    <>
      <h3>Waiting edits</h3>
      <ul class="plain small">
        {waiting.slice(0, EDITS_STEP).map((edit) => (
          <li>
            <Line text={edit.author_name} empty={short(edit.author)} /> <span class="code">{short(edit.edit)}</span>{' '}
            <span class="muted">waits for {edit.missing.length === 1 ? 'an earlier edit' : `${count(edit.missing.length)} earlier edits`}</span>
          </li>
        ))}
      </ul>
      {waiting.length > EDITS_STEP && <p class="muted small">and {count(waiting.length - EDITS_STEP)} more</p>}
    </>
  );
}

export function PlaybookHistory({ book, onRestore }: { book: Playbook; onRestore: () => void }) {
  const [shown, setShown] = useState(EDITS_STEP);
  const [chosen, setChosen] = useState('');
  const [restored, setRestored] = useState<Change | null>(null);
  const loaded = useLoad((signal) => get('/v1/playbooks/{entry}/history', { path: { entry: book.code }, signal }), `history ${book.id}`);
  return (
    <Panel title="History" note="by the clocks of the authors">
      <Ready loaded={loaded}>
        {({ edits, waiting }) => (
          <>
            {edits.length === 0 && <p class="muted">No edit has arrived yet.</p>}
            <ol class="timeline">
              {edits.slice(0, shown).map((change) => (
                <HistoryRow
                  key={change.edit}
                  book={book}
                  change={change}
                  isChosen={chosen === change.edit}
                  onChoose={() => setChosen(chosen === change.edit ? '' : change.edit)}
                  onRestore={() => setRestored(change)}
                />
              ))}
            </ol>
            <More shown={shown} all={edits.length} onMore={() => setShown(shown + EDITS_STEP)} />
            <WaitingEdits waiting={waiting ?? []} />
          </>
        )}
      </Ready>
      {restored && <RestoreDialog book={book} change={restored} onClose={() => setRestored(null)} onRestore={onRestore} />}
    </Panel>
  );
}
