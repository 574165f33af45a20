// The shell: navigation, connection state, keyboard shortcuts, and the view of the address.

import { useEffect, useRef, useState } from 'preact/hooks';
import { attempts, link } from './api/events';
import { session } from './api/session';
import { useLoad } from './api/load';
import { Dialog } from './parts/dialog';
import { Notices } from './parts/notice';
import { choose, theme } from './parts/theme';
import { goTo, route } from './router';
import { UsageView, TasksView } from './views/activity';
import { BriefingView } from './views/briefing';
import { CompareView } from './views/compare';
import { EntriesView } from './views/entries';
import { EntryView } from './views/entry';
import { InboxView } from './views/inbox';
import { inboxItems } from './views/inbox_items';
import { PeersView } from './views/peers';
import { PlaybooksView } from './views/playbooks';
import { SearchView } from './views/search';
import { StatusView } from './views/status';

/** Address, name, key after `g`, and the path of the icon. */
const VIEWS: [string, string, string, string][] = [
  ['search', 'Search', 's', 'M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm5 11.5L20 20'],
  ['entries', 'Entries', 'e', 'M4 6h16M4 12h16M4 18h10'],
  ['briefing', 'Briefing', 'b', 'M6 3h9l4 4v14H6ZM9 11h7M9 15h5'],
  ['inbox', 'Inbox', 'i', 'M4 13 7 5h10l3 8v6H4Zm0 0h5l1 2h4l1-2h5'],
  ['tasks', 'Tasks', 't', 'm4 7 2 2 3-4M4 16l2 2 3-4M12 7h8M12 16h8'],
  ['usage', 'Usage', 'u', 'M4 20V10M10 20V4M16 20v-7M21 20H3'],
  ['peers', 'Peers', 'p', 'M6 8a2.5 2.5 0 1 0 0-.1M18 8a2.5 2.5 0 1 0 0-.1M12 19a2.5 2.5 0 1 0 0-.1M8 8h8M7 10l4 6M17 10l-4 6'],
  ['playbooks', 'Playbooks', 'y', 'M5 4h6v16H5ZM13 4h6v16h-6Z'],
  ['status', 'Status', 'h', 'M3 12h4l2-6 4 12 2-6h6'],
];

function Icon({ path }: { path: string }) {
  return (
    <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linecap="round" stroke-linejoin="round">
      <path d={path} />
    </svg>
  );
}

