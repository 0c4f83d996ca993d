import { forkSession, sessionKeyOf, sessionStream } from '@antiphon/contracts/agent';
import type { BelievedFact } from '@antiphon/contracts/agent';
import { believedFacts } from '@antiphon/contracts/memory';
import type { z } from 'zod';
import { toRecalled } from '@antiphon/agent-domain';
import type { SessionCommand } from '@antiphon/agent-domain';
import type { AgentConfig } from '@antiphon/config';
import type { IdempotencyClaim } from '@antiphon/event-store';
import { isoTime, notFound, rejected } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import type { RequestClient } from '@antiphon/messaging';
import { eventMetadata } from '../event-envelope.js';
import { toNewEvents } from './session-events.js';
import { digestOf } from '../derived-ids.js';
import type { SessionRegistry } from './session-registry.js';
import { emptyFold } from './session-fold.js';
import type { StartSessionDeps } from './start-session.handler.js';
import { bindKey, readBinding, requireAgent } from './session-keys.js';
import { chooseCut, foldAt, scanOrigin } from './fork-origin.js';
import type { CutAt, Origin } from './fork-origin.js';

export type ForkSessionRequest = z.output<typeof forkSession.request>;
export type ForkSessionReply = z.output<typeof forkSession.reply>;
export type ForkSession = (request: ForkSessionRequest) => Promise<ForkSessionReply>;

export interface ForkSessionDeps extends StartSessionDeps {
  readonly requests: RequestClient;
}

type Remade = ForkSessionReply['remakes'][number] & { readonly content: string };

const claimOf = (
  { idempotencyKey: key, caller, workspace: _, ...asked }: ForkSessionRequest,
  answer: ForkSessionReply,
): { idempotency?: IdempotencyClaim } =>
  key === undefined
    ? {}
    : {
        idempotency: {
          ...{ scope: `${caller}/session.fork`, key, digest: digestOf(asked as JsonObject) },
          response: answer as unknown as JsonObject,
        },
      };

const noProvider = (name: string): Error =>
  notFound('PROVIDER.NOT_FOUND', `there is no provider "${name}". What to do: name one of antiphon.toml`);

/** The model that is asked for instead of the agent's own; a model without a provider is the agent's provider's. */
const choiceOf = (
  { config }: ForkSessionDeps,
  { provider, model }: ForkSessionRequest,
  agent: AgentConfig,
): { choice?: { provider: string; model: string } } => {
  if (provider === undefined && model === undefined) return {};
  const name = provider ?? agent.provider;
  const known = [...config.providers.map((configured) => configured.name), agent.provider];
  if (!known.includes(name)) throw noProvider(name);
  if (model === undefined && name !== agent.provider)
    throw rejected('SESSION.NO_MODEL', `say which model of provider "${name}"`);
  return { choice: { provider: name, model: model ?? agent.model } };
};

/** The turns behind the cut that are made again. Throws `WHATIF.NO_TURN`. */
const remadeOf = (
  { ids }: ForkSessionDeps,
  { turns }: Origin,
  version: number,
  { whatIf }: ForkSessionRequest,
): Remade[] => {
  if (!whatIf) return [];
  const after = turns.filter((turn) => turn.version > version).slice(0, whatIf.turns);
  if (after.length === 0)
    throw rejected('WHATIF.NO_TURN', `no turn follows event ${version}. What to do: cut earlier`);
  return after.map(({ turnId: of, content }) => ({ turnId: ids.next(), of, content }));
};

const believedAt = async (
  { requests, config }: ForkSessionDeps,
  { fold, event }: CutAt,
): Promise<BelievedFact[]> => {
  if (!config.features.memoryV1 || !config.memory.semanticEnabled) return [];
  const { workspace, position } = event;
  const sessionKey = fold.state.started?.sessionKey ?? '';
  const { facts } = await requests.request(believedFacts, { workspace, sessionKey, position });
  return facts.map(({ factId: _, supersededAt: __, ...fact }) => fact);
};

