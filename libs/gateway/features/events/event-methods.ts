import { Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import type { EventFilter } from '@antiphon/contracts/gateway';
import { decodeCursor } from '@antiphon/contracts/log';
import { METHODS } from '@antiphon/contracts/reference';
import { exhausted, invalid, isAppError } from '@antiphon/kernel';
import { countError, type Logger } from '@antiphon/observability';
import { LOGGER } from '@antiphon/service-host';
import { AgentAccess } from '../access/agent-access.js';
import { HeavyRequests } from '../admission/heavy-requests.js';
import { LOG_TAIL } from '../gateway.ports.js';
import type { ClientConnection } from '../sockets/client-connection.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';
import { EventSubscription } from './event-subscription.js';
import { checkEpoch } from './event-view.js';
import type { LogTail } from './log-tail.js';
import type { WorkspaceTail } from './workspace-tail.js';

/** Maximum number of subscriptions of one connection. */
export const MAX_SUBSCRIPTIONS = 100;
/** Value of `from` for the beginning of the log. */
const START = 'start';

/** Subscriptions of each connection, by the JSON of their request's id. */
const subscriptions = new WeakMap<ClientConnection, Map<string, () => void>>();

const subscriptionsOf = (connection: ClientConnection): Map<string, () => void> => {
  const known = subscriptions.get(connection) ?? new Map<string, () => void>();
  subscriptions.set(connection, known);
  return known;
};

const requireRoom = (connection: ClientConnection): void => {
  connection.requireStreamRoom();
  if (subscriptionsOf(connection).size < MAX_SUBSCRIPTIONS) return;
  const message = `this connection has ${MAX_SUBSCRIPTIONS} subscriptions: end one with events.unsubscribe`;
  throw exhausted('GATEWAY.TOO_MANY_STREAMS', message);
};

/** Returns the position of a cursor. Throws for one of another log. */
const positionOf = (from: string | undefined, tail: WorkspaceTail): number => {
  if (from === undefined) return tail.position;
  if (from === START) return 0;
  const position = decodeCursor(from);
  checkEpoch(from, tail.epoch);
  if (position !== undefined && position <= tail.position) return position;
  throw invalid('GATEWAY.INVALID_CURSOR', 'this cursor was not issued by this log: subscribe without one');
};

interface Opened {
  readonly tail: WorkspaceTail;
  readonly release: () => void;
  readonly after: number;
  readonly filter: EventFilter;
}

/** Serves `events.subscribe` and `events.unsubscribe`. */
@WebSocketGateway()
export class EventMethods {
  constructor(
    @Inject(LOG_TAIL) private readonly log: LogTail,
    @Inject(AgentAccess) private readonly access: AgentAccess,
    @Inject(HeavyRequests) private readonly heavy: HeavyRequests,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  @HandleMethod(METHODS['events.subscribe'])
  async subscribe(call: MethodCall<'events.subscribe'>): Promise<undefined> {
    const { connection, id, params, workspace, principal } = call;
    if (id === undefined || id === null)
      throw invalid('GATEWAY.INVALID_PARAMS', 'events.subscribe needs an id, which its frames carry');
    await this.access.require(principal, params.filter?.agent);
    requireRoom(connection);
    const { tail, release } = await this.log.open(workspace);
    try {
      // Requests are concurrent: others may have been accepted since.
      requireRoom(connection);
      const after = positionOf(params.from, tail);
      this.stream(call, { tail, release, after, filter: params.filter ?? {} });
    } catch (error) {
      release();
      throw error;
    }
    return undefined;
  }

  @HandleMethod(METHODS['events.unsubscribe'])
  unsubscribe({ connection, params }: MethodCall<'events.unsubscribe'>) {
    const end = subscriptionsOf(connection).get(JSON.stringify(params.subscription));
    end?.();
    return { unsubscribed: end !== undefined };
  }

  private stream(call: MethodCall<'events.subscribe'>, { tail, release, after, filter }: Opened): void {
    const { connection, id, requestId, principal } = call;
    const head = `{"id":${JSON.stringify(id)},"event":`;
    const resumeFrom = (): string => `events after ${subscription.cursor}`;
    const send = (event: string, json: string, cursor: string): void =>
      connection.sendText(() => `${head}"${event}","data":${json},"cursor":"${cursor}"}`, resumeFrom);
    const subscription = new EventSubscription({
      ...{ log: this.log, tail, filter, after, reader: principal },
      deliver: ({ json, cursor }) => send('log', json, cursor),
      onLive: (cursor) => send('live', '{}', cursor),
      waitForRoom: () => connection.waitForRoomToSend(resumeFrom),
      // The number of subscriptions bounds these reads.
      readPage: (read) => this.heavy.run(principal, read, { isPatient: true }),
      onRetry: (error) => countError('frame', error),
    });
    const key = JSON.stringify(id);
    const own = subscriptionsOf(connection);
    const end = connection.openStream(id, () => {
      own.delete(key);
      subscription.close();
      release();
    });
    own.set(key, end);
    send('subscribed', JSON.stringify({ head: tail.position }), tail.cursorAt(after));
    void subscription.run().catch((error: unknown) => {
      if (!isAppError(error)) this.logger.error({ err: error, requestId }, 'event subscription failed');
      end();
      connection.fail(id, error, requestId);
    });
  }
}
