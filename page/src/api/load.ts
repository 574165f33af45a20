// Loads data for a view and loads it again after changes on the node.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './request';
import { revision, slowRevision } from './events';

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  isLoading: boolean;
  reload: () => void;
}

/** Errors after which the earlier data must not stay visible: the node no longer has it. */
const GONE = new Set(['forgotten', 'not_found']);

/**
 * Loads when `key` changes, and after events. The earlier data stays visible while the next is
 * loading, unless the key changed. A change during a load is followed by one more load: aborting
 * the load in progress would never let a slow one finish while others write.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, key: string, follows: 'changes' | 'slowly' | 'never' = 'changes'): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T | undefined; error?: ApiError | undefined }>({ key: '' });
  const [isLoading, setLoading] = useState(true);
  const version = follows === 'changes' ? revision.value : follows === 'slowly' ? slowRevision.value : 0;
  const newest = useRef(load);
  newest.current = load;
  const begin = useRef(() => undefined as void);
  const loaded = useRef(version);
  useEffect(() => {
    const stop = new AbortController();
    let isRunning = false;
    let isOutdated = false;
    const start = (): void => {
      if (isRunning) {
        isOutdated = true;
        return;
      }
      isRunning = true;
      isOutdated = false;
      setLoading(true);
      newest
        .current(stop.signal)
        .then((data) => !stop.signal.aborted && setState({ key, data }))
        .catch((error: unknown) => {
          if (stop.signal.aborted) return;
          const shown = error instanceof ApiError ? error : new ApiError('failed', String(error));
          setState((before) => ({ key, data: before.key === key && !GONE.has(shown.kind) ? before.data : undefined, error: shown }));
        })
        .finally(() => {
          isRunning = false;
          if (stop.signal.aborted) return;
          if (isOutdated) start();
          else setLoading(false);
        });
    };
    begin.current = start;
    loaded.current = version;
    start();
    return () => stop.abort();
  }, [key]);
  useEffect(() => {
    if (loaded.current === version) return;
    loaded.current = version;
    begin.current();
  }, [version]);
  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading,
    reload: () => begin.current(),
  };
}
