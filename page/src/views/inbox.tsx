// The inbox: one list of decisions, usable by keyboard alone.

import { useEffect, useRef, useState } from 'preact/hooks';
import { useLoad } from '../api/load';
import { Empty, Ready, View } from '../parts/frame';
import { act } from '../parts/notice';
import { Line } from '../parts/text';
import { ago, count } from '../parts/time';
import { goTo, replaceQuery, route } from '../router';
import { FIRST_REACH, inboxItems, type Decision, type InboxItem } from './inbox_items';

interface ItemProps {
  item: InboxItem;
  isActive: boolean;
  onFocus: () => void;
  onDecide: (decision: Decision) => void;
}

function Item({ item, isActive, onFocus, onDecide }: ItemProps) {
  const element = useRef<HTMLLIElement>(null);
  useEffect(() => {
    const item = element.current!;
    if (isActive && !item.contains(document.activeElement)) item.focus();
  }, [isActive]);
  return (
    <li class={`inbox-item tone-${item.tone} ${isActive ? 'active' : ''}`} tabIndex={isActive ? 0 : -1} ref={element} onClick={onFocus} onFocusCapture={(event) => event.target !== event.currentTarget && onFocus()}>
      <div class="inbox-head">
        <span class={`badge kind-${item.tone}`}>{item.kind}</span>
        <strong>
          <Line text={item.title} />
        </strong>
      </div>
      <p>
        <Line text={item.detail} />
      </p>
      {item.texts?.slice(0, 4).map((text) => (
        <p class="quote small">
          {text.field}: <Line text={text.text} />
        </p>
      ))}
      <div class="inbox-foot">
        <span class="muted small">
          <Line text={item.from} /> {item.at > 0 && `· ${ago(item.at)}`}
        </span>
        <span class="actions">
          {item.accept && (
            <button type="button" class="primary small" onClick={() => onDecide(item.accept!)}>
              {item.accept.label}
            </button>
          )}
          {item.open && (
            <a class="button small" href={item.open}>
              Open
            </a>
          )}
          {item.reject && (
            <button type="button" class="small" onClick={() => onDecide(item.reject!)}>
              {item.reject.label}
            </button>
          )}
        </span>
      </div>
    </li>
  );
}

function InboxList({ items, reload }: { items: InboxItem[]; reload: () => void }) {
  const [active, setShown] = useState(-1);
  // Keys may arrive faster than the page renders, so the handler reads the newest state.
  const newest = useRef({ items, active });
  newest.current.items = items;
  const setActive = (index: number) => {
    newest.current.active = index;
    setShown(index);
  };
  // A second key or click during a decision, or before its item has left the list, decides nothing.
  const isDeciding = useRef(false);
  const decided = useRef(new Set<string>());
  useEffect(() => {
    for (const key of decided.current) if (!items.some((item) => item.key === key)) decided.current.delete(key);
  }, [items]);
  const decide = async (item: InboxItem, decision: Decision) => {
    if (isDeciding.current || decided.current.has(item.key)) return;
    isDeciding.current = true;
    const undo = async () => {
      await decision.undo!();
      decided.current.delete(item.key);
      reload();
    };
    const work = () => decision.run().then(() => true);
    const isDone = await act(work, { done: decision.done, ...(decision.command ? { command: decision.command } : {}), ...(decision.undo ? { undo } : {}) });
    if (isDone) decided.current.add(item.key);
    isDeciding.current = false;
    reload();
  };
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      // The shortcuts of the page come first: `g e` opens Entries and no item.
      if (event.defaultPrevented || isDeciding.current) return;
      const target = event.target as HTMLElement;
      if (target.closest('input, textarea, select, dialog, .rail') || event.ctrlKey || event.metaKey || event.altKey) return;
      const { items: known, active: at } = newest.current;
      const item = known[at];
      if (event.key === 'j' || event.key === 'ArrowDown') setActive(Math.min(known.length - 1, at + 1));
      else if (event.key === 'k' || event.key === 'ArrowUp') setActive(Math.max(0, at - 1));
      else if (event.key === 'a' && item?.accept) void decide(item, item.accept);
      else if (event.key === 'r' && item?.reject) void decide(item, item.reject);
      else if (event.key === 'e' && item?.open) goTo(item.open);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <ol class="inbox">
      {items.map((item, index) => (
        <Item key={item.key} item={item} isActive={index === active} onFocus={() => setActive(index)} onDecide={(decision) => void decide(item, decision)} />
      ))}
    </ol>
  );
}

/** Each step examines this many times as many tasks and entries. */
const REACH_FACTOR = 10;

export function InboxView() {
  const [reach, setReach] = useState(FIRST_REACH);
  // A wide reach reads much, so it does not follow each change.
  const isFirst = reach === FIRST_REACH;
  const loaded = useLoad((signal) => inboxItems(signal, reach), `inbox ${reach.entries}`, isFirst ? 'changes' : 'slowly');
  const kind = route.value.query.get('kind') ?? '';
  const all = loaded.data?.items ?? [];
  const kinds = [...new Set(all.map((item) => item.kind))];
  return (
    <View title="Inbox" lead="Decisions that wait for you. Keys: j and k move, a accepts, r rejects, e opens.">
      {kinds.length > 1 && (
        <div class="chips" role="group" aria-label="Show only">
          {['', ...kinds].map((name) => (
            <button type="button" class={name === kind ? 'chip on' : 'chip'} aria-pressed={name === kind} onClick={() => replaceQuery({ kind: name })}>
              {name || 'All'} {name ? all.filter((item) => item.kind === name).length : all.length}
            </button>
          ))}
        </div>
      )}
      <Ready loaded={loaded}>
        {({ items, hasMore }) => {
          const shown = items.filter((item) => kind === '' || item.kind === kind);
          return (
            <>
              {shown.length === 0 ? (
                <Empty title="Nothing waits for you">
                  Findings of agents, contradictions, conflicting edits, proposals of peers and quarantined records appear here.
                </Empty>
              ) : (
                <InboxList items={shown} reload={loaded.reload} />
              )}
              {hasMore && (
                <p class="muted small row">
                  <span>
                    The newest {count(reach.tasks)} tasks and {count(reach.entries)} entries were examined for findings, conflicts and proposals.
                  </span>
                  <button type="button" class="small" onClick={() => setReach({ tasks: reach.tasks * REACH_FACTOR, entries: reach.entries * REACH_FACTOR })}>
                    Examine more
                  </button>
                </p>
              )}
            </>
          );
        }}
      </Ready>
    </View>
  );
}
