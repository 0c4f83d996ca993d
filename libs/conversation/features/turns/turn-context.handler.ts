import { createHash } from 'node:crypto';
import type { RequestClient } from '@antiphon/messaging';
import { REQUESTS } from '@antiphon/service-host';
import { RoleFiles } from './role-files.js';
import { ToolCatalog } from './tool-catalog.js';
import { SESSION_LOG } from '../sessions/session-log.js';
import { AGENT_STORE, AgentDirectory } from '@antiphon/agents-features';
import { Controller, Inject } from '@nestjs/common';
import { buildPrompt, explainPrompt } from '@antiphon/conversation-domain';
import type { ExplainedPrompt, PromptParts } from '@antiphon/conversation-domain';
import type { ModelPrompt } from '@antiphon/providers-domain';
import { MAX_CONTEXT_TURNS, readTurnContext } from '@antiphon/contracts/agent';
import type { TurnContextView } from '@antiphon/contracts/agent';
import type { EventStore } from '@antiphon/event-store';
import { requirePosition } from '@antiphon/event-store';
import { isAppError, notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import type { DirectoryAgent } from '@antiphon/agents-features';
import type { SessionLog } from '../sessions/session-log.js';
import { findCall } from './find-call.js';
import type { FoundCall } from './find-call.js';
import { requestMemory, toRemembered } from './prepare-call.js';
import { shownTools, toModelTools } from './shown-tools.js';
import { CallFiles } from './call-files.js';
import { ContextSizer } from './context-sizer.js';
import type { PreparedFiles } from './call-files.js';

type Request = z.output<typeof readTurnContext.request>;
type Reply = z.input<typeof readTurnContext.reply>;
type Remembered = Awaited<ReturnType<typeof requestMemory>>;

/** Codes of bytes that are gone. */
const GONE: ReadonlySet<string> = new Set(['FILE.ERASED', 'FILE.NO_BYTES']);

/** A context that was built again. */
interface Rebuilt {
  readonly found: FoundCall;
  readonly remembered: Remembered;
  readonly systemPrompt: string | null;
  readonly files: PreparedFiles;
  readonly contextTokens: number;
  readonly prompt: ModelPrompt;
  readonly explained: ExplainedPrompt;
}

/** Returns the hash of a prompt. */
const hashOf = ({ system, messages, tools }: ModelPrompt): string =>
  createHash('sha256').update(JSON.stringify({ system, messages, tools })).digest('hex');

const toInstructions = ({ found, systemPrompt, explained }: Rebuilt): TurnContextView['instructions'] => {
  const { role } = found.turn;
  const source = role ? 'role_file' : systemPrompt === null ? 'none' : 'configuration';
  return {
    ...{ source, path: role?.path ?? null, digest: role?.digest ?? null },
    ...{ isErased: role !== undefined && systemPrompt === null, tokens: explained.instructionTokens },
  };
};

/** Position before the request of the turn: the context is requested with it. */
const memoryPosition = ({ requested, turn }: FoundCall): number => (requested.get(turn.turnId) ?? 1) - 1;

const toMemory = ({ found, remembered, explained }: Rebuilt): TurnContextView['memory'] => ({
  tokens: explained.memoryTokens,
  position: memoryPosition(found),
  facts: remembered.facts.map(({ factId, subject, predicate, object, learnedAt, sourceEventId }, index) => ({
    ...{ memoryId: factId, subject, predicate, object, learnedAt, eventId: sourceEventId },
    tokens: explained.factTokens[index] ?? 0,
  })),
  leftOut: remembered.leftOut ?? 0,
});

const toFiles = ({ found, files: { views } }: Rebuilt): TurnContextView['files'] =>
  views.map(({ file, isAttached, ...view }) => ({
    ...{ path: file.path, digest: file.digest, size: file.size, ...view },
    position: isAttached
      ? (found.attached.get(file.path) ?? null)
      : (found.requested.get(found.turn.turnId) ?? null),
  }));

const toCall = ({ call, position }: FoundCall): TurnContextView['call'] => {
  const { attempt, step, tryNumber, provider, model } = call;
  return { attempt, step, tryNumber, provider, model, position };
};

/** Describes the contexts of model calls, built again from the facts. */
@Controller()
export class ReadTurnContext {
  constructor(
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(SESSION_LOG) private readonly log: SessionLog,
    @Inject(ToolCatalog) private readonly tools: ToolCatalog,
    @Inject(RoleFiles) private readonly roles: RoleFiles,
    @Inject(CallFiles) private readonly files: CallFiles,
    @Inject(ContextSizer) readonly sizes: ContextSizer,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(REQUESTS) readonly requests: RequestClient,
  ) {}

  @HandleRequest(readTurnContext)
  async handle(request: Request): Promise<Reply> {
    const { workspace, sessionId, turnId, attempt, at, includesMemory, callerAgent } = request;
    const { store, log } = this;
    const head = await store.headPosition();
    const upTo = requirePosition(at, head);
    const found = await findCall(store, log, { workspace, sessionId, turnId, attempt, upTo });
    const agentId = found.state.started?.agentId ?? '';
    const rebuilt = await this.#rebuild(request, found, agentId);
    const seesMemory = includesMemory && (callerAgent === undefined || callerAgent === agentId);
    return {
      ...{ sessionId, turnId, agentId },
      ...this.#describe(rebuilt, seesMemory),
      ...(at === undefined ? {} : { position: upTo, head }),
    };
  }

  async #rebuild({ workspace, sessionId }: Request, found: FoundCall, agentId: string): Promise<Rebuilt> {
    const { state, turn, version } = found;
    const agent = await this.agents.load(workspace, agentId);
    if (!agent) throw notFound('AGENT.NOT_FOUND', `there is no agent ${agentId}`);
    const upcoming = { sessionKey: state.started?.sessionKey ?? '', content: turn.content };
    const source = { workspace, sessionId, fold: { version } };
    const { window } = this.sizes;
    const { contextTokens } = await this.sizes.of(workspace, found.call);
    const canRead = agent.tools.includes('read');
    const [remembered, tools, systemPrompt, files] = await Promise.all([
      requestMemory(this, source, agent, upcoming, memoryPosition(found)),
      this.tools.toolsOf(workspace, agent.tools),
      this.#instructions(workspace, found, agent),
      this.files.describe({ workspace, state, choice: found.call, contextTokens, canRead }),
    ]);
    const { attached, attachedMedia, fileTexts } = files;
    const parts: PromptParts = {
      ...{ choice: found.call, systemPrompt, remembered: toRemembered(remembered), window, contextTokens },
      ...{ tools: toModelTools(shownTools(tools, state)), attached, attachedMedia, fileTexts },
    };
    return {
      ...{ found, remembered, systemPrompt, files, contextTokens },
      prompt: buildPrompt(state, turn, parts),
      explained: explainPrompt(state, turn, parts, found.earlier),
    };
  }

  /** Returns the instructions of a turn; null for none, and for a role file whose bytes are gone. */
  async #instructions(
    workspace: string,
    { turn: { role } }: FoundCall,
    { systemPrompt }: DirectoryAgent,
  ): Promise<string | null> {
    if (!role) return systemPrompt;
    try {
      return await this.roles.read(workspace, role);
    } catch (error) {
      if (isAppError(error) && GONE.has(error.code)) return null;
      throw error;
    }
  }

  #describe(
    rebuilt: Rebuilt,
    seesMemory: boolean,
  ): Omit<TurnContextView, 'sessionId' | 'turnId' | 'agentId'> {
    const { found, explained, prompt, remembered } = rebuilt;
    const { requested, turn, attempts, hasDeleted } = found;
    const { window } = this.sizes;
    const { contextTokens } = rebuilt;
    const instructions = toInstructions(rebuilt);
    return {
      call: toCall(found),
      attempts: [...attempts],
      ...{ limitTokens: contextTokens, window, tokens: explained.tokens },
      promptHash: hasDeleted || instructions.isErased ? null : hashOf(prompt),
      instructions,
      identity: remembered.soul ? { tokens: explained.identityTokens } : null,
      memory: seesMemory ? toMemory(rebuilt) : null,
      files: toFiles(rebuilt),
      turns: explained.turns.slice(0, MAX_CONTEXT_TURNS).map((earlier) => ({
        ...earlier,
        position: requested.get(earlier.turnId) ?? null,
      })),
      earlierTurns: explained.turns.length,
      message: {
        tokens: explained.messageTokens,
        received: turn.received.reduce((sum, { messages }) => sum + messages.length, 0),
        position: requested.get(turn.turnId) ?? 1,
      },
      results: [...explained.results],
      tools: [...explained.tools],
    };
  }
}
