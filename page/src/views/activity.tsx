// Tasks and usage: answers per caller, tokens and time per day, and entries that helped or misled.

import { useState } from 'preact/hooks';
import { get, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Curve } from '../parts/curve';
import { Empty, Panel, Ready, View } from '../parts/frame';
import { percent } from '../parts/judgement';
import { Line } from '../parts/text';
import { ago, count, moment } from '../parts/time';
import { entryAddress, replaceQuery, route } from '../router';
import { EntryLine } from './briefing';

type Usage = Schemas['Usage'];
type Group = Schemas['UsageGroup'];

const PERIODS: [string, string][] = [
  ['7d', '7 days'],
  ['4w', '4 weeks'],
  ['90d', '90 days'],
  ['365d', 'A year'],
];

function Numbers({ usage }: { usage: Usage }) {
  const { total } = usage;
  const tiles: [string, string, string][] = [
    ['Answers', count(total.answers), `${count(total.abstentions)} without a hit`],
    ['Helped', count(total.used), `of ${count(total.hits)} hits`],
    ['Misled', count(total.harmful), `${count(total.dismissed ?? 0)} dismissed`],
    ['Tokens', count(total.tokens), total.answers ? `${Math.round(total.tokens / total.answers)} per answer` : '–'],
    ['Time', `${(total.millis / 1000).toFixed(1)} s`, total.answers ? `${Math.round(total.millis / total.answers)} ms per answer` : '–'],
  ];
  return (
    <dl class="tiles">
      {tiles.map(([name, value, note]) => (
        <div class="tile">
          <dt>{name}</dt>
          <dd>
            {value}
            <small class="muted">{note}</small>
          </dd>
        </div>
      ))}
    </dl>
  );
}

function day(value: string): number {
  return Date.parse(`${value}T00:00:00Z`) / 1000;
}

function DayCurve({ usage, title, pick, color, format }: { usage: Usage; title: string; pick: (day: Schemas['UsageDay']) => number; color: string; format: (value: number) => string }) {
  const values = usage.days.map(pick);
  const newest = values[values.length - 1] ?? 0;
  return (
    <Panel title={title} note={`${format(newest)} today`}>
      <Curve
        x={usage.days.map((one) => day(one.day))}
        series={[{ label: title, values, color, fill: '--accent-soft' }]}
        height={130}
        isTime
        formatX={(at) => new Date(at * 1000).toLocaleDateString('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' })}
        formatY={format}
        label={`${title} per day, ${format(newest)} today`}
      />
    </Panel>
  );
}

