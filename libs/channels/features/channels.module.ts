import { Global, Module } from '@nestjs/common';
import { AGENT_STORE, LEASE_OWNER } from '@antiphon/agents-features';
import { AnswerApproval, StartSession, TURN_COMMANDS, TurnEndWatcher } from '@antiphon/conversation-features';
import { CredentialStore } from '@antiphon/providers-features';
import * as platform from '@antiphon/service-host';
import { createToken, provide, provideClass } from '@antiphon/service-host';
import { LeaderLoop } from '@antiphon/messaging';
import { ApprovalButtons } from './delivery/approval-buttons.js';
import { BeginTurn } from './delivery/begin-turn.js';
import { ChannelPlugin } from './delivery/channel-plugin.js';
import { ChannelWork } from './delivery/channel-work.js';
import { DeliveryStreams } from './delivery/delivery-streams.js';
import { DELIVERY_TIMERS } from './delivery/delivery-timers.js';
import { PeerDirectory } from './peers/peer-directory.js';
import { ChannelPolls, POLLS_LEASE, POLL_TIMES } from './polling/channel-polls.js';
import { PeerRates } from './receive/peer-rates.js';
import { ReceiveDelivery } from './receive/receive-delivery.handler.js';
import { TakeMessage } from './receive/take-message.js';
import { ChannelDirectory } from './settings/channel-directory.js';
import { ChannelSockets, SOCKETS_LEASE, SOCKET_TIMES } from './sockets/channel-sockets.js';
import { Channels } from './operators/channels.handler.js';

const { CLOCK, CONFIG, DATABASE_POOL, EVENT_STORE, IDS, LEASE_STORE, LOGGER, REQUESTS } = platform;
const POLLS_LOOP = createToken<LeaderLoop>('POLLS_LOOP');
const SOCKETS_LOOP = createToken<LeaderLoop>('SOCKETS_LOOP');

const handlers = [Channels, ReceiveDelivery];
const providers = [
  ...handlers,
  provideClass(ChannelDirectory, {
    config: CONFIG,
    requests: REQUESTS,
    credentials: CredentialStore,
    clock: CLOCK,
  }),
  provide(
    DeliveryStreams,
    [AGENT_STORE, IDS, CLOCK],
    (store, ids, clock) => new DeliveryStreams(store, ids, clock),
  ),
  provide(
    PeerDirectory,
    [EVENT_STORE, IDS, CLOCK],
    (store, ids, clock) => new PeerDirectory(store, ids, clock),
  ),
  provide(
    ChannelPlugin,
    [REQUESTS, ChannelDirectory],
    (requests, directory) => new ChannelPlugin(requests, directory),
  ),
  provide(PeerRates, [CLOCK], (clock) => new PeerRates(clock)),
  provideClass(ApprovalButtons, {
    streams: DeliveryStreams,
    answers: AnswerApproval,
    turnEnds: TurnEndWatcher,
    pool: DATABASE_POOL,
  }),
  provideClass(BeginTurn, {
    streams: DeliveryStreams,
    directory: ChannelDirectory,
    turns: TURN_COMMANDS,
    sessions: StartSession,
    approvals: ApprovalButtons,
  }),
  provideClass(ChannelWork, {
    streams: DeliveryStreams,
    directory: ChannelDirectory,
    plugin: ChannelPlugin,
    beginTurn: BeginTurn,
    approvals: ApprovalButtons,
    turnEnds: TurnEndWatcher,
    store: AGENT_STORE,
    clock: CLOCK,
    logger: LOGGER,
    owner: LEASE_OWNER,
  }),
  provideClass(TakeMessage, {
    streams: DeliveryStreams,
    peers: PeerDirectory,
    directory: ChannelDirectory,
    rates: PeerRates,
    beginTurn: BeginTurn,
    work: ChannelWork,
    plugin: ChannelPlugin,
    timers: DELIVERY_TIMERS,
    logger: LOGGER,
    owner: LEASE_OWNER,
  }),
  provide(
    POLLS_LOOP,
    [LEASE_STORE, LEASE_OWNER, LOGGER],
    (leases, owner, logger) =>
      new LeaderLoop({
        ...{ leases, owner, logger, ...POLL_TIMES, name: POLLS_LEASE },
        warnings: { round: 'channels not polled', release: 'poll lease not released' },
      }),
  ),
  provide(
    SOCKETS_LOOP,
    [LEASE_STORE, LEASE_OWNER, LOGGER],
    (leases, owner, logger) =>
      new LeaderLoop({
        ...{ leases, owner, logger, ...SOCKET_TIMES, name: SOCKETS_LEASE },
        warnings: { round: 'channel sockets not held', release: 'socket lease not released' },
      }),
  ),
  provideClass(ChannelSockets, {
    loop: SOCKETS_LOOP,
    directory: ChannelDirectory,
    plugin: ChannelPlugin,
    receive: ReceiveDelivery,
    logger: LOGGER,
  }),
  provideClass(ChannelPolls, {
    loop: POLLS_LOOP,
    directory: ChannelDirectory,
    plugin: ChannelPlugin,
    receive: ReceiveDelivery,
    logger: LOGGER,
  }),
];

/** Channels: deliveries of platforms, the turns that they lead to, and the replies. */
@Global()
@Module({ controllers: handlers, providers, exports: providers })
export class ChannelsModule {}
