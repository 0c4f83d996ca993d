import { Controller, Inject } from '@nestjs/common';
import type { Clock, Ids } from '@antiphon/kernel';
import type { AntiphonConfig } from '@antiphon/config';
import type { EventStore } from '@antiphon/event-store';
import type { SessionLog } from './session-log.js';
import { CLOCK, CONFIG, IDS, REQUESTS } from '@antiphon/service-host';
import { SESSION_LOG } from './session-log.js';
import { SessionRegistry } from './session-registry.js';
import { forkSession, sessionKeyOf, sessionStream } from '@antiphon/contracts/agent';
import type { BelievedFact } from '@antiphon/contracts/agent';
import { believedFacts } from '@antiphon/contracts/memory';
import type { z } from 'zod';
import { toRecalled } from '@antiphon/conversation-domain';
import type { SessionCommand } from '@antiphon/conversation-domain';
import { claimOf, createFactLog } from '@antiphon/event-store';
import { isoTime, rejected } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import {
  requireOwnSession,
  requireModel,
  requireProvider,
  AGENT_STORE,
  AgentDirectory,
} from '@antiphon/agents-features';
import type { DirectoryAgent } from '@antiphon/agents-features';
import { eventMetadata } from '@antiphon/agent-log';
import { toNewEvents } from './session-events.js';
import { chooseCut, foldAt, scanOrigin } from './fork-origin.js';
import type { CutAt, Origin, OriginTurn } from './fork-origin.js';
import { emptyFold } from './session-fold.js';
import { bindKey, readBinding } from './session-keys.js';

export type ForkSessionRequest = z.output<typeof forkSession.request>;
export type ForkSessionReply = z.output<typeof forkSession.reply>;

/** A turn of the origin that the fork runs again. */
type RemadeTurn = ForkSessionReply['remakes'][number] & Pick<OriginTurn, 'content' | 'files' | 'role'>;

interface ForkPlan {
  readonly cut: CutAt;
  readonly remade: readonly RemadeTurn[];
  readonly response: ForkSessionReply;
}

/**
 * Handles `cmd.agent.session.fork`. The origin is read and never written. The fork's first event
 * holds all that it takes from the origin, so that it is complete without it. Throws
 * `SESSION.NOT_FOUND`, `AGENT.NOT_FOUND`, `PROVIDER.NOT_FOUND`, `SESSION.CUT_INSIDE_TURN`,
 * `SESSION.NO_SUCH_VERSION`, `SESSION.NO_MODEL`, `WHATIF.NO_TURN`.
 */
