// The acts that an insight suggests, each with a preview: begin a task, or change the decay class of
// entries.

import { useState } from 'preact/hooks';
import { get, patch, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { classText, DECAY_CLASSES, useDecay } from '../parts/decay';
import { Dialog } from '../parts/dialog';
import { Ready } from '../parts/frame';
import { act } from '../parts/notice';
import { Line } from '../parts/text';
import { goTo } from '../router';
import { ChoiceList } from './choice_list';

type Insight = Schemas['ListedInsight'];

export function TaskDialog({ task, workspace, onClose }: { task: Schemas['ProposedTask']; workspace: string; onClose: () => void }) {
  const begin = async () => {
    const begun = await act(() => post('/v1/tasks', { body: { ...task, workspace } }), { done: 'The task is open. An agent can work on it now.' });
    onClose();
    if (begun) goTo(`#/tasks/${begun.task}`);
  };
  return (
    <Dialog title="Begin a task" onClose={onClose}>
      <p>The node opens this task in the workspace {workspace}. It stays open until an agent finishes it.</p>
      <dl class="pairs preview">
        <div>
          <dt>Agent</dt>
          <dd>
            <Line text={task.agent} />
          </dd>
        </div>
        <div>
          <dt>Goal</dt>
          <dd>
            <Line text={task.goal} />
          </dd>
        </div>
      </dl>
      <div class="actions">
        <button type="button" class="primary" onClick={() => void begin()}>
          Begin
        </button>
      </div>
    </Dialog>
  );
}

/** The recommended class, which the insight names in its sentence only. */
function recommended(insight: Insight): string {
  const named = /\bto (ephemeral|stable|permanent)\b/.exec(insight.action);
  return named?.[1] ?? 'stable';
}

export function DecayClassDialog({ insight, onClose, onDone }: { insight: Insight; onClose: () => void; onDone: () => void }) {
  const ids = insight.evidence.filter((item) => item.kind === 'entry').map((item) => item.id);
  const loaded = useLoad((signal) => Promise.all(ids.map((entry) => get('/v1/entries/{entry}', { path: { entry }, signal }))), `decay ${insight.id}`, 'never');
  const decay = useDecay();
  const [kind, setKind] = useState(recommended(insight));
  const [chosen, setChosen] = useState<Set<string> | null>(null);
  return (
    <Dialog title="Change the decay class" onClose={onClose}>
      <p>The decay class says how fast confidence fades without new observations.</p>
      <Ready loaded={loaded}>
        {(entries) => {
          const classOf = (code: string) => entries.find((entry) => entry.code === code)?.registers['decay_class'] || decay.defaultClass;
          const picked = [...(chosen ?? new Set(entries.map((entry) => entry.code)))].filter((code) => classOf(code) !== kind);
          const set = (of: (code: string) => string) =>
            Promise.all(picked.map((entry) => patch('/v1/entries/{entry}', { path: { entry }, body: { registers: { decay_class: of(entry) } } })));
          const apply = async () => {
            await act(() => set(() => kind), { done: `${picked.length} changed to ${kind}.`, undo: () => set(classOf).then(onDone) });
            onDone();
            onClose();
          };
          return (
            <>
              <label class="field">
                New class
                <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
                  {DECAY_CLASSES.map((name) => (
                    <option value={name}>{classText(decay, name)}</option>
                  ))}
                </select>
              </label>
              <ChoiceList
                choices={entries.map((entry) => ({ code: entry.code, title: entry.title, note: classOf(entry.code) === kind ? `already ${kind}` : `now ${classOf(entry.code)}` }))}
                chosen={chosen}
                setChosen={setChosen}
              />
              <div class="actions">
                <button type="button" class="primary" disabled={picked.length === 0} onClick={() => void apply()}>
                  Change {picked.length}
                </button>
              </div>
            </>
          );
        }}
      </Ready>
    </Dialog>
  );
}
