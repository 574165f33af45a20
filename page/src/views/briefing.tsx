// The briefing: insights by severity, the audit of the entries, and the briefing that an agent reads.

import { useState } from 'preact/hooks';
import { get, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Empty, Panel, Ready, View } from '../parts/frame';
import { Confidence, Status } from '../parts/judgement';
import { Line } from '../parts/text';
import { count } from '../parts/time';
import { entryAddress, replaceQuery, route } from '../router';
import { PromoteDialog } from './entry_acts';
import { Insights } from './insights';
import { DedupDialog, PromoteList, StaleDialog } from './maintenance_dialogs';

type Entry = Schemas['Entry'];

const MARKED_SHOWN = 6;

function Attention() {
  const status = useLoad((signal) => get('/v1/status', { signal }), 'status');
  const problems = status.data?.attention ?? [];
  if (problems.length === 0) return null;
  return (
    <div class="note warn attention">
      <strong>The node needs you.</strong>
      <ul>
        {problems.map((text) => (
          <li>
            <Line text={text} />
          </li>
        ))}
      </ul>
      <a href="#/inbox">Open the inbox</a> or <a href="#/status">see the status</a>.
    </div>
  );
}

function Audit({ workspace }: { workspace: string }) {
  const [isLong, setLong] = useState(false);
  const loaded = useLoad((signal) => get('/v1/audit', { query: workspace ? { workspace } : {}, signal }), `audit ${workspace}`, 'slowly');
  return (
    <Ready loaded={loaded}>
      {({ marked, counts, next }) => {
        const shown = isLong ? marked : marked.slice(0, MARKED_SHOWN);
        return (
          <Panel title="Audit" note={`${count(counts.entries)}${next ? '+' : ''} entries examined`}>
            {marked.length === 0 &&
              (counts.entries === 0 ? (
                <Empty title="No entry to examine yet" command="klnode connect">
                  Connect your agents, so that they remember what they learn.
                </Empty>
              ) : (
                <Empty title="Every entry follows the rules">No entry lacks evidence, builds on an outdated one, or has been left behind.</Empty>
              ))}
            <ul class="plain marks">
              {shown.map((item) => (
                <li class="mark-row">
                  <span class={item.blocks ? 'badge conflict' : 'badge'}>{item.mark}</span>
                  <span>
                    <a href={entryAddress(item.code)}>
                      <Line text={item.title} empty={item.code} />
                    </a>
                    <span class="muted small block">
                      <Line text={item.why} />
                    </span>
                  </span>
                </li>
              ))}
            </ul>
            {marked.length > shown.length && (
              <button type="button" class="quiet small" onClick={() => setLong(true)}>
                Show all {count(marked.length)}
                {next ? '+' : ''}
              </button>
            )}
          </Panel>
        );
      }}
    </Ready>
  );
}

function AgentBriefing({ workspace }: { workspace: string }) {
  const loaded = useLoad((signal) => get('/v1/briefing', { query: workspace ? { workspace } : {}, signal }), `briefing ${workspace}`);
  return (
    <aside class="panel agent" aria-label="The briefing of an agent">
      <Ready loaded={loaded}>
        {(briefing) => (
          <>
            <header>
              <h2>An agent’s briefing</h2>
              <span class="muted">{count(briefing.tokens)} tokens</span>
            </header>
            {briefing.sections.length + (briefing.insights?.length ?? 0) === 0 && <p class="muted">Nothing stands out, so an agent starts with an empty briefing.</p>}
            {(briefing.insights?.length ?? 0) > 0 && (
              <div>
                <h3>Insights</h3>
                <ul class="plain">
                  {briefing.insights!.map((insight) => (
                    <li class="small">
                      <Line text={insight.text} />
                    </li>
                  ))}
                </ul>
              </div>
            )}
            {briefing.sections.map((section) => (
              <div>
                <h3>{section.title}</h3>
                <ul class="plain">
                  {section.entries.map((entry) => (
                    <li class="small">
                      {section.kind === 'tasks' ? (
                        <a href={`#/tasks/${entry.id}`}>
                          <Line text={entry.title} />
                        </a>
                      ) : (
                        <>
                          <a href={entryAddress(entry.code)}>{entry.code}</a> <Line text={entry.title} />
                        </>
                      )}
                    </li>
                  ))}
                </ul>
              </div>
            ))}
            {briefing.left_out > 0 && <p class="muted small">{briefing.left_out} more did not fit the budget.</p>}
          </>
        )}
      </Ready>
    </aside>
  );
}

function WorkspaceChoice({ workspace }: { workspace: string }) {
  const loaded = useLoad((signal) => get('/v1/workspaces', { signal }), 'workspaces');
  const names = (loaded.data?.workspaces ?? []).map((one) => one.name);
  if (names.length < 2) return null;
  return (
    <select aria-label="Workspace" value={workspace} onChange={(event) => replaceQuery({ workspace: event.currentTarget.value })}>
      <option value="">Current workspace</option>
      {names.map((name) => (
        <option value={name}>{name}</option>
      ))}
    </select>
  );
}

export function BriefingView() {
  const [dialog, setDialog] = useState<'dedup' | 'stale' | 'promote' | Entry | null>(null);
  const workspace = route.value.query.get('workspace') ?? '';
  const close = () => setDialog(null);
  return (
    <View
      title="Briefing"
      lead="What stands out, and what an agent reads first."
      actions={
        <>
          <WorkspaceChoice workspace={workspace} />
          <button type="button" title="Copy proven entries for a wider audience or a more lasting memory" onClick={() => setDialog('promote')}>
            Promote
          </button>
          <button type="button" title="Show one entry for each group of duplicates" onClick={() => setDialog('dedup')}>
            Dedup
          </button>
          <button type="button" title="Archive entries that no agent was served for a long time" onClick={() => setDialog('stale')}>
            Stale
          </button>
        </>
      }
    >
      <Attention />
      <div class="split">
        <div>
          <Insights workspace={workspace} />
          <Audit workspace={workspace} />
        </div>
        <AgentBriefing workspace={workspace} />
      </div>
      {dialog === 'dedup' && <DedupDialog onClose={close} />}
      {dialog === 'stale' && <StaleDialog onClose={close} />}
      {dialog === 'promote' && <PromoteList onClose={close} onChoose={setDialog} />}
      {dialog !== null && typeof dialog === 'object' && <PromoteDialog entry={dialog} onClose={close} />}
    </View>
  );
}

export function EntryLine({ entry }: { entry: Entry }) {
  return (
    <span class="row">
      <a href={entryAddress(entry.code)}>
        <Line text={entry.title} empty="(no title)" />
      </a>
      <Confidence alpha={entry.alpha} beta={entry.beta} mean={entry.mean} />
      <Status status={entry.status} reason={entry.status_reason} />
    </span>
  );
}
