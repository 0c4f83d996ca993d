import { Controller, Inject, Req, Res } from '@nestjs/common';
import type { AntiphonConfig, ChannelConfig } from '@antiphon/config';
import {
  changePeer,
  connectChannel,
  createPairingCode,
  listChannels,
  listDeliveries,
  listPeers,
  receiveDelivery,
  replayDelivery,
} from '@antiphon/contracts/agent';
import type { DeliveryState } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { CHANNEL_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { exhausted, type Clock } from '@antiphon/kernel';
import { CLOCK, CONFIG, REQUESTS } from '@antiphon/service-host';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { forwardedHeaders, readDelivery } from './webhook-body.js';

type Routes = typeof CHANNEL_ROUTES;

/** The body of an unknown channel is that of a wrong signature. */
const REFUSED_BODY = JSON.stringify({
  ...{ type: 'about:blank', title: 'delivery refused', code: 'CHANNEL.REFUSED' },
  detail: 'there is no such channel, or its signature, secret or time is not right',
});
const SECOND_MS = 1_000;

interface Window {
  readonly startedAt: number;
  readonly count: number;
}

const queryOf = (query: unknown): Record<string, string> =>
  Object.fromEntries(
    Object.entries(query as Record<string, unknown>)
      .filter(([name, value]) => typeof value === 'string' && name.length <= 100)
      .slice(0, 20)
      .map(([name, value]) => [name, String(value).slice(0, 2_000)]),
  );

/** Takes deliveries of platforms to the agent service, with their bytes unread. */
@Controller()
export class WebhooksController {
  private readonly windows = new Map<string, Window>();

  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'channels'>,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRoute(CHANNEL_ROUTES.receiveDelivery)
  async receive(
    { params, upload }: RouteInput<Routes['receiveDelivery']>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const channel = this.find(params.channel);
    if (channel === undefined) return this.refuse(reply);
    this.countDelivery(channel);
    // Until all bytes are read, the connection can carry no other request.
    reply.header('connection', 'close');
    const body = await readDelivery(upload, channel.maxBodyBytes);
    reply.removeHeader('connection');
    await this.forward(channel, 'POST', body, request, reply);
  }

  @HandleRoute(CHANNEL_ROUTES.subscribeChannel)
  async subscribe(
    { params }: RouteInput<Routes['subscribeChannel']>,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    const channel = this.find(params.channel);
    if (channel === undefined) return this.refuse(reply);
    this.countDelivery(channel);
    await this.forward(channel, 'GET', Buffer.alloc(0), request, reply);
  }

  private async forward(
    { workspace, name: channel }: ChannelConfig,
    method: 'GET' | 'POST',
    body: Buffer,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const answer = await this.requests.request(receiveDelivery, {
      ...{ workspace, channel, method, headers: forwardedHeaders(request), query: queryOf(request.query) },
      body: body.toString('base64'),
    });
    await reply.status(answer.status).type(answer.contentType).send(answer.body);
  }

  private find(name: string): ChannelConfig | undefined {
    return this.config.channels.find((channel) => channel.name === name);
  }

  private refuse(reply: FastifyReply): void {
    reply.header('connection', 'close');
    void reply.status(404).type('application/problem+json').send(REFUSED_BODY);
  }

  /** Throws `CHANNEL.RATE_LIMITED` for a channel over its limit. */
  private countDelivery({ name, deliveriesPerSecond }: ChannelConfig): void {
    const now = this.clock.now();
    const known = this.windows.get(name);
    const isOpen = known !== undefined && now - known.startedAt < SECOND_MS;
    const next = isOpen ? { ...known, count: known.count + 1 } : { startedAt: now, count: 1 };
    this.windows.set(name, next);
    if (next.count <= deliveriesPerSecond) return;
    throw exhausted('CHANNEL.RATE_LIMITED', 'the channel is over its limit of deliveries', {
      data: { retryAfterSeconds: 1 },
    });
  }
}

const DEAD: DeliveryState[] = ['failed', 'unknown', 'unreadable'];

/** Forwards what operators see and change of channels to the agent service. */
@Controller()
export class ChannelsController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(CHANNEL_ROUTES.listChannels)
  list(_input: RouteInput<Routes['listChannels']>, @CurrentPrincipal() { workspace }: Principal) {
    return this.requests.request(listChannels, { workspace });
  }

  @HandleRoute(CHANNEL_ROUTES.connectChannel)
  connect(
    { params: { channel, name }, body }: RouteInput<Routes['connectChannel']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ) {
    return this.requests.request(connectChannel, { workspace, channel, name, caller, secret: body.secret });
  }

  @HandleRoute(CHANNEL_ROUTES.createPairingCode)
  pair(
    { params: { channel } }: RouteInput<Routes['createPairingCode']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ) {
    return this.requests.request(createPairingCode, { workspace, channel, caller });
  }

  @HandleRoute(CHANNEL_ROUTES.listPeers)
  peers(
    { params: { channel } }: RouteInput<Routes['listPeers']>,
    @CurrentPrincipal() { workspace }: Principal,
  ) {
    return this.requests.request(listPeers, { workspace, channel });
  }

  @HandleRoute(CHANNEL_ROUTES.changePeer)
  changePeer(
    { params: { channel, peer }, body }: RouteInput<Routes['changePeer']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ) {
    return this.requests.request(changePeer, { workspace, channel, peer, caller, action: body.action });
  }

  @HandleRoute(CHANNEL_ROUTES.listDeliveries)
  deliveries(
    { query: { state, ...page } }: RouteInput<Routes['listDeliveries']>,
    @CurrentPrincipal() { workspace }: Principal,
  ) {
    const states = state === undefined ? {} : { states: state === 'dead' ? DEAD : [state] };
    return this.requests.request(listDeliveries, { workspace, ...page, ...states });
  }

  @HandleRoute(CHANNEL_ROUTES.replayDelivery)
  replay(
    { params }: RouteInput<Routes['replayDelivery']>,
    @CurrentPrincipal() { workspace, caller }: Principal,
  ) {
    return this.requests.request(replayDelivery, { workspace, messageId: params.id, caller });
  }
}
