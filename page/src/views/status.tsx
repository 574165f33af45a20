// Status: health, index and embedding progress, maintenance with undo, workspaces, settings with their
// origin, and the look of the page.

import { useState } from 'preact/hooks';
import { get, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { link } from '../api/events';
import { Empty, Panel, Ready, View } from '../parts/frame';
import { Meter } from '../parts/judgement';
import { act } from '../parts/notice';
import { Line } from '../parts/text';
import { ago, bytes, count } from '../parts/time';
import { choice, choose, type Choice } from '../parts/theme';

type NodeStatus = Schemas['NodeStatus'];

function Health({ status }: { status: NodeStatus }) {
  const problems = [...(status.attention ?? []), ...(status.close_key ? [`Other users can read the node's key. Run: ${status.close_key}`] : [])];
  return (
    <Panel title="Health" note={`klnode ${status.version}`}>
      {problems.length === 0 ? <p class="note good">No problem needs you.</p> : problems.map((text) => (
        <p class="note warn">
          <Line text={text} />
        </p>
      ))}
      <dl class="pairs">
        <div>
          <dt>Entries</dt>
          <dd>{count(status.entries)}</dd>
        </div>
        <div>
          <dt>Position in the feed</dt>
          <dd>{count(status.head)}</dd>
        </div>
        <div>
          <dt>In quarantine</dt>
          <dd>{status.quarantined > 0 ? <a href="#/inbox?kind=Quarantine">{count(status.quarantined)}</a> : '0'}</dd>
        </div>
        {status.disk && (
          <>
            <div>
              <dt>Store and index</dt>
              <dd>
                {bytes(status.disk.store_bytes)} and {bytes(status.disk.index_bytes)}
              </dd>
            </div>
            <div>
              <dt>Free on the disk</dt>
              <dd>{bytes(status.disk.free_bytes)}</dd>
            </div>
          </>
        )}
        <div>
          <dt>Owner key</dt>
          <dd>{status.is_unprotected ? 'none: the user account protects this node' : 'set: acts that need it are confirmed in a terminal'}</dd>
        </div>
        <div>
          <dt>Home</dt>
          <dd class="code">
            <Line text={status.home} />
          </dd>
        </div>
        <div>
          <dt>Key</dt>
          <dd class="code">{status.node.slice(0, 16)}…</dd>
        </div>
        <div>
          <dt>This page</dt>
          <dd>{link.value === 'live' ? 'receives changes live' : 'is not connected'}</dd>
        </div>
      </dl>
    </Panel>
  );
}

function IndexPanel({ status }: { status: NodeStatus }) {
  const { index } = status;
  const known = Math.max(1, index.documents + index.lag);
  const embedded = index.documents > 0 ? Math.min(1, index.vectors / index.documents) : 1;
  return (
    <Panel title="Index" note={index.is_settled ? 'up to date' : 'working'}>
      <p class="row gauge">
        <span>Keywords</span> <Meter share={index.documents / known} label="Keyword index" /> <span class="number">{count(index.documents)}</span>
      </p>
      <p class="row gauge">
        <span>Vectors</span> <Meter share={embedded} label="Vectors" /> <span class="number">{count(index.vectors)}</span>
      </p>
      {index.rebuild && (
        <p class="row gauge">
          <span>Rebuild</span> <Meter share={index.rebuild.done / Math.max(1, index.rebuild.total)} label="Rebuild" />
          <span class="number">
            {count(index.rebuild.done)} of {count(index.rebuild.total)}
          </span>
        </p>
      )}
      {index.transformer && (
        <p class="row gauge">
          <span>Passages</span> <Meter share={index.transformer.done / Math.max(1, index.transformer.total)} label="Passages embedded" />
          <span class="number">
            {count(index.transformer.done)} of {count(index.transformer.total)}
          </span>
        </p>
      )}
      {index.fault && (
        <p class="note error">
          <Line text={index.fault} />
        </p>
      )}
      <p class="muted small">
        {index.lag > 0 ? `${count(index.lag)} records are read from the store until they are indexed. ` : ''}
        Model: <Line text={index.model} empty="none" />
      </p>
    </Panel>
  );
}

function Maintenance() {
  const loaded = useLoad((signal) => get('/v1/maintenance', { query: { limit: 50 }, signal }), 'maintenance');
  return (
    <Ready loaded={loaded}>
      {(maintenance) => (
        <Panel title="Maintenance">
          <div class="scroll" tabIndex={0} role="region" aria-label="Maintenance services">
            <table class="table">
              <thead>
                <tr>
                  <th scope="col">Service</th>
                  <th scope="col" class="number wide-only">Examined</th>
                  <th scope="col" class="number">Behind</th>
                  <th scope="col">Last pass</th>
                  <th scope="col">
                    <span class="hidden">Act</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {maintenance.services.map((service) => (
                  <tr>
                    <td>{service.name}</td>
                    <td class="number wide-only">{count(service.examined)}</td>
                    <td class="number">{count(service.behind)}</td>
                    <td>{service.through ? ago(service.through) : 'never'}</td>
                    <td>
                      <button
                        type="button"
                        class="small"
                        onClick={() => void act(() => post('/v1/maintenance/run', { body: { service: service.name } }), { done: (result) => `${service.name}: ${result.examined} examined, ${result.noted.length} noted.` }).then(loaded.reload)}
                      >
                        Run <span class="hidden">{service.name}</span>
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <h3>Changes made</h3>
          {maintenance.changes.length === 0 && <p class="muted">None yet. Merged duplicates appear here and can be undone.</p>}
          <ul class="plain">
            {maintenance.changes.map((item) => (
              <li class="row">
                <span>
                  {item.entries.map((entry) => entry.code).join(' = ')} <span class="muted">{ago(item.at)}</span> <Line text={item.why} />
                </span>
                {item.stage === 'made' ? (
                  <button type="button" class="small" onClick={() => void act(() => post('/v1/maintenance/{number}/undo', { path: { number: String(item.number) as never } }), { done: 'Undone.' }).then(loaded.reload)}>
                    Undo
                  </button>
                ) : (
                  <span class="badge">{item.stage}</span>
                )}
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </Ready>
  );
}

function Workspaces() {
  const loaded = useLoad((signal) => get('/v1/workspaces', { signal }), 'workspaces');
  return (
    <Ready loaded={loaded}>
      {({ workspaces }) => (
        <Panel title="Workspaces" note="and the weights of the search signals">
          {workspaces.length === 0 && <Empty title="No workspace" />}
          <ul class="plain">
            {workspaces.map((one) => (
              <li class="workspace">
                <a href={`#/entries?workspace=${encodeURIComponent(one.name)}`}>
                  <Line text={one.name} />
                </a>{' '}
                {one.current && <span class="badge">current</span>} <span class="muted">{count(one.entries)} entries</span>
                {one.members.length > 0 && <span class="muted">, {one.members.length} members</span>}
                <div class="muted small" hidden={one.weights_from === workspaces[0]!.weights_from && one !== workspaces[0]}>
                  {Object.entries(one.weights)
                    .map(([signal, weight]) => `${signal} ${weight}`)
                    .join(' · ')}{' '}
                  — from <Line text={one.weights_from} />
                </div>
              </li>
            ))}
          </ul>
        </Panel>
      )}
    </Ready>
  );
}

function Look() {
  return (
    <Panel title="This page">
      <fieldset class="inline">
        <legend>Colours</legend>
        {(['system', 'light', 'dark'] as Choice[]).map((one) => (
          <label class="choice">
            <input type="radio" name="theme" checked={choice.value === one} onChange={() => choose(one)} /> {one}
          </label>
        ))}
      </fieldset>
      <p class="muted small">The session ends with the node or when this tab closes. The page loads nothing from other hosts.</p>
    </Panel>
  );
}

type Setting = Schemas['NodeSetting'];

function SettingRow({ setting }: { setting: Setting }) {
  const isChanged = setting.value !== setting.default;
  return (
    <li class="setting">
      <details>
        <summary>
          <code class="setting-key">{setting.key}</code>
          <code class={isChanged ? 'setting-value changed' : 'setting-value'}>
            <Line text={setting.value} />
          </code>
          <span class="muted small setting-origin">
            <Line text={setting.origin} />
          </span>
        </summary>
        <p class="small">{setting.comment}</p>
        <p class="muted small">
          {isChanged && (
            <>
              Default: <code>{setting.default}</code>.{' '}
            </>
          )}
          Set it in <code>klnode.toml</code> or as <code>{setting.variable}</code>.
        </p>
      </details>
    </li>
  );
}

function Settings() {
  const loaded = useLoad((signal) => get('/v1/settings', { signal }), 'settings', 'never');
  const [text, setText] = useState('');
  const [isOnlyChanged, setOnlyChanged] = useState(true);
  return (
    <Ready loaded={loaded}>
      {({ settings }) => {
        const changed = settings.filter((one) => one.origin !== 'default');
        const words = text.toLowerCase().split(/\s+/).filter(Boolean);
        const isFound = (one: Setting) => words.every((word) => `${one.key} ${one.comment}`.toLowerCase().includes(word));
        const shown = words.length > 0 ? settings.filter(isFound) : isOnlyChanged ? changed : settings;
        return (
          <Panel title="Settings" note={`${settings.length} keys, ${changed.length} set; they apply from the start of the node`} id="settings">
            <div class="filters">
              <input type="search" aria-label="Find a setting" placeholder="Find a setting" value={text} onInput={(event) => setText(event.currentTarget.value)} />
              {words.length === 0 && (
                <label class="choice">
                  <input type="checkbox" checked={isOnlyChanged} onChange={(event) => setOnlyChanged(event.currentTarget.checked)} /> Only those that are set
                </label>
              )}
            </div>
            {shown.length === 0 &&
              (words.length > 0 ? (
                <p class="muted">No key or comment contains these words.</p>
              ) : (
                <p class="muted">
                  Every setting has its default. Write a key into <code>klnode.toml</code> in the home to change it, then restart the node.
                </p>
              ))}
            <ul class="plain settings">
              {shown.map((one) => (
                <SettingRow key={one.key} setting={one} />
              ))}
            </ul>
          </Panel>
        );
      }}
    </Ready>
  );
}

export function StatusView() {
  const loaded = useLoad((signal) => get('/v1/status', { signal }), 'status');
  return (
    <View title="Status" lead="Health of this node, its maintenance and its settings.">
      <Ready loaded={loaded}>
        {(status) => (
          <div class="columns">
            <div>
              <Health status={status} />
              <Maintenance />
            </div>
            <div>
              <IndexPanel status={status} />
              <Workspaces />
              <Look />
            </div>
          </div>
        )}
      </Ready>
      <Settings />
    </View>
  );
}