@Controller()
export class ForkSession {
  constructor(
    @Inject(SessionRegistry) private readonly registry: SessionRegistry,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(SESSION_LOG) private readonly log: SessionLog,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(REQUESTS) private readonly requests: RequestClient,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {}

  @HandleRequest(forkSession)
  async handle(request: ForkSessionRequest): Promise<ForkSessionReply> {
    const { store, ids, registry } = this;
    const { workspace, idempotencyKey: key, caller, anyModel: _, ...requested } = request;
    const plan = await this.plan(request);
    const { sessionId, sessionKey } = plan.response;
    const decided = this.decide(await this.toCommands(request, plan));
    const events = toNewEvents(decided, emptyFold, null, ids);
    const binding = await readBinding(store, workspace, sessionKey);
    const sessions = createFactLog(store, (_workspace, id) => sessionStream(id));
    const result = await sessions.appendAt(workspace, sessionId, 0, events, {
      also: [bindKey(binding, sessionKey, sessionId, ids, eventMetadata())],
      idempotency: claimOf(`${caller}/session.fork`, key, requested, plan.response),
    });
    const reply = result.outcome === 'joined' ? forkSession.reply.parse(result.response) : plan.response;
    // If this process fails here, the sweep of abandoned sessions drives the fork.
    if (plan.remade.length > 0) await registry.claimAndWake(workspace, reply.sessionId);
    return reply;
  }

  /** Plans the fork: where it is cut, the turns that it runs again, and the response. */
  private async plan(request: ForkSessionRequest): Promise<ForkPlan> {
    const { store, log, ids, agents } = this;
    const { workspace, sessionId: originId, atVersion, whatIf, agent } = request;
    const origin = await scanOrigin(store, log, workspace, originId);
    const version = chooseCut(origin, atVersion, whatIf?.turns ?? 0);
    const cut = await foldAt(store, log, workspace, originId, version);
    const remade = this.turnsToRemake(origin, version, request);
    const sessionId = ids.next();
    const originAgent = cut.fold.state.started?.agentId ?? '';
    const agentId = (await agents.require(workspace, agent ?? originAgent)).id;
    for (const id of new Set([originAgent, agentId])) await requireOwnSession(agents, request, id);
    const address = { agentId, channel: 'fork', account: originId, peer: sessionId };
    const response: ForkSessionReply = {
      ...{ sessionId, sessionKey: sessionKeyOf(address), agentId, origin: { sessionId: originId, version } },
      purpose: whatIf ? 'whatif' : 'fork',
      remakes: remade.map(({ turnId, of }) => ({ turnId, of })),
    };
    return { cut, remade, response };
  }

  /** Returns the turns after the cut that are run again. Throws `WHATIF.NO_TURN`. */
  private turnsToRemake({ turns }: Origin, version: number, { whatIf }: ForkSessionRequest): RemadeTurn[] {
    if (!whatIf) return [];
    const after = turns.filter((turn) => turn.version > version).slice(0, whatIf.turns);
    if (after.length === 0)
      throw rejected('WHATIF.NO_TURN', `no turn follows event ${version}. What to do: cut earlier`);
    return after.map(({ turnId: of, content, files, role }) => ({
      turnId: this.ids.next(),
      ...{ of, content, files, role },
    }));
  }

  private async toCommands(
    request: ForkSessionRequest,
    { cut, remade, response }: ForkPlan,
  ): Promise<SessionCommand[]> {
    const { clock, agents } = this;
    const now = isoTime(clock);
    const { sessionId, sessionKey, agentId, purpose, remakes } = response;
    const origin = { ...response.origin, hash: cut.event.hash };
    const choice = await this.chooseModel(request, await agents.require(request.workspace, agentId));
    const taken = {
      recent: cut.fold.state.recent.map(toRecalled),
      facts: await this.readFacts(cut),
      ...(remakes.length > 0 ? { remakes } : {}),
    };
    return [
      { type: 'StartSession', data: { sessionId, sessionKey, agentId }, now },
      {
        type: 'ForkSession',
        data: { sessionId, origin, purpose, ...(choice ? { choice } : {}), ...taken },
        now,
      },
      // The same prompt as in the origin, so that only the model differs.
      ...remade.map(({ turnId, content, files, role }) => ({
        ...{ type: 'RequestTurn' as const, now },
        data: { turnId, content, files, role, caller: request.caller },
      })),
    ];
  }

  /** Chooses the requested model. A model without a provider belongs to the agent's provider. */
  private async chooseModel(
    { workspace, provider, model, anyModel = true }: ForkSessionRequest,
    agent: DirectoryAgent,
  ): Promise<{ provider: string; model: string } | undefined> {
    if (provider === undefined && model === undefined) return undefined;
    const name = provider ?? agent.provider;
    if (name !== agent.provider) await requireProvider(this.agents, workspace, name);
    if (model === undefined && name !== agent.provider)
      throw rejected('SESSION.NO_MODEL', `say which model of provider "${name}"`);
    const chosen = { provider: name, model: model ?? agent.model };
    if (!anyModel) requireModel(this.config, workspace, agent, chosen);
    return chosen;
  }

  /** Reads the facts that memory held at the cut. */
  async readFacts({ fold, event }: CutAt): Promise<BelievedFact[]> {
    const { requests, config } = this;
    if (!config.features.memoryV1 || !config.memory.semanticEnabled) return [];
    const { workspace, position } = event;
    const sessionKey = fold.state.started?.sessionKey ?? '';
    const { facts } = await requests.request(believedFacts, { workspace, sessionKey, position });
    return facts.map(({ factId: _, supersededAt: __, ...fact }) => fact);
  }

  private decide(commands: readonly SessionCommand[]) {
    const { decider } = this.log;
    let state = decider.initialState();
    return commands.flatMap((command) => {
      const events = decider.decide(command, state);
      state = events.reduce(decider.evolve, state);
      return events;
    });
  }
}