function Groups({ title, groups, empty }: { title: string; groups: Group[]; empty: string }) {
  return (
    <Panel title={title}>
      {groups.length === 0 ? (
        <p class="muted">{empty}</p>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label={title}>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col" class="number">Answers</th>
                <th scope="col" class="number">Helped</th>
                <th scope="col" class="number">Misled</th>
                <th scope="col" class="number">Tokens</th>
                <th scope="col" class="number">Time</th>
              </tr>
            </thead>
            <tbody>
              {groups.map((group) => (
                <tr>
                  <td>
                    <Line text={group.name} />
                  </td>
                  <td class="number">{count(group.answers)}</td>
                  <td class={group.used > 0 ? 'number good' : 'number muted'}>{count(group.used)}</td>
                  <td class={group.harmful > 0 ? 'number bad' : 'number muted'}>{count(group.harmful)}</td>
                  <td class="number">{count(group.tokens)}</td>
                  <td class="number">{count(group.millis)} ms</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  );
}

function Extremes() {
  const loaded = useLoad((signal) => get('/v1/entries', { query: { limit: 300, recent: true }, signal }), 'extremes');
  return (
    <Ready loaded={loaded}>
      {({ entries }) => {
        const own = entries.filter((entry) => entry.observations > 0);
        const helpful = [...own].filter((entry) => entry.alpha > entry.beta).sort((one, two) => two.alpha - one.alpha).slice(0, 6);
        const harmful = [...own].filter((entry) => entry.beta > entry.alpha).sort((one, two) => two.beta - one.beta).slice(0, 6);
        return (
          <div class="pair">
            <Panel title="Entries that helped">
              {helpful.length === 0 && <p class="muted">No success observed yet.</p>}
              <ul class="plain">
                {helpful.map((entry) => (
                  <li>
                    <EntryLine entry={entry} />
                  </li>
                ))}
              </ul>
            </Panel>
            <Panel title="Entries that misled">
              {harmful.length === 0 && <p class="muted">No entry has misled more often than it helped.</p>}
              <ul class="plain">
                {harmful.map((entry) => (
                  <li>
                    <EntryLine entry={entry} />
                  </li>
                ))}
              </ul>
            </Panel>
          </div>
        );
      }}
    </Ready>
  );
}

type Totals = Schemas['OutcomeTotals'];

function OutcomeRow({ name, totals, isTotal = false }: { name: string; totals: Totals; isTotal?: boolean }) {
  return (
    <tr class={isTotal ? 'total' : ''}>
      <th scope="row">
        <Line text={name} />
      </th>
      <td class="number">{count(totals.tasks)}</td>
      <td class="number">{count(totals.failed)}</td>
      <td class="number">{percent(totals.quality)}</td>
      <td class="number">{totals.rounds > 0 ? (totals.rounds / totals.tasks).toFixed(1) : '–'}</td>
      <td class="number">{totals.cost > 0 ? totals.cost.toFixed(2) : '–'}</td>
      <td class="number">{count(totals.made)}</td>
    </tr>
  );
}

/** The finished tasks of the current workspace, summed by the strategy that the agents named. */
function Outcomes({ period }: { period: string }) {
  const loaded = useLoad((signal) => get('/v1/outcomes', { query: { period }, signal }), `outcomes ${period}`);
  return (
    <Ready loaded={loaded}>
      {(report) => (
        <Panel title="Outcomes of tasks" note={`workspace ${report.workspace}`} id="outcomes">
          {report.summary.tasks === 0 ? (
            <p class="muted">
              No task was finished in this period. Agents finish a task with its quality, strategy, rounds and cost: <code>klnode task finish</code>
            </p>
          ) : (
            <div class="scroll" tabIndex={0} role="region" aria-label="Outcomes by strategy">
              <table class="table">
                <thead>
                  <tr>
                    <th scope="col">Strategy</th>
                    <th scope="col" class="number">Tasks</th>
                    <th scope="col" class="number">Failed</th>
                    <th scope="col" class="number">Quality</th>
                    <th scope="col" class="number">Rounds each</th>
                    <th scope="col" class="number">Cost</th>
                    <th scope="col" class="number">Entries made</th>
                  </tr>
                </thead>
                <tbody>
                  {report.strategies.map((one) => (
                    <OutcomeRow name={one.strategy} totals={one} />
                  ))}
                  <OutcomeRow name="All tasks" totals={report.summary} isTotal />
                </tbody>
              </table>
            </div>
          )}
        </Panel>
      )}
    </Ready>
  );
}

export function UsageView() {
  const since = route.value.query.get('since') ?? '7d';
  const usage = useLoad((signal) => get('/v1/usage', { query: { since }, signal }), `usage ${since}`);
  return (
    <View
      title="Usage"
      lead="What answers cost, and whether they helped."
      actions={
        <select aria-label="Period" value={since} onChange={(event) => replaceQuery({ since: event.currentTarget.value })}>
          {PERIODS.map(([value, name]) => (
            <option value={value}>{name}</option>
          ))}
        </select>
      }
    >
      <Ready loaded={usage}>
        {(data) => (
          <>
            <Numbers usage={data} />
            {data.total.answers === 0 && (
              <Empty title="No answers in this period" command="klnode connect">
                Connect an agent; each answer it receives is counted here with its tokens and its time.
              </Empty>
            )}
            <div class="pair">
              <DayCurve usage={data} title="Answers" pick={(one) => one.answers} color="--accent" format={(value) => count(Math.round(value))} />
              <DayCurve usage={data} title="Tokens" pick={(one) => one.tokens} color="--accent" format={(value) => count(Math.round(value))} />
            </div>
            <div class="pair">
              <DayCurve usage={data} title="Milliseconds" pick={(one) => one.millis} color="--accent" format={(value) => count(Math.round(value))} />
              <DayCurve usage={data} title="Misled" pick={(one) => one.harmful} color="--bad" format={(value) => count(Math.round(value))} />
            </div>
            <div class="pair">
              <Groups title="By caller" groups={data.callers} empty="No caller was served." />
              <Groups title="By author" groups={[...data.authors, ...data.peers]} empty="No author was served." />
            </div>
            <Outcomes period={since} />
            <Extremes />
          </>
        )}
      </Ready>
    </View>
  );
}

type Task = Schemas['Task'];

function TaskBadge({ task }: { task: Task }) {
  const text = task.outcome ?? task.state;
  const tone = task.outcome === 'success' ? 'status-verified' : task.outcome === 'failure' ? 'conflict' : '';
  return <span class={`badge ${tone}`}>{text}</span>;
}

function TaskDetail({ name }: { name: string }) {
  const loaded = useLoad((signal) => get('/v1/tasks/{task}', { path: { task: name }, signal }), `task ${name}`);
  return (
    <Ready loaded={loaded}>
      {(task) => (
        <Panel title="Task" note={`begun ${moment(task.begun)}`}>
          <p class="strong">
            <Line text={task.goal} /> <TaskBadge task={task} />
          </p>
          <p class="muted">
            <Line text={task.agent} /> · {task.served} served{task.quality ? ` · quality ${task.quality}` : ''}
            {task.rounds ? ` · ${task.rounds} rounds` : ''}
          </p>
          <h3>Served entries</h3>
          {(task.entries ?? []).length === 0 && <p class="muted">None.</p>}
          <ul class="plain">
            {(task.entries ?? []).map((entry) => (
              <li class="row">
                <a href={entryAddress(entry.code)}>
                  <Line text={entry.title} empty={entry.code} />
                </a>
                {entry.said && <span class="badge">{entry.said}</span>}
              </li>
            ))}
          </ul>
          <h3>Findings</h3>
          {(task.findings ?? []).length === 0 && <p class="muted">None.</p>}
          <ul class="plain">
            {(task.findings ?? []).map((finding) => (
              <li>
                <span class="badge">{finding.severity}</span> <Line text={finding.text} /> <span class="muted">{finding.became.replace(/_/g, ' ')}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </Ready>
  );
}

export function TasksView({ task }: { task: string }) {
  const [onlyOpen, setOnlyOpen] = useState(false);
  const loaded = useLoad((signal) => get('/v1/tasks', { query: { limit: 200, ...(onlyOpen ? { open: true } : {}) }, signal }), `tasks ${onlyOpen}`);
  return (
    <View
      title="Tasks"
      lead="Work of agents, with the entries that they were served and what became of it."
      actions={
        <label class="choice">
          <input type="checkbox" checked={onlyOpen} onChange={(event) => setOnlyOpen(event.currentTarget.checked)} /> Only open
        </label>
      }
    >
      <div class={task ? 'split' : ''}>
        <Ready loaded={loaded}>
          {({ tasks }) =>
            tasks.length === 0 ? (
              <Empty title="No task yet" command='klnode task begin --agent me --goal "Fix the build"'>
                Agents open a task when they start work. The result of a task teaches the node which entries help.
              </Empty>
            ) : (
              <ul class="list">
                {tasks.map((one) => (
                  <li class={one.task === task ? 'active' : ''}>
                    <a href={`#/tasks/${one.task}`}>
                      <span class="list-main">
                        <strong>
                          <Line text={one.goal} />
                        </strong>
                        <span class="muted small">
                          <Line text={one.agent} /> · {ago(one.begun)} · {one.served} served
                        </span>
                      </span>
                      <TaskBadge task={one} />
                    </a>
                  </li>
                ))}
              </ul>
            )
          }
        </Ready>
        {task && <TaskDetail name={task} />}
      </div>
    </View>
  );
}
