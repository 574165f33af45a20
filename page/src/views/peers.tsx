// Peers: the graph of nodes and workspaces, trust with its reasons, sync state, and the way to the
// egress preview of each peer.

import { useState } from 'preact/hooks';
import { get, post, type Schemas } from '../api/request';
import { useLoad } from '../api/load';
import { Dialog } from '../parts/dialog';
import { Empty, Panel, Ready, View } from '../parts/frame';
import { Meter, percent } from '../parts/judgement';
import { act } from '../parts/notice';
import { PeerGraph, type GraphEdge, type GraphNode } from '../parts/peer_graph';
import { shellWord } from '../parts/shell';
import { Line } from '../parts/text';
import { ago, count, moment } from '../parts/time';
import { PeerView } from './peer';

export type Peer = Schemas['Peer'];

const SYNC_TEXT: Record<string, string> = {
  equal: 'in sync',
  differs: 'differs',
  reading: 'transferring',
  refused: 'refused',
  unknown: 'not compared yet',
  unanswered: 'was in sync',
};

export function SyncState({ peer }: { peer: Peer }) {
  const text = SYNC_TEXT[peer.sync] ?? peer.sync;
  const tone = peer.sync === 'equal' ? 'fate-has' : peer.sync === 'differs' || peer.sync === 'refused' ? 'conflict' : '';
  return (
    <span class={`badge ${tone}`} title={peer.sync_at ? `as of ${moment(peer.sync_at)}` : ''}>
      {text}
      {peer.differs ? `: ${count(peer.differs)}` : ''}
    </span>
  );
}

export function PeerState({ peer }: { peer: Peer }) {
  const text = peer.blocked ? 'blocked' : peer.state === 'approved' ? (peer.connected ? 'connected' : 'offline') : peer.state;
  const tone = peer.blocked ? 'conflict' : peer.connected ? 'fate-has' : '';
  return <span class={`badge ${tone}`}>{text}</span>;
}

function graph(peers: Peer[], workspaces: Schemas['Workspace'][]): [GraphNode[], GraphEdge[]] {
  const shared = workspaces.filter((one) => one.members.length > 1 || peers.some((peer) => peer.workspaces.includes(one.name)));
  const nodes: GraphNode[] = [
    { id: 'self', label: 'this node', kind: 'self', trust: 1, isConnected: true },
    ...shared.map((one): GraphNode => ({ id: `w ${one.name}`, label: one.name, kind: 'workspace', trust: 1, isConnected: true })),
    ...peers.map((peer): GraphNode => ({ id: peer.peer, label: peer.name, kind: 'peer', trust: peer.trust?.value ?? (peer.mine ? 1 : 0.2), isConnected: peer.connected })),
  ];
  const edges = [
    ...shared.map((one) => ({ from: 'self', to: `w ${one.name}` })),
    ...peers.flatMap((peer) => {
      const shares = peer.workspaces.map((name) => ({ from: `w ${name}`, to: peer.peer }));
      // Another machine of this person receives entries of every workspace.
      return peer.mine || shares.length === 0 ? [{ from: 'self', to: peer.peer }, ...shares] : shares;
    }),
  ];
  return [nodes, edges];
}

function PeerRow({ peer }: { peer: Peer }) {
  return (
    <li>
      <a href={`#/peers/${peer.peer}`}>
        <span class="list-main">
          <strong>
            <Line text={peer.name} />
          </strong>
          <span class="muted small">
            <span class="code">{peer.peer.slice(0, 8)}</span> · <Line text={peer.mine ? 'your machine' : peer.workspaces.length > 0 ? `shares ${peer.workspaces.join(', ')}` : 'no shared workspace'} /> · since {ago(peer.since)}
          </span>
        </span>
        <span class="peer-trust">
          {peer.trust && (
            <>
              <Meter share={peer.trust.value} label={`Trust in ${peer.name}`} />
              <span class="number">{percent(peer.trust.value)}</span>
            </>
          )}
        </span>
        <span class="flow" title="Entries released to the peer, and entries that the peer releases to this node">
          ↑ {count(peer.released)} · ↓ {count(peer.offered)}
        </span>
        <SyncState peer={peer} />
        <PeerState peer={peer} />
      </a>
    </li>
  );
}

