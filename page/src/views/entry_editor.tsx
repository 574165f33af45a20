// Edits the text of an entry in place. The changed fields are those that differ from the entry as it
// was when the editor opened, so that the edit of another author is never written back.

import { useEffect, useState } from 'preact/hooks';
import { get, patch, type Schemas } from '../api/request';
import { classText, DECAY_CLASSES, useDecay } from '../parts/decay';
import { Panel } from '../parts/frame';
import { act } from '../parts/notice';
import { Passages } from '../parts/text';

type Entry = Schemas['Entry'];

const FIELDS = ['title', 'summary', 'content', 'decay_class'] as const;
type Field = (typeof FIELDS)[number];
type Texts = Record<Field, string>;

const FIELD_NAMES: Texts = { title: 'title', summary: 'summary', content: 'content', decay_class: 'decay class' };

function texts({ title, content, registers }: Entry): Texts {
  return { title, summary: registers['summary'] ?? '', content, decay_class: registers['decay_class'] ?? '' };
}

function words(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((word) => word !== ''))];
}

interface EditorProps {
  /** The entry as it was when the editor opened. */
  read: Entry;
  /** The entry as the node has it now. */
  present: Entry;
  onDone: () => void;
}

/** The fields that this draft changes and that another edit has changed since the editor opened. */
function overwritten(draft: Texts, read: Texts, now: Texts): Field[] {
  return FIELDS.filter((field) => draft[field] !== read[field] && now[field] !== read[field] && now[field] !== draft[field]);
}

/** The present texts of the fields that a save would overwrite. */
function OtherEdits({ fields, now }: { fields: Field[]; now: Texts }) {
  if (fields.length === 0) return null;
  return (
    <div class="note warn" role="alert">
      <p>Changed since you opened it: {fields.map((field) => FIELD_NAMES[field]).join(', ')}. Saving replaces this text:</p>
      {fields.map((field) => (
        <div class="field">
          <strong>{FIELD_NAMES[field]}</strong>
          <Passages text={now[field]} empty="(empty)" />
        </div>
      ))}
    </div>
  );
}

export function EntryEditor({ read, present, onDone }: EditorProps) {
  const before = texts(read);
  const [draft, setDraft] = useState(before);
  const [tags, setTags] = useState(read.tags.join(' '));
  const [fresh, setFresh] = useState<Entry | null>(null);
  const [isSaving, setSaving] = useState(false);
  const decay = useDecay();
  useEffect(() => setFresh(null), [present]);
  const now = texts(fresh ?? present);
  const others = overwritten(draft, before, now);
  const changed = FIELDS.filter((field) => draft[field] !== before[field]);
  const added = words(tags).filter((tag) => !read.tags.includes(tag));
  const removed = read.tags.filter((tag) => !words(tags).includes(tag));
  const isChanged = changed.length + added.length + removed.length > 0;
  const store = async (latest: Entry) => {
    const then = texts(latest);
    const registers: Record<string, string> = {};
    const old: Record<string, string> = {};
    for (const field of changed) {
      // An entry without a class follows the default of the node, which no value expresses.
      if (field === 'decay_class' && draft[field] === '') continue;
      registers[field] = draft[field];
      old[field] = field === 'decay_class' ? then[field] || decay.defaultClass : then[field];
    }
    const add = added.filter((tag) => !latest.tags.includes(tag));
    const remove = removed.filter((tag) => latest.tags.includes(tag));
    if (Object.keys(registers).length + add.length + remove.length === 0) return onDone();
    const path = { entry: read.code };
    const body = { registers, add_tags: add, remove_tags: remove };
    const undo = () => patch('/v1/entries/{entry}', { path, body: { registers: old, add_tags: remove, remove_tags: add } });
    const command = `klnode edit ${read.code}${read.memory === 'procedural' ? ' --as-person' : ''}`;
    const saved = await act(() => patch('/v1/entries/{entry}', { path, body }), { done: 'Saved.', undo, command });
    if (saved) onDone();
    return undefined;
  };
  const save = async () => {
    if (isSaving) return;
    if (!isChanged) return onDone();
    setSaving(true);
    // The list of changes may lag behind, so the node is asked before it overwrites anything.
    const latest = await get('/v1/entries/{entry}', { path: { entry: read.id } }).catch(() => present);
    const isSeen = overwritten(draft, before, texts(latest)).every((field) => others.includes(field) && texts(latest)[field] === now[field]);
    if (isSeen) await store(latest);
    else setFresh(latest);
    setSaving(false);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void save();
    // Escape must not throw a draft away.
    if (event.key === 'Escape' && !isChanged) onDone();
  };
  return (
    <Panel title="Edit" note="Ctrl+Enter saves">
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
          <select name="decay_class" value={draft.decay_class} onChange={(event) => setDraft({ ...draft, decay_class: event.currentTarget.value })}>
            <option value="">default of the node</option>
            {DECAY_CLASSES.map((name) => (
              <option value={name}>{classText(decay, name)}</option>
            ))}
          </select>
        </label>
        <OtherEdits fields={others} now={now} />
        <div class="actions">
          <button type="submit" class="primary" disabled={isSaving}>
            {others.length > 0 ? 'Replace the other change' : 'Save'}
          </button>
          <button type="button" onClick={onDone}>
            Cancel
          </button>
        </div>
      </form>
    </Panel>
  );
}
