// The frame of a view: heading, loading and error states, panels, and empty states that teach.

import type { ComponentChildren } from 'preact';
import type { Loaded } from '../api/load';
import { Line } from './text';

export function View({ title, lead, actions, children }: { title: string; lead?: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="view" aria-labelledby="view-title">
      <header class="view-head">
        <div>
          <h1 id="view-title" tabIndex={-1}>
            <Line text={title} />
          </h1>
          {lead && (
            <p class="lead">
              <Line text={lead} />
            </p>
          )}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function Panel({ title, note, children, actions, id }: { title: string; note?: string; children: ComponentChildren; actions?: ComponentChildren; id?: string }) {
  return (
    <section class="panel" id={id}>
      <header>
        <h2>
          <Line text={title} />
        </h2>
        {note && (
          <span class="muted">
            <Line text={note} />
          </span>
        )}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children && <p>{children}</p>}
      {command && <code class="command">{command}</code>}
    </div>
  );
}

/** Shows the data of a view, or why there is none. */
export function Ready<T>({ loaded, children }: { loaded: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (loaded.data !== undefined) return <>{children(loaded.data)}</>;
  if (loaded.error) {
    return (
      <div class="empty error" role="alert">
        <h3>
          <Line text={loaded.error.message} />
        </h3>
        {loaded.error.hint && (
          <p>
            <Line text={loaded.error.hint} />
          </p>
        )}
        <button type="button" onClick={loaded.reload}>
          Try again
        </button>
      </div>
    );
  }
  return (
    <div class="skeleton" aria-busy="true" aria-label="Loading">
      <span />
      <span />
      <span />
    </div>
  );
}