function InviteDialog({ onClose }: { onClose: () => void }) {
  const [workspace, setWorkspace] = useState('');
  const [isMine, setMine] = useState(false);
  const [ticket, setTicket] = useState<Schemas['IssuedTicket'] | null>(null);
  const invite = async () => {
    const body = isMine ? { mine: true } : { workspace: workspace.trim() };
    const command = isMine ? 'klnode peer invite --mine' : `klnode peer invite ${workspace.trim() ? shellWord(workspace.trim()) : 'NAME'}`;
    const made = await act(() => post('/v1/invitations', { body }), { done: 'The ticket is ready.', command });
    if (made) setTicket(made);
  };
  return (
    <Dialog title="Invite a node" onClose={onClose}>
      {ticket ? (
        <>
          <p>On the other machine, run this command. The ticket is valid once, until {moment(ticket.expires)}.</p>
          <code class="command wrap">klnode peer join {ticket.ticket}</code>
          {ticket.entries > 0 && <p class="note warn">{count(ticket.entries)} entries of <Line text={ticket.workspace} /> become visible to the new member.</p>}
          <div class="actions">
            <button type="button" onClick={() => void navigator.clipboard.writeText(`klnode peer join ${ticket.ticket}`)}>
              Copy
            </button>
          </div>
        </>
      ) : (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void invite();
          }}
        >
          <label class="choice">
            <input type="checkbox" checked={isMine} onChange={(event) => setMine(event.currentTarget.checked)} /> Another machine of mine: it receives everything except the workspace local
          </label>
          {!isMine && (
            <label>
              Workspace of the new member
              <input value={workspace} required onInput={(event) => setWorkspace(event.currentTarget.value)} placeholder="team" />
            </label>
          )}
          <div class="actions">
            <button type="submit" class="primary">
              Make a ticket
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function JoinDialog({ onClose }: { onClose: () => void }) {
  const [target, setTarget] = useState('');
  const [answer, setAnswer] = useState<Schemas['JoinResponse'] | null>(null);
  const join = async () => {
    const joined = await act(() => post('/v1/join', { body: { target: target.trim() } }), { done: 'Asked to join.', command: `klnode peer join ${target.trim() ? shellWord(target.trim()) : 'TICKET'}` });
    if (joined) setAnswer(joined);
  };
  return (
    <Dialog title="Join a node" onClose={onClose}>
      {answer ? (
        <p>
          {answer.waiting ? 'The other operator has to approve.' : 'Paired.'} Both machines show the digits <strong>{answer.code ?? '–'}</strong> for <Line text={answer.name} />.
        </p>
      ) : (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            void join();
          }}
        >
          <label>
            Ticket, or an address such as vm.example:4001
            <textarea rows={3} required value={target} onInput={(event) => setTarget(event.currentTarget.value)} />
          </label>
          <div class="actions">
            <button type="submit" class="primary">
              Join
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

const TRUST_READ = 50;

/** The list has no trust, so it is read for each of the first peers. */
async function peersWithTrust(signal: AbortSignal): Promise<Schemas['Peers']> {
  const list = await get('/v1/peers', { signal });
  const detailed = list.peers.slice(0, TRUST_READ).map(({ peer }) => get('/v1/peers/{peer}', { path: { peer }, signal }));
  return { ...list, peers: [...(await Promise.all(detailed)), ...list.peers.slice(TRUST_READ)] };
}

export function PeersView({ peer }: { peer: string }) {
  return peer ? <PeerView key={peer} name={peer} /> : <PeerList />;
}

function PeerList() {
  const [dialog, setDialog] = useState<'invite' | 'join' | null>(null);
  const loaded = useLoad((signal) => Promise.all([peersWithTrust(signal), get('/v1/workspaces', { signal })]), 'peers', 'slowly');
  return (
    <View
      title="Peers"
      lead="Other nodes, what they receive from this one, and how far their authors are trusted."
      actions={
        <>
          <button type="button" onClick={() => setDialog('join')}>
            Join
          </button>
          <button type="button" class="primary" onClick={() => setDialog('invite')}>
            Invite
          </button>
        </>
      }
    >
      <Ready loaded={loaded}>
        {([{ peers, turned_away }, { workspaces }]) => {
          const [nodes, edges] = graph(peers, workspaces);
          return peers.length === 0 ? (
            <Empty title="No peer yet" command="klnode peer invite --mine">
              Pair another machine of yours, or invite a colleague to a workspace. Searches stay local, and a preview shows what a peer receives.
            </Empty>
          ) : (
            <>
              <Panel title="Network" note="A larger disc means more trust; a dashed line is offline">
                <PeerGraph nodes={nodes} edges={edges} label={`This node, ${peers.length} peers and their shared workspaces. The list below has the same facts.`} />
              </Panel>
              <ul class="list">
                {peers.map((one) => (
                  <PeerRow peer={one} />
                ))}
              </ul>
              {turned_away.length > 0 && (
                <Panel title="Turned away">
                  <ul class="plain">
                    {turned_away.map((one) => (
                      <li>
                        <span class="code">{one.peer.slice(0, 12)}</span> <Line text={one.reason} /> <span class="muted">{ago(one.at)}</span>
                      </li>
                    ))}
                  </ul>
                </Panel>
              )}
            </>
          );
        }}
      </Ready>
      {dialog === 'invite' && <InviteDialog onClose={() => setDialog(null)} />}
      {dialog === 'join' && <JoinDialog onClose={() => setDialog(null)} />}
    </View>
  );
}
