import { Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import type { AntiphonConfig } from '@antiphon/config';
import { AGENT_FRAME_KINDS, type AgentFrame } from '@antiphon/contracts/gateway';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { CONTENT_RIGHTS, METHODS } from '@antiphon/contracts/reference';
import { exhausted, type JsonValue } from '@antiphon/kernel';
import { CONFIG } from '@antiphon/service-host';
import { authorize, requireFeature } from '../access/access-guard.js';
import { AgentAccess } from '../access/agent-access.js';
import type { ClientConnection } from '../sockets/client-connection.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';
import { rpcError } from '../sockets/rpc-protocol.js';
import { AgentStreams } from './agent-streams.js';

/** Maximum number of agents that one connection subscribes to singly. */
const MAX_AGENTS = 100;
/** Key of the subscription to all agents. It is not the id of an agent. */
const ALL = '*';

/** Subscriptions of each connection, by agent. */
const subscriptions = new WeakMap<ClientConnection, Map<string, () => void>>();

const subscriptionsOf = (connection: ClientConnection): Map<string, () => void> => {
  const known = subscriptions.get(connection) ?? new Map<string, () => void>();
  subscriptions.set(connection, known);
  return known;
};

/** Returns true for a connection that chose frames of all agents by a subscription. */
export const isSubscribedToAll = (connection: ClientConnection): boolean =>
  subscriptions.get(connection)?.has(ALL) === true;

const RESUME = (): string => 'by agent.subscribe';

const sendFrame = (connection: ClientConnection, frame: AgentFrame): void =>
  connection.sendText(() => JSON.stringify(frame), RESUME);

type FrameKind = (typeof AGENT_FRAME_KINDS)[number];

/**
 * Returns the kinds of frames of a subscription. By default those whose content the principal may
 * read, except samples. Throws `GATEWAY.FORBIDDEN` for a named kind without its right.
 */
const kindsOf = (principal: Principal, named: readonly FrameKind[] | undefined): ReadonlySet<FrameKind> => {
  const rights = CONTENT_RIGHTS.agentFrame;
  for (const kind of named ?? []) authorize(principal, rights[kind]);
  const usual = AGENT_FRAME_KINDS.filter(
    (kind) => kind !== 'metrics' && isPermitted(principal, rights[kind]),
  );
  return new Set(named ?? usual);
};

/** Serves `agent.subscribe` and `agent.unsubscribe`. */
@WebSocketGateway()
export class AgentSubscriptionMethods {
  constructor(
    @Inject(CONFIG) private readonly config: Pick<AntiphonConfig, 'features'>,
    @Inject(AgentStreams) private readonly streams: AgentStreams,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleMethod(METHODS['agent.subscribe'])
  async subscribe(call: MethodCall<'agent.subscribe'>): Promise<undefined> {
    const { connection, id, params, workspace, requestId, principal } = call;
    await this.access.require(principal, params.agent);
    if (params.frames?.includes('memory')) requireFeature(this.config.features, 'memory_v1');
    const kinds = kindsOf(principal, params.frames);
    const key = params.agent ?? ALL;
    const own = subscriptionsOf(connection);
    if (own.size >= MAX_AGENTS && !own.has(key)) {
      const message = `this connection is subscribed to ${MAX_AGENTS} agents: subscribe to all by leaving out \`agent\``;
      throw exhausted('GATEWAY.TOO_MANY_STREAMS', message);
    }
    const end = await this.streams.subscribe(workspace, {
      agent: params.agent,
      kinds,
      onSnapshot: (snapshot) => connection.respond(id, snapshot as unknown as JsonValue),
      send: (frame) => sendFrame(connection, frame),
      waitForRoom: () => connection.waitForRoomToSend(RESUME),
      onEnd: (error) => {
        stop();
        connection.send({ type: 'error', error: rpcError(error, requestId) as unknown as JsonValue });
      },
    });
    // A repeated subscription replaces the first one.
    own.get(key)?.();
    const stop = connection.addCleanup(() => {
      if (own.get(key) === stop) own.delete(key);
      end();
    });
    own.set(key, stop);
    return undefined;
  }

  @HandleMethod(METHODS['agent.unsubscribe'])
  unsubscribe({ connection, params }: MethodCall<'agent.unsubscribe'>) {
    const stop = subscriptionsOf(connection).get(params.agent ?? ALL);
    stop?.();
    return { unsubscribed: stop !== undefined };
  }
}
