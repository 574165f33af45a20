// Short messages after an act, with Undo where the API allows it, and the notice that an act needs a
// terminal.

import { signal } from '@preact/signals';
import { noteAct } from '../api/events';
import { ApiError } from '../api/request';
import { Line } from './text';

interface Notice {
  id: number;
  text: string;
  tone: 'done' | 'error';
  hint?: string | null | undefined;
  command?: string | undefined;
  undo?: (() => Promise<unknown>) | undefined;
}

const notices = signal<Notice[]>([]);
const SHOWN_MS = 9_000;
/** Time to read the message and to decide. */
const UNDO_SHOWN_MS = 30_000;
let next = 1;

function add(notice: Omit<Notice, 'id'>, shownMs = SHOWN_MS): void {
  const id = next++;
  notices.value = [...notices.value.slice(-3), { ...notice, id }];
  setTimeout(() => remove(id), shownMs);
}

function remove(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

interface Act<T> {
  /** The message after success. */
  done: string | ((result: T) => string);
  undo?: () => Promise<unknown>;
  /** The command that does the same in a terminal. */
  command?: string;
}

/** Reports a finished act whose errors its form shows itself. */
export function announce(done: string): void {
  noteAct();
  add({ text: done, tone: 'done' });
}

/** Runs an act and shows its result. Returns undefined if it failed. */
export async function act<T>(work: () => Promise<T>, { done, undo, command }: Act<T>): Promise<T | undefined> {
  try {
    const result = await work();
    noteAct();
    add({ text: typeof done === 'string' ? done : done(result), tone: 'done', undo }, undo ? UNDO_SHOWN_MS : SHOWN_MS);
    return result;
  } catch (error) {
    const shown = error instanceof ApiError ? error : new ApiError('failed', String(error));
    const isForTerminal = shown.needsTerminal && command !== undefined;
    const text = isForTerminal ? "This act needs the passphrase of the person's key. Confirm it in a terminal:" : shown.message;
    add({ text, tone: 'error', hint: isForTerminal ? undefined : shown.hint, command: isForTerminal ? command : undefined }, 20_000);
    return undefined;
  }
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map((notice) => (
        <div class={`notice ${notice.tone}`} key={notice.id}>
          <p>
            <Line text={notice.text} />
            {notice.hint && (
              <small>
                <Line text={notice.hint} />
              </small>
            )}
            {notice.command && (
              <code class="command">
                <Line text={notice.command} />
              </code>
            )}
          </p>
          {notice.undo && (
            <button
              type="button"
              onClick={() => {
                remove(notice.id);
                void act(notice.undo!, { done: 'Undone.' });
              }}
            >
              Undo
            </button>
          )}
          <button type="button" class="quiet" aria-label="Dismiss this message" onClick={() => remove(notice.id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
