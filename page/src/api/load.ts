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

/**
 * Loads when `key` changes, and after events. The earlier data stays visible while the next is
 * loading, unless the key changed.
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, key: string, follows: 'changes' | 'slowly' | 'never' = 'changes'): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T | undefined; error?: ApiError | undefined }>({ key: '' });
  const [isLoading, setLoading] = useState(true);
  const [asked, setAsked] = useState(0);
  const version = follows === 'changes' ? revision.value : follows === 'slowly' ? slowRevision.value : 0;
  const newest = useRef(load);
  newest.current = load;
  useEffect(() => {
    const stop = new AbortController();
    setLoading(true);
    newest
      .current(stop.signal)
      .then((data) => setState({ key, data }))
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        const shown = error instanceof ApiError ? error : new ApiError('failed', String(error));
        setState((before) => ({ key, data: before.key === key ? before.data : undefined, error: shown }));
      })
      .finally(() => !stop.signal.aborted && setLoading(false));
    return () => stop.abort();
  }, [key, version, asked]);
  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading,
    reload: () => setAsked((count) => count + 1),
  };
}
