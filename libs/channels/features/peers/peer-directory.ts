import { createHash, randomBytes } from 'node:crypto';
import type { ChannelConfig } from '@antiphon/config';
import { ChannelPeerEvent, channelStream } from '@antiphon/contracts/agent';
import { peersDecider } from '@antiphon/channels-domain';
import type { ChannelPeers, PeerCommand } from '@antiphon/channels-domain';
import { channelPeersIdOf, eventForms } from '@antiphon/agent-log';
import { AggregateStore } from '@antiphon/event-store';
import type { Decide, EventStore, StreamAppend } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';

/** Validity of a pairing code, ms. */
const CODE_MS = 3_600_000;
const CODE_BYTES = 10;
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const CODE = new RegExp(`^[${ALPHABET}]{${CODE_BYTES}}$`);
const MAX_CACHED = 1_000;

const digestOf = (code: string): string => createHash('sha256').update(`pairing ${code}`).digest('hex');

const newCode = (): string =>
  [...randomBytes(CODE_BYTES)].map((byte) => ALPHABET[byte % ALPHABET.length]).join('');

export type PeerAccess = 'allowed' | 'unpaired' | 'blocked';

type NewCommand = PeerCommand extends infer C
  ? C extends PeerCommand
    ? Omit<C, 'channel' | 'now'>
    : never
  : never;

/** Peers of channels: who is paired, and who is blocked. */
export class PeerDirectory {
  private readonly streams: AggregateStore<ChannelPeers, ChannelPeerEvent>;

  constructor(
    store: Pick<EventStore, 'append' | 'readStream'>,
    ids: Ids,
    private readonly clock: Clock,
  ) {
    this.streams = new AggregateStore({
      ...{ store, decider: peersDecider, ...eventForms(ChannelPeerEvent, ids, null) },
      streamOf: (workspace, channel) => channelStream(channelPeersIdOf(workspace, channel)),
      cache: { maxStreams: MAX_CACHED },
    });
  }

  async read({ workspace, name }: Pick<ChannelConfig, 'workspace' | 'name'>): Promise<ChannelPeers> {
    return (await this.streams.read(workspace, name)).state;
  }

  /** Returns whether a message may lead to a turn. A block of either id wins. */
  async accessOf(channel: ChannelConfig, peer: string, sender: string): Promise<PeerAccess> {
    const { peers } = await this.read(channel);
    const states = [peers.get(peer)?.state, peers.get(sender)?.state];
    if (states.includes('blocked')) return 'blocked';
    const isListed = channel.allow.includes(peer) || channel.allow.includes(sender);
    return channel.open || isListed || states.includes('paired') ? 'allowed' : 'unpaired';
  }

  /** Creates a code that pairs the sender who sends it first. */
  async createCode(channel: ChannelConfig, by: string): Promise<{ code: string; expiresAt: string }> {
    const code = newCode();
    const expiresAt = isoTime({ now: () => this.clock.now() + CODE_MS });
    await this.change(channel, { type: 'CreateCode', by, codeDigest: digestOf(code), expiresAt });
    return { code, expiresAt };
  }

  /** Pairs a peer if its text is an open code. Returns true if it is paired now. */
  async useCode(channel: ChannelConfig, peer: string, text: string): Promise<boolean> {
    const code = text.trim().toUpperCase();
    if (!CODE.test(code)) return false;
    return this.change(channel, {
      type: 'UseCode',
      by: `peer/${peer}`.slice(0, 200),
      peer,
      codeDigest: digestOf(code),
    });
  }

  /** Decides and appends a change. Returns false for one that changes nothing. */
  async change(
    { workspace, name }: ChannelConfig,
    command: NewCommand,
    join?: (own: StreamAppend) => Promise<boolean>,
  ): Promise<boolean> {
    const decide: Decide<ChannelPeers, ChannelPeerEvent> = ({ state }) => {
      const whole = { ...command, channel: name, now: isoTime(this.clock) } as PeerCommand;
      return { events: peersDecider.decide(whole, state), ...(join ? { join } : {}) };
    };
    return (await this.streams.commit(workspace, name, decide)).isAppended;
  }
}
