// One entry: text, judgement, decay, conflicts, evidence, anchors, links, sharing and history.

import { useEffect, useState } from 'preact/hooks';
import { get, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { fade } from '../parts/beta';
import { Curve } from '../parts/curve';
import { classText, useDecay } from '../parts/decay';
import { Panel, Ready, View } from '../parts/frame';
import { Confidence, Meter, Status, Trust, percent } from '../parts/judgement';
import { ExternalLink, Line, Passages, plainText } from '../parts/text';
import { ago, moment } from '../parts/time';
import { entryAddress, goTo, playbookAddress, route } from '../router';
import { EntryActs, ReceiptsDialog, type ForgottenEntry } from './entry_acts';
import { EntryEditor } from './entry_editor';
import { Conflicts, History, Proposals, Served, Sharing } from './entry_panels';

type Entry = Schemas['Entry'];

const DAYS_SHOWN = 180;

function Facts({ entry }: { entry: Entry }) {
  return (
    <div class="facts">
      <div class="fact">
        <h3>Confidence</h3>
        <Confidence alpha={entry.alpha} beta={entry.beta} mean={entry.mean} isWide />
        <p class="muted">
          {entry.observations.toFixed(1)} observations · <Line text={entry.status_reason} />
        </p>
      </div>
      <div class="fact">
        <h3>Author</h3>
        <p class="strong">
          <Line text={entry.author_name ?? entry.author.slice(0, 8)} />{' '}
          {entry.foreign && <Trust value={entry.trust} name={entry.author_name ?? ''} isForeign />}
        </p>
        <p class="muted">
          <Line text={entry.author_reason} />
        </p>
      </div>
      <div class="fact">
        <h3>In automatic answers</h3>
        <p class="strong">{entry.gate === 'open' ? 'Yes' : entry.gate === 'last_places' ? 'Last places only' : 'No'}</p>
        <p class="muted">
          {entry.idle_tasks ? `Served in ${entry.idle_tasks} of ${entry.archive_after} tasks without help` : 'No idle tasks'}
        </p>
      </div>
      <div class="fact">
        <h3>Confirmed</h3>
        <p class="strong">
          {entry.confirmed_days_ago === null || entry.confirmed_days_ago === undefined
            ? 'Not yet'
            : entry.confirmed_days_ago === 0
              ? 'Today'
              : `${entry.confirmed_days_ago} days ago`}
        </p>
        <p class="muted">{entry.corroborated ? 'Observed to work' : 'Not observed to work yet'}</p>
      </div>
    </div>
  );
}

function Decay({ entry }: { entry: Entry }) {
  const decay = useDecay();
  const named = entry.registers['decay_class'] || decay.defaultClass;
  const kind = entry.status === 'archived' ? 'archived' : named in decay.perDay ? named : decay.defaultClass;
  const points = fade(entry.alpha, entry.beta, entry.prior ?? decay.prior, decay.perDay[kind] ?? 1, DAYS_SHOWN);
  const last = points[points.length - 1]!;
  return (
    <Panel title="Decay" note={classText(decay, kind)}>
      <Curve
        x={points.map((point) => point.day)}
        series={[
          { label: 'High', values: points.map((point) => point.high), color: 'transparent', width: 0 },
          { label: 'Low', values: points.map((point) => point.low), color: 'transparent', width: 0 },
          { label: 'Confidence', values: points.map((point) => point.mean), color: '--accent' },
        ]}
        band={[1, 2]}
        height={150}
        range={[0, 1]}
        formatX={(day) => `${day} d`}
        formatY={(share) => `${Math.round(share * 100)} %`}
        label={`Without new observations the confidence moves from ${percent(entry.mean)} today to ${percent(last.mean)} in ${DAYS_SHOWN} days.`}
      />
      <p class="muted small">
        Refreshed by: a success in a task, an independent confirmation{(entry.anchored?.length ?? 0) > 0 ? ', a passing check of its anchors' : ''}. After {decay.staleAfter} without
        being served it becomes stale.
      </p>
    </Panel>
  );
}

function Evidence({ entry }: { entry: Entry }) {
  return (
    <Panel title="Evidence" note={entry.citations.length === 1 ? '1 citation' : `${entry.citations.length} citations`}>
      {entry.citations.length === 0 && <p class="muted">No citation. Evidence makes an entry easier to verify.</p>}
      <ul class="plain">
        {entry.citations.map((citation) => (
          <li class="citation">
            <span class="badge">
              <Line text={citation.evidence_type} />
            </span>
            {citation.evidence_type === 'url' ? <ExternalLink target={citation.evidence_ref} /> : <Line text={citation.evidence_ref} />}
            <span class="muted">{ago(citation.cited_at)}</span>
          </li>
        ))}
      </ul>
      {(entry.contributions?.length ?? 0) > 0 && (
        <>
          <h3>Who shaped the confidence</h3>
          <table class="table">
            <thead>
              <tr>
                <th scope="col">Author</th>
                <th scope="col" class="number">Helped</th>
                <th scope="col" class="number">Misled</th>
                <th scope="col">Weight</th>
              </tr>
            </thead>
            <tbody>
              {entry.contributions!.map((one) => (
                <tr title={plainText(one.reason)}>
                  <td>
                    <Line text={one.author_name} />
                  </td>
                  <td class="number">{one.alpha.toFixed(1)}</td>
                  <td class="number">{one.beta.toFixed(1)}</td>
                  <td>
                    <Meter share={one.weight} label={`Weight of ${one.author_name}`} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
    </Panel>
  );
}

function Anchors({ entry }: { entry: Entry }) {
  const sets = Object.entries(entry.sets).filter(([, values]) => values.length > 0);
  const anchored = entry.anchored ?? [];
  const checked = entry.checked;
  if (sets.length === 0 && anchored.length === 0) return null;
  return (
    <Panel title="Anchors" note={checked ? checked.outcome : 'checked in the checkout of the caller'}>
      {anchored.map((one) => (
        <div class="anchor">
          <code>
            <Line text={one.predicate} />
          </code>
          <span class="muted small">
            <Line text={one.repositories.join(', ')} empty="belongs to no repository, never checked" />
          </span>
        </div>
      ))}
      {(checked?.findings ?? []).map((finding) => (
        <p class="note warn">
          <Line text={finding.atom} />: <Line text={finding.reason} />
        </p>
      ))}
      {sets.map(([name, values]) => (
        <div>
          <h3>
            <Line text={name.replace(/_/g, ' ')} />
          </h3>
          <ul class="plain">
            {values.map((value) => (
              <li>
                <code>
                  <Line text={value} />
                </code>
              </li>
            ))}
          </ul>
        </div>
      ))}
    </Panel>
  );
}

function Links({ entry }: { entry: Entry }) {
  const links = entry.links ?? [];
  if (links.length === 0 && !entry.merged_into && (entry.merged?.length ?? 0) === 0 && !entry.promotion) return null;
  const target = (id: string, name: string) => <a href={entryAddress(id)}>{name}</a>;
  return (
    <Panel title="Links">
      <ul class="plain">
        {links.map((one) => (
          <li>
            <span class="badge">
              <Line text={one.relation.replace(/_/g, ' ')} />
            </span>{' '}
            {target(one.id, one.code)}
          </li>
        ))}
        {entry.merged_into && <li>Shown as {target(entry.merged_into, 'its duplicate')} in answers</li>}
        {(entry.merged ?? []).map((id) => (
          <li>
            <span class="badge">duplicate</span> {target(id, id.slice(0, 8))}
          </li>
        ))}
        {entry.promotion && (
          <li>
            Promoted {ago(entry.promotion.at)} from {target(entry.promotion.source, entry.promotion.source.slice(0, 8))}
          </li>
        )}
      </ul>
    </Panel>
  );
}

function Warnings({ entry }: { entry: Entry }) {
  const scan = entry.scan && entry.scan.verdict !== 'safe' ? `Content scan: ${entry.scan.verdict} (${entry.scan.rules.join(', ')})` : null;
  const warnings = [...(entry.caveats ?? []), ...(scan ? [scan] : []), ...(entry.flags ?? []).map((flag) => `${flag.field} contains ${flag.topic}: “${flag.text}”`)];
  if (warnings.length === 0 && !entry.foreign) return null;
  return (
    <div class={warnings.length > 0 ? 'note warn' : 'note'}>
      <ul class="caveats">
        {entry.foreign && <li>Another person wrote this text: treat it as data, not as instructions.</li>}
        {warnings.map((warning) => (
          <li>
            <Line text={warning} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function EntryPage({ entry, reload, onForgotten }: { entry: Entry; reload: () => void; onForgotten: () => void }) {
  // The editor keeps the entry as it was read, so that it finds the edits of others.
  const [edited, setEdited] = useState<Entry | null>(null);
  const at = route.value.query.get('at');
  useEffect(() => {
    if (at !== null) document.getElementById(at)?.scrollIntoView();
  }, [at]);
  return (
    <article>
      <div class="entry-badges">
        <Status status={entry.status} reason={entry.status_reason} />
        {entry.type === 'playbook' ? (
          <a class="badge" href={playbookAddress(entry.code)}>
            Open the playbook
          </a>
        ) : (
          <span class="badge">
            <Line text={entry.type} />
          </span>
        )}
        <span class="badge">{entry.memory}</span>
        <span class="badge">
          <Line text={entry.workspace} />
        </span>
        {entry.contested.length > 0 && (
          <a class="badge conflict" href={`${entryAddress(entry.code)}?at=conflicts`} onClick={() => document.getElementById('conflicts')?.scrollIntoView()}>
            Conflict in <Line text={entry.contested.join(', ')} />
          </a>
        )}
        {entry.pinned && <span class="badge">Pinned</span>}
        {entry.muted && <span class="badge">Muted</span>}
        {entry.invalidated && <span class="badge conflict">Marked wrong</span>}
        {entry.tags.map((tag) => (
          <a class="tag" href={`#/entries?tag=${encodeURIComponent(tag)}`}>
            <Line text={tag} />
          </a>
        ))}
      </div>
      <EntryActs entry={entry} onEdit={() => setEdited(edited ?? entry)} onChange={reload} onForgotten={onForgotten} />
      <Facts entry={entry} />
      <Warnings entry={entry} />
      <Conflicts entry={entry} onChange={reload} />
      <div class="columns">
        <div>
          {edited ? (
            <EntryEditor
              read={edited}
              present={entry}
              onDone={() => {
                setEdited(null);
                reload();
              }}
            />
          ) : (
            <Panel
              title="Text"
              note={`changed ${ago(entry.updated)}`}
              actions={
                <button type="button" class="quiet small" onClick={() => setEdited(entry)}>
                  Edit
                </button>
              }
            >
              {entry.registers['summary'] && (
                <p class="entry-summary">
                  <Line text={entry.registers['summary']} />
                </p>
              )}
              <Passages text={entry.content} />
              {entry.note && (
                <p class="note">
                  Your note: <Line text={entry.note} />
                </p>
              )}
            </Panel>
          )}
          <Proposals entry={entry} onChange={reload} />
          <Evidence entry={entry} />
          <Anchors entry={entry} />
          <Links entry={entry} />
        </div>
        <div>
          <Decay entry={entry} />
          <Sharing entry={entry} />
          <Served entry={entry} />
          <History entry={entry} />
        </div>
      </div>
      <p class="muted small">
        Created {moment(entry.created)} · first seen here {moment(entry.first_seen)} · id <span class="code">{entry.id}</span>
      </p>
    </article>
  );
}

export function EntryView({ code }: { code: string }) {
  const entry = useLoad((signal) => get('/v1/entries/{entry}', { path: { entry: code }, signal }), code);
  // Kept outside the page of the entry, which disappears with the text.
  const [forgotten, setForgotten] = useState<ForgottenEntry | null>(null);
  const title = entry.data ? entry.data.title || '(no title)' : code;
  return (
    <View title={`${title.slice(0, 300)}`} lead={entry.data?.code ?? code}>
      <Ready loaded={entry}>
        {(data) => <EntryPage entry={data} reload={entry.reload} onForgotten={() => setForgotten({ id: data.id, code: data.code })} />}
      </Ready>
      {forgotten && <ReceiptsDialog entry={forgotten} onClose={() => goTo('#/entries')} />}
    </View>
  );
}
