// Follows `/v1/events` through fetch, because an EventSource cannot send the secret. Reconnects with
// back-off and resumes after the last event.

import { signal } from '@preact/signals';
import { headers } from './request';
import { endSession, session } from './session';

export type LinkState = 'connecting' | 'live' | 'lost';

/** The state of the connection to the node. */
export const link = signal<LinkState>('connecting');
/** Grows with each group of changes; views reload when it changes. */
export const revision = signal(0);
/** Grows at most every ten seconds, and after an act on this page: for costly summaries. */
export const slowRevision = signal(0);
/** Failed attempts since the last live connection. */
export const attempts = signal(0);

const RELOAD_INTERVAL_MS = 400;
const SLOW_INTERVAL_MS = 10_000;
const RETRY_MS = [300, 700, 1500, 3000, 5000];
/** The node sends a keep-alive every 15 seconds. */
const SILENCE_MAX_MS = 40_000;

let lastSeq: number | null = null;
let lastNumber: number | null = null;
let pending: ReturnType<typeof setTimeout> | null = null;
let slowPending: ReturnType<typeof setTimeout> | null = null;

function noteChange(): void {
  pending ??= setTimeout(() => {
    pending = null;
    revision.value += 1;
  }, RELOAD_INTERVAL_MS);
  slowPending ??= setTimeout(() => {
    slowPending = null;
    slowRevision.value += 1;
  }, SLOW_INTERVAL_MS);
}

/** Reloads the summaries soon after an act on this page. */
export function noteAct(): void {
  setTimeout(() => {
    slowRevision.value += 1;
  }, RELOAD_INTERVAL_MS);
}

function takeBlock(block: string): void {
  let isEvent = false;
  for (const line of block.split('\n')) {
    if (line.startsWith('id:')) lastSeq = Number(line.slice(3).trim());
    if (line.startsWith('data:')) {
      isEvent = true;
      const number = /"number":(\d+)/.exec(line);
      if (number && !line.includes('"seq":')) lastNumber = Number(number[1]);
    }
  }
  if (isEvent) noteChange();
}

async function readStream(response: Response, stop: AbortController): Promise<void> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let silence = setTimeout(() => stop.abort(), SILENCE_MAX_MS);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), SILENCE_MAX_MS);
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop() ?? '';
      blocks.forEach(takeBlock);
    }
  } finally {
    clearTimeout(silence);
  }
}

async function connect(): Promise<void> {
  const stop = new AbortController();
  const query = new URLSearchParams();
  if (lastSeq !== null) query.set('since', String(lastSeq));
  if (lastNumber !== null) query.set('noted_since', String(lastNumber));
  const response = await fetch(`/v1/events?${query}`, {
    headers: { ...headers(), accept: 'text/event-stream' },
    credentials: 'omit',
    cache: 'no-store',
    signal: stop.signal,
  });
  if (response.status === 401) return endSession();
  if (response.status === 400) {
    // The node has fewer events than this page has seen: another store answers.
    lastSeq = null;
    lastNumber = null;
  }
  if (!response.ok) throw new Error(String(response.status));
  if (link.value !== 'live') {
    link.value = 'live';
    if (attempts.value > 0) revision.value += 1;
    attempts.value = 0;
  }
  await readStream(response, stop);
}

/** Follows events until the session ends. */
export async function followEvents(): Promise<void> {
  while (session.value === 'open') {
    try {
      await connect();
    } catch {
      // The reason does not matter: the next attempt shows whether the node is back.
    }
    if (session.value !== 'open') return;
    link.value = 'lost';
    const wait = RETRY_MS[Math.min(attempts.value, RETRY_MS.length - 1)]!;
    attempts.value += 1;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}
