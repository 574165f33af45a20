// All entries as a virtual list with filters. Pages are loaded while the list scrolls.

import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, get, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { revision } from '../api/events';
import { Empty, View } from '../parts/frame';
import { Confidence, Status, Trust } from '../parts/judgement';
import { Line } from '../parts/text';
import { ago, count } from '../parts/time';
import { VirtualList } from '../parts/virtual_list';
import { entryAddress, goTo, replaceQuery, route } from '../router';

type Entry = Schemas['Entry'];
/** The fields of a row; the texts of 100,000 entries would fill the memory of the tab. */
type Row = Pick<Entry, 'id' | 'code' | 'title' | 'status' | 'status_reason' | 'type' | 'alpha' | 'beta' | 'mean' | 'workspace' | 'updated' | 'foreign' | 'trust' | 'author_name' | 'pinned' | 'muted' | 'proposals'> & { isContested: boolean };

const PAGE = 500;
const ROW_HEIGHT = 60;
/** On a narrow screen a title has two lines. */
const NARROW_ROW_HEIGHT = 78;
const narrow = matchMedia('(max-width: 760px)');

function useRowHeight(): number {
  const [isNarrow, setNarrow] = useState(narrow.matches);
  useEffect(() => {
    const measure = () => setNarrow(narrow.matches);
    narrow.addEventListener('change', measure);
    return () => narrow.removeEventListener('change', measure);
  }, []);
  return isNarrow ? NARROW_ROW_HEIGHT : ROW_HEIGHT;
}

const STATUSES = ['candidate', 'active', 'verified', 'stale', 'archived', 'retracted'];
const TYPES = ['lesson', 'skill', 'experience', 'norm', 'finding', 'spike', 'entity', 'relation', 'signal', 'friction', 'calibration', 'playbook'];

function row(entry: Entry): Row {
  const { id, code, title, status, status_reason, type, alpha, beta, mean, workspace, updated, foreign, trust, author_name, pinned, muted, proposals } = entry;
  return { id, code, title, status, status_reason, type, alpha, beta, mean, workspace, updated, foreign, trust, author_name, pinned, muted, proposals, isContested: entry.contested.length > 0 };
}

function EntryRow({ entry }: { entry: Row }) {
  return (
    <div class="entry-row">
      <span class="entry-main">
        <span class="entry-title">
          <Line text={entry.title} empty="(no title)" />
        </span>
        <span class="entry-sub">
          <span class="code">{entry.code}</span> · {entry.type} · <Line text={entry.workspace} /> · {ago(entry.updated)}
        </span>
      </span>
      {entry.isContested && <span class="badge conflict">Conflict</span>}
      {entry.proposals > 0 && <span class="badge">Proposal</span>}
      <span class="wide-only">
        <Trust value={entry.trust} name={entry.author_name ?? ''} isForeign={entry.foreign} />
      </span>
      <Confidence alpha={entry.alpha} beta={entry.beta} mean={entry.mean} />
      <Status status={entry.status} reason={entry.status_reason} />
    </div>
  );
}

interface Rows {
  /** The filter of these rows. */
  key: string;
  rows: Row[];
  /** The cursor of the next page; null after the last one. */
  next: string | null;
  error?: string;
}

/** The loads of one filter. They end when the filter changes, so that no late answer is shown. */
class RowLoads {
  readonly stop = new AbortController();
  private isLoading = false;
  private isOutdated = false;

  constructor(
    private readonly key: string,
    private readonly filter: Record<string, string>,
    private readonly show: (change: (before: Rows) => Rows) => void,
  ) {}

  /** Loads the page after `before`; the first page if there is none. */
  async load(after: string | null, before: Row[]): Promise<void> {
    if (this.isLoading) {
      this.isOutdated ||= after === null;
      return;
    }
    this.isLoading = true;
    const { key } = this;
    try {
      const query = { ...this.filter, limit: PAGE, ...(after ? { after } : {}) };
      const page = await get('/v1/entries', { query, signal: this.stop.signal });
      this.show(() => ({ key, rows: [...before, ...page.entries.map(row)], next: page.next ?? null }));
    } catch (thrown) {
      if (this.stop.signal.aborted) return;
      const error = thrown instanceof ApiError ? thrown.message : String(thrown);
      this.show((shown) => (shown.key === key ? { ...shown, error } : { key, rows: [], next: null, error }));
    } finally {
      this.isLoading = false;
    }
    if (!this.isOutdated || this.stop.signal.aborted) return;
    this.isOutdated = false;
    await this.load(null, []);
  }
}

