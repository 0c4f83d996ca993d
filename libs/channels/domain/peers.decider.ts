import type { ChannelPeerEvent } from '@antiphon/contracts/agent';
import { assertNever, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

const schemaVersion = 1;

/** Maximum numbers of peers and of open codes of a channel. */
export const MAX_PEERS = 10_000;
export const MAX_OPEN_CODES = 20;

export interface KnownPeer {
  readonly state: 'paired' | 'blocked';
  readonly by: string;
  readonly at: string;
}

/** Peers of a channel, and the codes that pair one. */
export interface ChannelPeers {
  readonly peers: ReadonlyMap<string, KnownPeer>;
  /** Expiry by the digest of the code. A used code is none. */
  readonly codes: ReadonlyMap<string, string>;
}

interface Command<T extends string> {
  readonly type: T;
  readonly channel: string;
  readonly by: string;
  readonly now: string;
}
export type PeerCommand =
  | (Command<'Connect'> & { readonly secret: string; readonly credentialId: string })
  | (Command<'CreateCode'> & { readonly codeDigest: string; readonly expiresAt: string })
  | (Command<'UseCode'> & { readonly peer: string; readonly codeDigest: string })
  | (Command<'Pair' | 'Unpair' | 'Block'> & { readonly peer: string });

/** Returns the open codes at a time. */
export const openCodes = ({ codes }: ChannelPeers, now: string): readonly string[] =>
  [...codes].filter(([, expiresAt]) => expiresAt > now).map(([digest]) => digest);

const requireRoom = ({ peers }: ChannelPeers): void => {
  if (peers.size >= MAX_PEERS)
    throw rejected(
      'CHANNEL.TOO_MANY_PEERS',
      `the channel has ${MAX_PEERS} peers. What to do: remove some with "antiphon channel unpair"`,
    );
};

const decide = (command: PeerCommand, known: ChannelPeers): ChannelPeerEvent[] => {
  const { channel, by, now: at } = command;
  const change = { channel, by, at };
  switch (command.type) {
    case 'Connect': {
      const { secret, credentialId } = command;
      return [{ type: 'ChannelConnected', schemaVersion, data: { ...change, secret, credentialId } }];
    }
    case 'CreateCode': {
      const { codeDigest, expiresAt } = command;
      if (openCodes(known, at).length >= MAX_OPEN_CODES)
        throw rejected('CHANNEL.TOO_MANY_CODES', `the channel has ${MAX_OPEN_CODES} unused codes`);
      return [{ type: 'PairingCodeCreated', schemaVersion, data: { ...change, codeDigest, expiresAt } }];
    }
    case 'UseCode': {
      const { peer, codeDigest } = command;
      // A blocked peer cannot pair itself.
      if (known.peers.has(peer) || !openCodes(known, at).includes(codeDigest)) return [];
      requireRoom(known);
      return [{ type: 'PeerPaired', schemaVersion, data: { ...change, peer, codeDigest } }];
    }
    case 'Pair': {
      const { peer } = command;
      if (known.peers.get(peer)?.state === 'paired') return [];
      requireRoom(known);
      return [{ type: 'PeerPaired', schemaVersion, data: { ...change, peer, codeDigest: null } }];
    }
    case 'Unpair':
      if (!known.peers.has(command.peer)) return [];
      return [{ type: 'PeerUnpaired', schemaVersion, data: { ...change, peer: command.peer } }];
    case 'Block':
      if (known.peers.get(command.peer)?.state === 'blocked') return [];
      requireRoom(known);
      return [{ type: 'PeerBlocked', schemaVersion, data: { ...change, peer: command.peer } }];
    default:
      return assertNever(command);
  }
};

const evolve = ({ peers, codes }: ChannelPeers, { type, data }: ChannelPeerEvent): ChannelPeers => {
  if (type === 'ChannelConnected') return { peers, codes };
  if (type === 'PairingCodeCreated')
    return { peers, codes: new Map(codes).set(data.codeDigest, data.expiresAt) };
  const nextPeers = new Map(peers);
  const nextCodes = new Map(codes);
  const { peer, by, at } = data;
  if (type === 'PeerUnpaired') nextPeers.delete(peer);
  else nextPeers.set(peer, { state: type === 'PeerPaired' ? 'paired' : 'blocked', by, at });
  if (type === 'PeerPaired' && data.codeDigest !== null) nextCodes.delete(data.codeDigest);
  return { peers: nextPeers, codes: nextCodes };
};

/** Decides who may talk to agents by a channel. A code pairs one peer. */
export const peersDecider: Decider<ChannelPeers, PeerCommand, ChannelPeerEvent> = {
  initialState: () => ({ peers: new Map(), codes: new Map() }),
  decide,
  evolve,
};
