// The session of this tab: a one-time code in the address is traded for a secret, which lives in
// sessionStorage and ends with the node's process.

import { signal } from '@preact/signals';

const KEY = 'klnode-secret';

export type SessionState = 'starting' | 'open' | 'missing' | 'ended';

export const session = signal<SessionState>('starting');

export function secret(): string | null {
  return sessionStorage.getItem(KEY);
}

export function endSession(): void {
  sessionStorage.removeItem(KEY);
  session.value = 'ended';
}

/** Takes the code out of the address, so that it is neither in the history nor visible. */
function takeCode(): string | null {
  const match = /^#code=([A-Za-z0-9_-]+)$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, '', '/#/search');
  return match[1] ?? null;
}

export async function openSession(): Promise<void> {
  const code = takeCode();
  if (code === null) {
    const known = secret() !== null || import.meta.env.DEV;
    session.value = known ? 'open' : 'missing';
    return;
  }
  try {
    const response = await fetch('/session', {
      method: 'POST',
      body: JSON.stringify({ code }),
      headers: { 'content-type': 'application/json' },
      credentials: 'omit',
      cache: 'no-store',
    });
    if (!response.ok) throw new Error(String(response.status));
    const answer = (await response.json()) as { secret: string };
    sessionStorage.setItem(KEY, answer.secret);
    session.value = 'open';
  } catch {
    session.value = secret() === null ? 'missing' : 'open';
  }
}