function useRows(filter: Record<string, string>) {
  const key = JSON.stringify(filter);
  const [state, setState] = useState<Rows>({ key: '', rows: [], next: null });
  const loads = useRef<RowLoads | null>(null);
  useEffect(() => {
    loads.current = new RowLoads(key, filter, setState);
    void loads.current.load(null, []);
    return () => loads.current?.stop.abort();
  }, [key]);
  const isCurrent = state.key === key;
  // A long list is not loaded again for each change: the reader would lose the position.
  useEffect(() => {
    if (isCurrent && state.rows.length <= PAGE) void loads.current?.load(null, []);
  }, [revision.value]);
  return {
    rows: isCurrent ? state.rows : [],
    isLoaded: isCurrent,
    isComplete: isCurrent && state.next === null,
    error: isCurrent ? state.error : undefined,
    more: () => isCurrent && state.next && void loads.current?.load(state.next, state.rows),
    retry: () => void loads.current?.load(null, []),
  };
}

export function EntriesView() {
  const query = route.value.query;
  const rowHeight = useRowHeight();
  const [filter, setFilter] = useState<Record<string, string>>({
    status: query.get('status') ?? '',
    type: query.get('type') ?? '',
    workspace: query.get('workspace') ?? '',
    tag: query.get('tag') ?? '',
  });
  const workspaces = useLoad((signal) => get('/v1/workspaces', { signal }), 'workspaces');
  const status = useLoad((signal) => get('/v1/status', { signal }), 'status');
  const { rows, isLoaded, isComplete, error, more, retry } = useRows(filter);
  const change = (name: string, value: string) => {
    const changed = { ...filter, [name]: value };
    setFilter(changed);
    replaceQuery(changed);
  };
  const isFiltered = Object.values(filter).some((value) => value !== '');
  const choices = (name: string, label: string, values: string[]) => (
    <select aria-label={label} value={filter[name]} onChange={(event) => change(name, event.currentTarget.value)}>
      <option value="">{label}: all</option>
      {values.map((value) => (
        <option value={value}>{value}</option>
      ))}
    </select>
  );
  const total = !isFiltered ? status.data?.entries : undefined;
  return (
    <View title="Entries" lead={isComplete && !error ? `${count(rows.length)} entries` : `${count(total ?? rows.length)}${isFiltered ? '+' : ''} entries`}>
      <div class="filters">
        {choices('status', 'Status', STATUSES)}
        {choices('type', 'Type', TYPES)}
        {choices('workspace', 'Workspace', (workspaces.data?.workspaces ?? []).map((one) => one.name))}
        <input type="text" aria-label="Tag" placeholder="Tag" value={filter['tag']} onChange={(event) => change('tag', event.currentTarget.value.trim())} />
      </div>
      {error && (
        <p class="note error" role="alert">
          <Line text={error} />{' '}
          <button type="button" class="small" onClick={retry}>
            Try again
          </button>
        </p>
      )}
      {!isLoaded ? (
        <div class="skeleton" aria-busy="true" aria-label="Loading">
          <span />
          <span />
        </div>
      ) : rows.length > 0 ? (
        <VirtualList
          key={JSON.stringify(filter)}
          items={rows}
          total={isComplete ? rows.length : Math.max(total ?? 0, rows.length)}
          rowHeight={rowHeight}
          label="Entries"
          row={(entry) => <EntryRow entry={entry} />}
          onEnd={more}
          onOpen={(entry) => goTo(entryAddress(entry.code))}
        />
      ) : (
        !error && (
          <Empty title={isFiltered ? 'No entry passes these filters' : 'This node holds no entries yet'} {...(isFiltered ? {} : { command: 'klnode connect' })}>
            {isFiltered ? 'Choose “all” for a filter, or search instead.' : 'Connect your agents, so that they remember what they learn.'}
          </Empty>
        )
      )}
    </View>
  );
}
