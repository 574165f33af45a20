// The insights of a workspace by severity: each with its evidence, its suggested act as a button, and
// a dismissal that can be taken back.

import { useState } from 'preact/hooks';
import { get, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Empty, Panel, Ready } from '../parts/frame';
import { act } from '../parts/notice';
import { Line } from '../parts/text';
import { entryAddress } from '../router';
import { DecayClassDialog, TaskDialog } from './insight_dialogs';

type Insight = Schemas['ListedInsight'];
type Evidence = Schemas['EvidenceItem'];

const SEVERITIES: [string, string, string][] = [
  ['action_required', 'high', 'Act now'],
  ['attention', 'medium', 'Look soon'],
  ['info', 'low', 'Good to know'],
];
const EVIDENCE_SHOWN = 4;
/** The id of a task is long; its goal follows. */
const LABEL_CHARACTERS_MAX = 16;
/** The rule that recommends another decay class. */
const DECAY_RULE = 12;

function evidenceAddress(item: Evidence): string | null {
  if (item.kind === 'entry') return entryAddress(item.id);
  if (item.kind === 'task') return `#/tasks/${encodeURIComponent(item.id)}`;
  if (item.kind === 'author') return `#/peers/${encodeURIComponent(item.id)}`;
  return null;
}

/** The place where a person settles the insight, if it is another view. */
function place(insight: Insight): [string, string] | null {
  const of = (kind: string) => insight.evidence.filter((item) => item.kind === kind);
  const [entries, tasks, authors] = [of('entry'), of('task'), of('author')];
  if (insight.category === 'contradiction' || insight.category === 'merge') {
    return ['Compare', `#/compare/${entries.map((item) => encodeURIComponent(item.label)).join('+')}`];
  }
  if (authors[0]) return ['See the peer', evidenceAddress(authors[0])!];
  if (entries.length === 1) return ['Open the entry', entryAddress(entries[0]!.id)];
  if (tasks.length === 1) return ['See the task', evidenceAddress(tasks[0]!)!];
  if (tasks.length > 1) return ['See the outcomes', '#/usage'];
  return null;
}

/** The evidence names entries by code and tasks by id. One that is gone has no title. */
async function evidenceTitles(items: Evidence[], signal: AbortSignal): Promise<Map<string, string>> {
  const read = async ({ kind, id }: Evidence): Promise<[string, string]> => {
    const found =
      kind === 'entry'
        ? get('/v1/entries/{entry}', { path: { entry: id }, signal }).then((entry) => entry.title)
        : get('/v1/tasks/{task}', { path: { task: id }, signal }).then((task) => task.goal);
    return [id, await found.catch(() => '')];
  };
  return new Map(await Promise.all(items.filter(({ kind }) => kind === 'entry' || kind === 'task').map(read)));
}

function EvidenceList({ insight }: { insight: Insight }) {
  const [isLong, setLong] = useState(false);
  const shown = isLong ? insight.evidence : insight.evidence.slice(0, EVIDENCE_SHOWN);
  const titles = useLoad((signal) => evidenceTitles(shown, signal), `titles ${shown.map((item) => item.id).join(' ')}`, 'never');
  return (
    <ul class="plain small evidence">
      {shown.map((item) => {
        const address = evidenceAddress(item);
        return (
          <li>
            {address ? (
              <a href={address}>
                <Line text={item.kind === 'task' ? item.label.slice(0, LABEL_CHARACTERS_MAX) : item.label} />
              </a>
            ) : (
              <Line text={item.label} />
            )}{' '}
            <Line text={titles.data?.get(item.id)} empty="" />{' '}
            <span class="muted">
              <Line text={item.detail} empty="" />
            </span>
          </li>
        );
      })}
      {insight.evidence.length > shown.length && (
        <li>
          <button type="button" class="quiet small" onClick={() => setLong(true)}>
            {insight.evidence.length - shown.length} more
          </button>
        </li>
      )}
    </ul>
  );
}

