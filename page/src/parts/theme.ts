// Light, dark, or the choice of the system. The choice is no secret, so it may outlive the session.

import { signal } from '@preact/signals';

export type Choice = 'system' | 'light' | 'dark';

const KEY = 'klnode-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');

export const choice = signal<Choice>((localStorage.getItem(KEY) as Choice | null) ?? 'system');
/** The theme in effect. */
export const theme = signal<'light' | 'dark'>('light');

function apply(): void {
  theme.value = choice.value === 'system' ? (dark.matches ? 'dark' : 'light') : choice.value;
  document.documentElement.dataset['theme'] = theme.value;
}

export function choose(next: Choice): void {
  choice.value = next;
  localStorage.setItem(KEY, next);
  apply();
}

dark.addEventListener('change', apply);
apply();
