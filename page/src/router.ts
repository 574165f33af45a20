// The address of a view is in the fragment, so that the node serves a single document.

import { signal } from '@preact/signals';

export interface Route {
  view: string;
  argument: string;
  query: URLSearchParams;
}

function parse(): Route {
  const [path = '', search = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const [view = '', argument = ''] = path.split('/', 2);
  let decoded = argument;
  try {
    decoded = decodeURIComponent(argument);
  } catch {
    // An invalid escape stays as it is.
  }
  return { view: view || 'search', argument: decoded, query: new URLSearchParams(search) };
}

export const route = signal<Route>(parse());

export function followAddress(): void {
  addEventListener('hashchange', () => {
    route.value = parse();
  });
  route.value = parse();
}

export function entryAddress(code: string): string {
  return `#/entry/${encodeURIComponent(code)}`;
}

export function playbookAddress(code: string, section = ''): string {
  const path = `#/playbooks/${encodeURIComponent(code)}`;
  return section ? `${path}?section=${encodeURIComponent(section)}` : path;
}

export function goTo(address: string): void {
  location.hash = address.replace(/^#/, '');
}

/** Changes the query of the current view without a step in the browser's history. */
export function replaceQuery(values: Record<string, string>): void {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''));
  const { view, argument } = route.value;
  const path = argument ? `${view}/${encodeURIComponent(argument)}` : view;
  const text = query.toString();
  history.replaceState(null, '', `#/${path}${text ? `?${text}` : ''}`);
  route.value = { view, argument, query };
}
