// Edits the text of a playbook or of one section. The edit names the version that was read, so the
// node merges it with edits that others made meanwhile.

import { useState } from 'preact/hooks';
import { ApiError, patch, type Schemas } from '../api/request';
import { Panel } from '../parts/frame';
import { announce } from '../parts/notice';
import { Line } from '../parts/text';

interface EditorProps {
  /** The playbook, or the section, as it was when the editor opened. */
  read: Schemas['Playbook'];
  /** The version that the node has now. */
  present: string;
  section: string;
  onDone: () => void;
}

/** An error of the node, which stays visible while the draft is open. */
export function NodeError({ error, command }: { error: ApiError; command: string }) {
  return (
    <p class="note error" role="alert">
      <Line text={error.message} /> {error.hint && <Line text={error.hint} />} {error.needsTerminal && <code>{command}</code>}
    </p>
  );
}

export function PlaybookEditor({ read, present, section, onDone }: EditorProps) {
  const [draft, setDraft] = useState(read.text);
  const [error, setError] = useState<ApiError | null>(null);
  const [isSaving, setSaving] = useState(false);
  const save = async () => {
    if (isSaving) return;
    if (draft === read.text) return onDone();
    setSaving(true);
    setError(null);
    try {
      const body = { version: read.version, text: draft, ...(section ? { section } : {}) };
      await patch('/v1/playbooks/{entry}', { path: { entry: read.code }, body });
    } catch (thrown) {
      setError(thrown instanceof ApiError ? thrown : new ApiError('failed', String(thrown)));
      setSaving(false);
      return;
    }
    announce('Saved.');
    onDone();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void save();
    // Escape must not throw a long draft away.
    if (event.key === 'Escape' && draft === read.text) onDone();
  };
  const reference = section ? `${read.code}#${section}` : read.code;
  return (
    <Panel title={section ? 'Edit the section' : 'Edit'} note="Ctrl+Enter saves">
      <form
        class="form"
        onKeyDown={onKeyDown}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label>
          Text in Markdown
          <textarea name="text" class="source" rows={22} spellcheck={false} value={draft} onInput={(event) => setDraft(event.currentTarget.value)} />
        </label>
        {present !== read.version && <p class="note">The text has changed since you opened it. The node merges your edit with the other changes.</p>}
        {error && <NodeError error={error} command={`klnode playbook edit ${reference}`} />}
        <div class="actions">
          <button type="submit" class="primary" disabled={isSaving}>
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