/**
 * Makes the use case behind `cmd.agent.session.fork`. The origin is read and never written; what the fork takes along
 * is in its own event, so that it is whole without the origin. Throws `SESSION.NOT_FOUND`, `AGENT.NOT_FOUND`,
 * `PROVIDER.NOT_FOUND`, `SESSION.CUT_INSIDE_TURN`, `SESSION.NO_SUCH_VERSION`, `SESSION.NO_MODEL`, `WHATIF.NO_TURN`.
 */
export const createForkSession = (services: ForkSessionDeps, registry: SessionRegistry): ForkSession => {
  const { config, store, ids, clock, log } = services;

  const commandsOf = async (
    request: ForkSessionRequest,
    answer: ForkSessionReply,
    cut: CutAt,
    remade: readonly Remade[],
  ): Promise<SessionCommand[]> => {
    const now = isoTime(clock);
    const { sessionId, sessionKey, agentId, purpose, remakes } = answer;
    const origin = { ...answer.origin, hash: cut.event.hash };
    const choice = choiceOf(services, request, requireAgent(config, agentId));
    const taken = {
      recent: cut.fold.state.recent.map(toRecalled),
      facts: await believedAt(services, cut),
      ...(remakes.length > 0 ? { remakes } : {}),
    };
    return [
      { type: 'StartSession', data: { sessionId, sessionKey, agentId }, now },
      { type: 'ForkSession', data: { sessionId, origin, purpose, ...choice, ...taken }, now },
      ...remade.map(({ turnId, content }) => ({
        ...{ type: 'RequestTurn' as const, data: { turnId, content }, now },
      })),
    ];
  };

  const decide = (commands: readonly SessionCommand[]) => {
    let state = log.decider.initialState();
    return commands.flatMap((command) => {
      const events = log.decider.decide(command, state);
      state = events.reduce(log.decider.evolve, state);
      return events;
    });
  };

  /** What the fork will be: its cut, the turns that are made again, and the answer. */
  const plan = async (request: ForkSessionRequest) => {
    const { workspace, sessionId: originId, atVersion, whatIf, agent } = request;
    const origin = await scanOrigin(store, log, workspace, originId);
    const version = chooseCut(origin, atVersion, whatIf?.turns ?? 0);
    const cut = await foldAt(store, log, workspace, originId, version);
    const remade = remadeOf(services, origin, version, request);
    const sessionId = ids.next();
    const agentId = requireAgent(config, agent ?? cut.fold.state.started?.agentId ?? '').id;
    const address = { agentId, channel: 'fork', account: originId, peer: sessionId };
    const answer: ForkSessionReply = {
      ...{ sessionId, sessionKey: sessionKeyOf(address), agentId, origin: { sessionId: originId, version } },
      purpose: whatIf ? 'whatif' : 'fork',
      remakes: remade.map(({ turnId, of }) => ({ turnId, of })),
    };
    return { cut, remade, answer };
  };

  return async (request) => {
    const { workspace } = request;
    const { cut, remade, answer } = await plan(request);
    const { sessionId, sessionKey } = answer;
    const decided = decide(await commandsOf(request, answer, cut, remade));
    const events = toNewEvents(decided, emptyFold, null, ids);
    const binding = await readBinding(store, workspace, sessionKey);
    const result = await store.append({
      workspace,
      streams: [
        { streamId: sessionStream(sessionId), expectedVersion: 0, events },
        bindKey(binding, sessionKey, sessionId, ids, eventMetadata()),
      ],
      ...claimOf(request, answer),
    });
    const reply = result.outcome === 'joined' ? forkSession.reply.parse(result.response) : answer;
    // Whoever comes first drives it: this process now, or the sweep.
    if (remade.length > 0) await registry.wake(workspace, reply.sessionId);
    return reply;
  };
};
