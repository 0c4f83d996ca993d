import { Controller, Inject } from '@nestjs/common';
import type { ChannelConfig } from '@antiphon/config';
import {
  CHANNEL_SECRETS,
  changePeer,
  connectChannel,
  createPairingCode,
  listChannels,
  listDeliveries,
  listPeers,
  replayDelivery,
} from '@antiphon/contracts/agent';
import type { ChannelView, DeliveryView, PeerView } from '@antiphon/contracts/agent';
import { inTransaction } from '@antiphon/database';
import type { EventStorePg, StreamAppend } from '@antiphon/event-store';
import { bug, isAppError, notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { CredentialStore } from '@antiphon/providers-features';
import { DATABASE_POOL, EVENT_STORE } from '@antiphon/service-host';
import type pg from 'pg';
import type { z } from 'zod';
import { DeliveryStreams } from '../delivery/delivery-streams.js';
import { DELIVERY_TIMERS } from '../delivery/delivery-timers.js';
import type { DeliveryTimers } from '../delivery/delivery-timers.js';
import { readDeliveries } from '../list/read-deliveries.js';
import { PeerDirectory } from '../peers/peer-directory.js';
import { ChannelDirectory, secretNameOf } from '../settings/channel-directory.js';

type RequestOf<T extends { readonly request: z.ZodType }> = z.output<T['request']>;

const ACTIONS = { pair: 'Pair', unpair: 'Unpair', block: 'Block' } as const;

/** Handles what operators see and change of channels. A secret comes in and never goes out. */
@Controller()
export class Channels {
  constructor(
    @Inject(ChannelDirectory) private readonly directory: ChannelDirectory,
    @Inject(PeerDirectory) private readonly peers: PeerDirectory,
    @Inject(DeliveryStreams) private readonly streams: DeliveryStreams,
    @Inject(CredentialStore) private readonly credentials: CredentialStore,
    @Inject(DELIVERY_TIMERS) private readonly timers: DeliveryTimers,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(EVENT_STORE) private readonly store: EventStorePg,
  ) {}

  @HandleRequest(listChannels)
  async list({ workspace }: RequestOf<typeof listChannels>): Promise<{ channels: ChannelView[] }> {
    const stored = await this.storedSecrets(workspace);
    const channels = this.directory.list(workspace);
    return { channels: await Promise.all(channels.map((channel) => this.viewOf(channel, stored))) };
  }

  @HandleRequest(connectChannel)
  async connect(request: RequestOf<typeof connectChannel>): Promise<ChannelView> {
    const { workspace, channel: name, name: secret, caller } = request;
    const channel = this.directory.require(workspace, name);
    const row = this.credentials.seal(workspace, secretNameOf(name, secret), request.secret, caller);
    const { credentialId } = row;
    await this.peers.change(channel, { type: 'Connect', by: caller, secret, credentialId }, (own) =>
      this.commitBoth(workspace, own, (client) => this.credentials.writeWithin(client, row)),
    );
    this.credentials.forget();
    return this.viewOf(channel, await this.storedSecrets(workspace));
  }

  @HandleRequest(createPairingCode)
  pair({ workspace, channel, caller }: RequestOf<typeof createPairingCode>) {
    return this.peers.createCode(this.directory.require(workspace, channel), caller);
  }

  @HandleRequest(listPeers)
  async listPeers({ workspace, channel }: RequestOf<typeof listPeers>): Promise<{ peers: PeerView[] }> {
    const { peers } = await this.peers.read(this.directory.require(workspace, channel));
    return { peers: [...peers].map(([peer, known]) => ({ peer, ...known })) };
  }

  @HandleRequest(changePeer)
  async changePeer({ workspace, channel, peer, action, caller }: RequestOf<typeof changePeer>) {
    const found = this.directory.require(workspace, channel);
    return { changed: await this.peers.change(found, { type: ACTIONS[action], by: caller, peer }) };
  }

  @HandleRequest(listDeliveries)
  deliveries(request: RequestOf<typeof listDeliveries>) {
    return readDeliveries(this.pool, request);
  }

  @HandleRequest(replayDelivery)
  async replay({ workspace, messageId, caller }: RequestOf<typeof replayDelivery>): Promise<DeliveryView> {
    const ref = { workspace, messageId };
    const { version } = await this.streams.read(ref);
    if (version === 0)
      throw notFound('CHANNEL.NO_DELIVERY', 'there is no delivery with this id in the workspace');
    const { state } = await this.streams.commit(ref, (_, now) => ({
      ...{ type: 'Replay', data: { messageId, by: caller }, now },
    }));
    this.timers.start(ref);
    const { channel, peer, code, attempts, receivedAt, changedAt } = state;
    const shown = state.state === 'new' ? 'received' : state.state;
    return { messageId, channel, peer, state: shown, code, attempts, receivedAt, changedAt };
  }

  private async viewOf(channel: ChannelConfig, stored: ReadonlySet<string>): Promise<ChannelView> {
    const { name, plugin, account, connection } = channel;
    const problem = await this.directory.open(channel).then(
      () => null,
      (error: unknown) => (isAppError(error) ? error.message : 'it cannot be used'),
    );
    const { peers } = await this.peers.read(channel);
    const paired = [...peers.values()].filter(({ state }) => state === 'paired');
    return {
      ...{ name, plugin, account, connection, problem, pairedPeers: paired.length },
      status: problem === null ? 'ready' : 'unavailable',
      secrets: CHANNEL_SECRETS.filter((secret) => stored.has(secretNameOf(name, secret))),
    };
  }

  private async storedSecrets(workspace: string): Promise<ReadonlySet<string>> {
    return new Set((await this.credentials.list(workspace)).map(({ provider }) => provider));
  }

  /** Commits a stored secret and the fact about it. */
  private async commitBoth(
    workspace: string,
    own: StreamAppend,
    change: (client: pg.ClientBase) => Promise<void>,
  ): Promise<boolean> {
    const commit = async (client: pg.ClientBase): Promise<boolean> => {
      await change(client);
      const [outcome] = await this.store.appendWithin(client, [{ workspace, streams: [own] }]);
      if (!outcome?.ok) throw outcome?.error ?? bug('CHANNEL.NO_OUTCOME', 'an append has no outcome');
      return outcome.result.outcome === 'appended';
    };
    const isAppended = await inTransaction(this.pool, commit, workspace);
    if (isAppended) this.store.notifyAppended('channel');
    return isAppended;
  }
}
