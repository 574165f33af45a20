// Playbooks: the list, and one playbook with its sections, text and history.

import { useState } from 'preact/hooks';
import { get, type Schemas } from '../api/request';
import { useLoad, type Loaded } from '../api/load';
import { Empty, Panel, Ready, View } from '../parts/frame';
import { Line, Passages } from '../parts/text';
import { ago, count, moment } from '../parts/time';
import { playbookAddress, route } from '../router';
import { Blame, PlaybookHistory } from './playbook_panels';
import { PlaybookEditor } from './playbook_editor';

type Playbook = Schemas['Playbook'];
type Summary = Schemas['PlaybookSummary'];

const TEXT_CHARACTERS_MAX = 200_000;

function edits(number: number): string {
  return number === 1 ? '1 edit' : `${count(number)} edits`;
}

function ListRow({ book }: { book: Summary }) {
  const { waiting = 0 } = book;
  return (
    <li>
      <a href={playbookAddress(book.code)}>
        <span class="list-main">
          <strong>
            <Line text={book.title} empty="(no title)" />
          </strong>
          <span class="muted small">
            <span class="code">{book.code}</span> · <Line text={book.workspace} /> · {edits(book.edits)} · edited {ago(book.updated)}
          </span>
        </span>
        {waiting > 0 && <span class="badge status-stale">{edits(waiting)} waiting</span>}
      </a>
    </li>
  );
}

function PlaybookList() {
  const loaded = useLoad((signal) => get('/v1/playbooks', { signal }), 'playbooks');
  return (
    <View title="Playbooks" lead="Procedures that people and agents edit together. Every edit keeps its author.">
      <Ready loaded={loaded}>
        {({ playbooks }) =>
          playbooks.length === 0 ? (
            <Empty title="No playbook yet" command='klnode playbook new "How we release" --file RELEASING.md'>
              A playbook says how your team does something in several steps. Its Markdown headings become sections, and an agent gets the section that answers its question.
            </Empty>
          ) : (
            <ul class="list">
              {playbooks.map((book) => (
                <ListRow book={book} key={book.id} />
              ))}
            </ul>
          )
        }
      </Ready>
    </View>
  );
}

function Contents({ book, section }: { book: Playbook; section: string }) {
  const named = book.sections.filter(({ slug }) => slug !== '');
  return (
    <Panel title="Contents">
      {named.length === 0 ? (
        <p class="muted">The text has no headings. A Markdown heading, such as “## Rollback”, begins a section.</p>
      ) : (
        <nav aria-label="Sections">
          <ul class="contents">
            <li>
              <a href={playbookAddress(book.code)} aria-current={section === '' ? 'true' : undefined}>
                Whole text
              </a>
            </li>
            {named.map(({ slug, title, level }) => (
              <li class={`level-${level}`}>
                <a href={playbookAddress(book.code, slug)} aria-current={section === slug ? 'true' : undefined}>
                  <Line text={title} empty={slug} />
                </a>
              </li>
            ))}
          </ul>
        </nav>
      )}
    </Panel>
  );
}

function Notes({ book }: { book: Playbook }) {
  const { waiting = 0, left_out: leftOut = 0 } = book;
  return (
    <>
      {book.redacted && (
        <p class="note warn">
          Secrets or instructions in this text are shown as [redacted], so it cannot be edited. This command starts the playbook again without them:{' '}
          <code>klnode playbook purge {book.code}</code>
        </p>
      )}
      {waiting > 0 && <p class="note">{edits(waiting)} not in the text yet: earlier edits have not arrived.</p>}
      {leftOut > 0 && <p class="note">{edits(leftOut)} without effect: the author is no member, or the edit breaks a rule.</p>}
    </>
  );
}

function PlaybookText({ book, section, onEdit }: { book: Playbook; section: string; onEdit: () => void }) {
  const [isBlame, setBlame] = useState(false);
  return (
    <Panel
      title={section ? 'Section' : 'Text'}
      note={`edited ${ago(book.updated)}`}
      actions={
        <>
          <button type="button" class="small" aria-pressed={isBlame} onClick={() => setBlame(!isBlame)}>
            Authors
          </button>
          <button type="button" class="small" disabled={book.redacted} onClick={onEdit}>
            Edit
          </button>
        </>
      }
    >
      {isBlame ? <Blame book={book} section={section} /> : <Passages text={book.text} empty="This playbook has no text." charactersMax={TEXT_CHARACTERS_MAX} />}
    </Panel>
  );
}

function PlaybookPage({ book, section, reload }: { book: Playbook; section: string; reload: () => void }) {
  // The editor keeps the playbook as it was read, so that its version fits the text.
  const [edited, setEdited] = useState<Playbook | null>(null);
  return (
    <article>
      <div class="entry-badges">
        <span class="badge">
          <Line text={book.workspace} />
        </span>
        <span class="badge">{edits(book.edits)}</span>
        <span class="muted small">edited {moment(book.updated)}</span>
      </div>
      <Notes book={book} />
      <div class="columns">
        <div>
          {edited ? (
            <PlaybookEditor
              read={edited}
              present={book.version}
              section={section}
              onDone={() => {
                setEdited(null);
                reload();
              }}
            />
          ) : (
            <PlaybookText book={book} section={section} onEdit={() => setEdited(book)} />
          )}
        </div>
        <div>
          <Contents book={book} section={section} />
          <PlaybookHistory book={book} onRestore={reload} />
        </div>
      </div>
    </article>
  );
}

function PlaybookDetail({ code, section }: { code: string; section: string }) {
  const query = section ? { section } : {};
  const book: Loaded<Playbook> = useLoad((signal) => get('/v1/playbooks/{entry}', { path: { entry: code }, query, signal }), `playbook ${code} ${section}`);
  const title = book.data?.title || code;
  return (
    <View
      title={title.slice(0, 300)}
      lead={book.data?.code ?? code}
      actions={
        <a class="button" href="#/playbooks">
          All playbooks
        </a>
      }
    >
      <Ready loaded={book}>{(data) => <PlaybookPage book={data} section={section} reload={book.reload} />}</Ready>
    </View>
  );
}

export function PlaybooksView({ name }: { name: string }) {
  const section = route.value.query.get('section') ?? '';
  return name ? <PlaybookDetail key={`${name} ${section}`} code={name} section={section} /> : <PlaybookList />;
}
