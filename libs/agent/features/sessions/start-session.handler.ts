import { newSession, sessionStream } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { SessionCommand } from '@antiphon/agent-domain';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore, IdempotencyClaim, NewEvent } from '@antiphon/event-store';
import { isAppError, isoTime } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { eventMetadata } from '../event-envelope.js';
import { digestOf } from '../derived-ids.js';
import type { SessionRegistry } from './session-registry.js';
import type { SessionLog } from './session-log.js';
import { bindKey, keyOf, readBinding, requireAgent } from './session-keys.js';

export type StartSessionRequest = z.output<typeof newSession.request>;
export type StartSessionReply = z.output<typeof newSession.reply>;
export type StartSession = (request: StartSessionRequest) => Promise<StartSessionReply>;

export interface StartSessionDeps {
  readonly config: AntiphonConfig;
  readonly store: EventStore;
  readonly log: SessionLog;
  readonly clock: Clock;
  readonly ids: Ids;
}

/** Others may bind the same key between the look and the append. */
const MAX_ROUNDS = 20;

const claimOf = (
  request: StartSessionRequest,
  answer: StartSessionReply,
): { idempotency?: IdempotencyClaim } => {
  const { idempotencyKey: key, caller, target } = request;
  if (key === undefined) return {};
  const digest = digestOf({ target: target as JsonObject });
  return { idempotency: { scope: `${caller}/session.new`, key, digest, response: { ...answer } } };
};

/** Makes the use case behind `cmd.agent.session.new`: the key means a new session from now on, the old one stays. */
export const createStartSession = (services: StartSessionDeps, registry: SessionRegistry): StartSession => {
  const { config, store, ids, clock, log } = services;

  const addressed = async ({ workspace, target }: StartSessionRequest) => {
    if ('address' in target) return { agentId: target.address.agentId, sessionKey: keyOf(target.address) };
    const { actor } = await registry.requireSession(workspace, target.sessionId);
    const { started } = actor.fold().state;
    return { agentId: started?.agentId ?? '', sessionKey: started?.sessionKey ?? '' };
  };
  const toEvents = (command: Extract<SessionCommand, { type: 'StartSession' }>): NewEvent[] =>
    log.decider.decide(command, log.decider.initialState()).map(({ type, schemaVersion, data }) => ({
      eventId: ids.next(),
      type,
      schemaVersion,
      data: data as unknown as JsonObject,
      metadata: eventMetadata(),
    }));

  const start = async (request: StartSessionRequest): Promise<StartSessionReply> => {
    const { workspace } = request;
    const { agentId, sessionKey } = await addressed(request);
    requireAgent(config, agentId);
    const binding = await readBinding(store, workspace, sessionKey);
    const sessionId = ids.next();
    const previous = binding.sessionId === null ? {} : { previousSessionId: binding.sessionId };
    const data = { sessionId, sessionKey, agentId, ...previous };
    const answer: StartSessionReply = {
      sessionId,
      sessionKey,
      agentId,
      previousSessionId: binding.sessionId,
    };
    const events = toEvents({ type: 'StartSession', data, now: isoTime(clock) });
    const result = await store.append({
      workspace,
      streams: [
        { streamId: sessionStream(sessionId), expectedVersion: 0, events },
        bindKey(binding, sessionKey, sessionId, ids, eventMetadata()),
      ],
      ...claimOf(request, answer),
    });
    return result.outcome === 'joined' ? newSession.reply.parse(result.response) : answer;
  };

  return async (request) => {
    for (let round = 1; ; round++) {
      try {
        return await start(request);
      } catch (error) {
        if (!isAppError(error) || error.code !== 'LOG.VERSION_CONFLICT' || round === MAX_ROUNDS) throw error;
      }
    }
  };
};
