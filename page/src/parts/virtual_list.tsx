// A list that renders only its visible rows, so that 100,000 entries scroll smoothly. All rows have
// the same height.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';

const OVERSCAN_ROWS = 8;

interface VirtualListProps<T> {
  items: T[];
  /** The number of items including those that are not loaded yet, which the scroll bar covers too. */
  total?: number;
  rowHeight: number;
  label: string;
  row: (item: T, index: number) => ComponentChildren;
  onEnd?: () => void;
  onOpen?: (item: T) => void;
}

export function VirtualList<T>({ items, total, rowHeight, label, row, onEnd, onOpen }: VirtualListProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [active, setActive] = useState(-1);
  useEffect(() => {
    const element = box.current!;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / rowHeight) - OVERSCAN_ROWS);
  const size = Math.max(total ?? 0, items.length);
  const last = Math.min(size, Math.ceil((view.top + view.height) / rowHeight) + OVERSCAN_ROWS);
  useEffect(() => {
    if (last >= items.length - OVERSCAN_ROWS) onEnd?.();
  }, [last, items.length]);

  const move = (to: number) => {
    const next = Math.min(items.length - 1, Math.max(0, to));
    setActive(next);
    const element = box.current!;
    const top = next * rowHeight;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + rowHeight > element.scrollTop + element.clientHeight) element.scrollTop = top + rowHeight - element.clientHeight;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 1);
    const steps: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page };
    if (event.key in steps) move(active + steps[event.key]!);
    else if (event.key === 'Home') move(0);
    else if (event.key === 'End') move(items.length - 1);
    else if (event.key === 'Enter' && items[active] !== undefined) onOpen?.(items[active]);
    else return;
    event.preventDefault();
  };
  const shown = items.slice(first, last);
  const missing = Math.max(0, last - Math.max(first, items.length));
  return (
    <div
      class="virtual"
      ref={box}
      tabIndex={0}
      role="listbox"
      aria-label={`${label}. Arrow keys move, Enter opens.`}
      aria-activedescendant={active >= first && active < last ? `row-${active}` : undefined}
      onKeyDown={onKeyDown}
    >
      <div style={{ height: `${size * rowHeight}px` }} class="virtual-space" role="presentation">
        {shown.map((item, offset) => {
          const index = first + offset;
          return (
            <div
              id={`row-${index}`}
              key={index}
              class={index === active ? 'virtual-row active' : 'virtual-row'}
              style={{ transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` }}
              role="option"
              aria-selected={index === active}
              aria-setsize={size}
              aria-posinset={index + 1}
              onClick={() => onOpen?.(item)}
            >
              {row(item, index)}
            </div>
          );
        })}
        {missing > 0 && (
          <div class="virtual-row missing" style={{ transform: `translateY(${Math.max(first, items.length) * rowHeight}px)`, height: `${missing * rowHeight}px` }} aria-hidden="true">
            Loading, {items.length} of {size} are here
          </div>
        )}
      </div>
    </div>
  );
}
