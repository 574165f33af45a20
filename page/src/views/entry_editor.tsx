// Edits the text of an entry in place. Only changed fields are sent.

import { useState } from 'preact/hooks';
import { patch, type Schemas } from '../api/request';
import { Panel } from '../parts/frame';
import { act } from '../parts/notice';

type Entry = Schemas['Entry'];

function words(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((word) => word !== ''))];
}

export function EntryEditor({ entry, onDone }: { entry: Entry; onDone: () => void }) {
  const before = { title: entry.title, summary: entry.registers['summary'] ?? '', content: entry.content };
  const [draft, setDraft] = useState(before);
  const [tags, setTags] = useState(entry.tags.join(' '));
  const [decay, setDecay] = useState(entry.registers['decay_class'] ?? '');
  const save = async () => {
    const registers: Record<string, string> = {};
    const old: Record<string, string> = {};
    for (const field of ['title', 'summary', 'content'] as const) {
      if (draft[field] !== before[field]) {
        registers[field] = draft[field];
        old[field] = before[field];
      }
    }
    const decayBefore = entry.registers['decay_class'];
    if (decay !== '' && decay !== decayBefore) {
      registers['decay_class'] = decay;
      old['decay_class'] = decayBefore ?? 'ephemeral';
    }
    const add = words(tags).filter((tag) => !entry.tags.includes(tag));
    const remove = entry.tags.filter((tag) => !words(tags).includes(tag));
    if (Object.keys(registers).length + add.length + remove.length === 0) return onDone();
    const path = { entry: entry.code };
    const body = { registers, add_tags: add, remove_tags: remove };
    const undo = () => patch('/v1/entries/{entry}', { path, body: { registers: old, add_tags: remove, remove_tags: add } });
    const saved = await act(() => patch('/v1/entries/{entry}', { path, body }), { done: 'Saved.', undo, command: `klnode edit ${entry.code}` });
    if (saved) onDone();
    return undefined;
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void save();
    if (event.key === 'Escape') onDone();
  };
  return (
    <Panel title="Edit" note="Ctrl+Enter saves, Escape cancels">
      <form
        class="form"
        onKeyDown={onKeyDown}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label>
          Title
          <input name="title" value={draft.title} onInput={(event) => setDraft({ ...draft, title: event.currentTarget.value })} />
        </label>
        <label>
          Summary
          <input name="summary" value={draft.summary} onInput={(event) => setDraft({ ...draft, summary: event.currentTarget.value })} />
        </label>
        <label>
          Content
          <textarea name="content" rows={10} value={draft.content} onInput={(event) => setDraft({ ...draft, content: event.currentTarget.value })} />
        </label>
        <label>
          Tags, separated by spaces
          <input name="tags" value={tags} onInput={(event) => setTags(event.currentTarget.value)} />
        </label>
        <label>
          Decay class
          <select value={decay} onChange={(event) => setDecay(event.currentTarget.value)}>
            <option value="">default of the node</option>
            <option value="ephemeral">ephemeral: half is left after 34 days</option>
            <option value="stable">stable: half is left after 138 days</option>
            <option value="permanent">permanent: does not fade</option>
          </select>
        </label>
        <div class="actions">
          <button type="submit" class="primary">
            Save
          </button>
          <button type="button" onClick={onDone}>
            Cancel
          </button>
        </div>
      </form>
    </Panel>
  );
}