function Rail() {
  const inbox = useLoad((signal) => inboxItems(signal), 'rail', 'slowly');
  const waiting = inbox.data?.items.length ?? 0;
  const list = useRef<HTMLUListElement>(null);
  const current = route.value.view === 'entry' || route.value.view === 'compare' ? 'entries' : route.value.view;
  // On a narrow screen the list scrolls sideways.
  useEffect(() => {
    const link = list.current?.querySelector<HTMLElement>('[aria-current]');
    if (link) list.current!.scrollLeft = link.offsetLeft - (list.current!.clientWidth - link.offsetWidth) / 2;
  }, [current]);
  return (
    <nav class="rail" aria-label="Views">
      <a class="brand" href="#/search">
        <img src="/icon.svg" alt="" width="26" height="26" />
        <span>klnode</span>
      </a>
      <ul ref={list}>
        {VIEWS.map(([view, name, , icon]) => (
          <li>
            <a href={`#/${view}`} aria-current={view === current ? 'page' : undefined}>
              <Icon path={icon} />
              <span>{name}</span>
              {view === 'inbox' && waiting > 0 && (
                <span class="count" aria-label={`${waiting} waiting`}>
                  {waiting}
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
      <div class="rail-foot">
        <Connection />
        <button type="button" class="quiet" onClick={() => choose(theme.value === 'dark' ? 'light' : 'dark')} aria-label={theme.value === 'dark' ? 'Use light colours' : 'Use dark colours'}>
          {theme.value === 'dark' ? '☀' : '☾'}
        </button>
      </div>
    </nav>
  );
}

const LINK_TEXT = { connecting: 'Connecting', live: 'Live', lost: 'Not connected' };

function Connection() {
  return (
    <span class={`link ${link.value}`} role="status">
      <span class="link-dot" />
      {LINK_TEXT[link.value]}
    </span>
  );
}

const RESTART_ATTEMPTS = 4;

function LostBar() {
  if (link.value !== 'lost') return null;
  return (
    <div class="lost" role="alert">
      <strong>The node does not answer.</strong>{' '}
      {attempts.value >= RESTART_ATTEMPTS ? (
        <span>
          If it was restarted, this session has ended: run <code>klnode ui</code> again. You see the last known state.
        </span>
      ) : (
        <span>Trying again. You see the last known state.</span>
      )}
    </div>
  );
}

/** The page without a session. */
function Closed() {
  const isEnded = session.value === 'ended';
  return (
    <main class="closed">
      <img src="/icon.svg" alt="" width="48" height="48" />
      <h1>{isEnded ? 'This session has ended' : 'Open the page from a terminal'}</h1>
      <p>{isEnded ? 'The node was restarted, or the session was closed. Run this command to open the page again:' : 'A code opens the page once, within 30 seconds. This command makes one and opens the browser:'}</p>
      <code class="command">klnode ui</code>
    </main>
  );
}

function CurrentView() {
  const { view, argument } = route.value;
  switch (view) {
    case 'entries':
      return <EntriesView />;
    case 'entry':
      return <EntryView key={argument} code={argument} />;
    case 'compare':
      return <CompareView key={argument} codes={argument} />;
    case 'briefing':
      return <BriefingView />;
    case 'inbox':
      return <InboxView />;
    case 'tasks':
      return <TasksView task={argument} />;
    case 'usage':
      return <UsageView />;
    case 'peers':
      return <PeersView peer={argument} />;
    case 'playbooks':
      return <PlaybooksView name={argument} />;
    case 'status':
      return <StatusView />;
    default:
      return <SearchView />;
  }
}

function useShortcuts(showHelp: () => void): void {
  useEffect(() => {
    let isGoing = false;
    const onKeyDown = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (target.closest('input, textarea, select, dialog') || event.ctrlKey || event.metaKey || event.altKey) return;
      const wasGoing = isGoing;
      const view = isGoing ? VIEWS.find(([, , key]) => key === event.key) : undefined;
      isGoing = false;
      if (view) goTo(`#/${view[0]}`);
      // A letter without a view must not act on an item of the inbox.
      else if (wasGoing && /^[a-z]$/.test(event.key)) isGoing = event.key === 'g';
      else if (event.key === 'g') isGoing = true;
      else if (event.key === '/') {
        goTo('#/search');
        setTimeout(() => document.getElementById('search')?.focus());
      } else if (event.key === '?') showHelp();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
}

function HelpDialog({ onClose }: { onClose: () => void }) {
  const keys: [string, string][] = [
    ['/', 'Search'],
    ['g, then a letter', VIEWS.map(([, name, key]) => `${key} ${name}`).join(', ')],
    ['j, k or arrows', 'Move in a list'],
    ['Enter', 'Open'],
    ['a, r, e', 'Inbox: accept, reject, open to edit'],
    ['Ctrl+Enter', 'Save an edit'],
    ['Escape', 'Close or cancel'],
    ['?', 'This help'],
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl class="pairs">
        {keys.map(([key, text]) => (
          <div>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function useTitle(): void {
  const { view, argument } = route.value;
  useEffect(() => {
    const name = VIEWS.find(([key]) => key === view)?.[1] ?? argument;
    document.title = `${name} · klnode`;
    const isTyping = document.activeElement?.closest('input, dialog');
    if (!isTyping) document.getElementById('view-title')?.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [view, argument]);
}

export function App() {
  const [isHelp, setHelp] = useState(false);
  useShortcuts(() => setHelp(true));
  useTitle();
  if (session.value === 'starting') return null;
  if (session.value !== 'open') return <Closed />;
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('view-title')?.focus(); }}>
        Skip to the view
      </a>
      <Rail />
      <main id="main">
        <LostBar />
        <CurrentView />
      </main>
      <Notices />
      {isHelp && <HelpDialog onClose={() => setHelp(false)} />}
    </div>
  );
}