interface ItemProps {
  insight: Insight;
  tone: string;
  workspace: string;
  reload: () => void;
}

function InsightItem({ insight, tone, workspace, reload }: ItemProps) {
  const [dialog, setDialog] = useState<'task' | 'decay' | null>(null);
  const options = { path: { insight: insight.id }, query: { workspace } };
  const restore = () => post('/v1/insights/{insight}/restore', options).then(reload);
  const dismiss = async () => {
    await act(() => post('/v1/insights/{insight}/dismiss', options), {
      done: 'Dismissed. It returns only with new evidence.',
      undo: restore,
      command: `klnode insights dismiss ${insight.id}`,
    });
    reload();
  };
  const target = place(insight);
  const isDismissed = insight.dismissed !== null && insight.dismissed !== undefined;
  return (
    <li class={`insight tone-${tone} ${isDismissed ? 'dismissed' : ''}`} data-rule={insight.rule}>
      <div class="insight-text">
        <p>
          <span class="badge">{insight.category}</span> <Line text={insight.text} />
        </p>
        <p class="small suggestion">
          <Line text={insight.action} />
        </p>
        <EvidenceList insight={insight} />
      </div>
      <div class="actions">
        {isDismissed ? (
          <button type="button" class="small" onClick={() => void act(restore, { done: 'It is shown again.' })}>
            Show again
          </button>
        ) : (
          <>
            {target && (
              <a class="button small" href={target[1]}>
                {target[0]}
              </a>
            )}
            {insight.rule === DECAY_RULE && (
              <button type="button" class="small" onClick={() => setDialog('decay')}>
                Change decay
              </button>
            )}
            {insight.task && (
              <button type="button" class="small" onClick={() => setDialog('task')}>
                Begin a task
              </button>
            )}
            <button type="button" class="quiet small" onClick={() => void dismiss()}>
              Dismiss
            </button>
          </>
        )}
      </div>
      {dialog === 'task' && insight.task && <TaskDialog task={insight.task} workspace={workspace} onClose={() => setDialog(null)} />}
      {dialog === 'decay' && <DecayClassDialog insight={insight} onClose={() => setDialog(null)} onDone={reload} />}
    </li>
  );
}

/** Insights of a workspace; an empty name means the current one. */
export function Insights({ workspace }: { workspace: string }) {
  const [isAll, setAll] = useState(false);
  const query = { dismissed: isAll, ...(workspace ? { workspace } : {}) };
  const loaded = useLoad((signal) => get('/v1/insights', { query, signal }), `insights ${workspace} ${isAll}`);
  const hidden = loaded.data?.dismissed ?? 0;
  return (
    <Panel
      title="Insights"
      {...(loaded.data ? { note: `workspace ${loaded.data.workspace}` } : {})}
      actions={
        (hidden > 0 || isAll) && (
          <button type="button" class="quiet small" aria-pressed={isAll} onClick={() => setAll(!isAll)}>
            {isAll ? 'Hide dismissed' : `Show ${hidden} dismissed`}
          </button>
        )
      }
    >
      <Ready loaded={loaded}>
        {({ insights, workspace: name }) =>
          insights.length === 0 ? (
            <Empty title="No insight">
              Thirteen rules look for contradictions, gaps, duplicates, falling confidence and tasks that cost more than they teach. None of them fires in this
              workspace.
            </Empty>
          ) : (
            <>
              {SEVERITIES.map(([severity, tone, title]) => {
                const group = insights.filter((one) => one.severity === severity);
                return (
                  group.length > 0 && (
                    <section aria-label={title}>
                      <h3 class="severity">
                        <span class={`badge kind-${tone}`}>{title}</span> <span class="muted">{group.length}</span>
                      </h3>
                      <ul class="insights">
                        {group.map((one) => (
                          <InsightItem key={one.id} insight={one} tone={tone} workspace={name} reload={loaded.reload} />
                        ))}
                      </ul>
                    </section>
                  )
                );
              })}
            </>
          )
        }
      </Ready>
    </Panel>
  );
}
