import { assembleContext } from '@antiphon/contracts/memory';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { buildPrompt } from '@antiphon/conversation-domain';
import type { MemoryContext, OpenCall, SessionState } from '@antiphon/conversation-domain';
import type { ModelPrompt } from '@antiphon/providers-domain';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { requestWithRetry } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import { recordTurnStage } from '@antiphon/observability';
import type { z } from 'zod';
import type { DirectoryAgent } from '@antiphon/agents-features';
import type { SessionActor } from '../sessions/session-actor.js';
import type { UpcomingTurn } from '../sessions/local-session.js';
import type { ReservedInCommit } from '../sessions/session-stream.js';
import { retryTransient } from '../sessions/retry-transient.js';
import { Stopped } from '../sessions/stopped.js';
import type { CallBudget, Reservation } from './reserve-budget.js';
import type { Logger } from '@antiphon/observability';
import { toReservation } from './reserve-in-commit.js';
import type { KnownParts } from './reserve-in-commit.js';
import type { ContextSizer } from './context-sizer.js';
import type { CallFiles, PreparedFiles } from './call-files.js';
import type { RoleFiles } from './role-files.js';
import { shownTools, toModelTools } from './shown-tools.js';
import type { ToolCatalog } from './tool-catalog.js';

interface MemoryDeps {
  readonly requests: RequestClient;
  readonly sizes: ContextSizer;
}

/** Memory and tools for the prompts of a turn. Requested once per turn. */
export interface TurnContext {
  readonly remembered: MemoryContext;
  readonly tools: readonly ToolDescription[];
}

/** Requests memory's part of a context. With `position`, the facts are those believed there. */
export const requestMemory = async (
  { requests, sizes }: MemoryDeps,
  { workspace, sessionId, fold }: ContextSource,
  { base, identity, provider, model }: Pick<DirectoryAgent, 'base' | 'identity' | 'provider' | 'model'>,
  { sessionKey, content }: Pick<UpcomingTurn, 'sessionKey' | 'content'>,
  position?: number,
): Promise<z.output<typeof assembleContext.reply>> => {
  const { memoryTokens } = await sizes.of(workspace, { provider, model });
  const wanted = {
    workspace,
    sessionId,
    sessionKey,
    agentId: base,
    ...(identity ? { identity } : {}),
    // The version of the session that memory must have processed.
    atLeast: fold.version,
    query: content,
    budgetTokens: memoryTokens,
    ...(position === undefined ? {} : { position }),
  };
  return requestWithRetry((options) => requests.request(assembleContext, wanted, options));
};

/** Returns memory's part as a prompt uses it. */
export const toRemembered = ({ soul, facts }: z.output<typeof assembleContext.reply>): MemoryContext => ({
  soul: soul?.text ?? null,
  facts,
});

type ContextSource = Pick<SessionActor, 'workspace' | 'sessionId'> & {
  readonly fold: { readonly version: number };
};

export interface PrepareDeps extends MemoryDeps {
  readonly config: AntiphonConfig;
  readonly tools: ToolCatalog;
  readonly roles: Pick<RoleFiles, 'read'>;
  readonly files: CallFiles;
  readonly budget: CallBudget;
  readonly logger: Logger;
}

/** A model call that is ready to be sent: its prompt, and the budget that is reserved for it. */
export interface PreparedCall {
  readonly prompt: ModelPrompt;
  readonly reservation: Reservation;
}

/** A started model call, in the state that the session has with it. */
export interface CallToPrepare {
  readonly workspace: string;
  readonly agent: AgentConfig | null;
  readonly state: SessionState;
  readonly call: OpenCall;
  readonly context: () => Promise<TurnContext>;
  /** Returns the epoch of the session's lease now; null when this process does not hold it. */
  readonly epoch: () => number | null;
  /** Aborted, with `Stopped` as its reason, when the call is no longer needed. */
  readonly signal: AbortSignal;
  /** Reservation that the commit of the call's start may make. It rejects if the call is not begun. */
  readonly reserved?: Promise<ReservedInCommit | null> | undefined;
  /** Receives the parts of the prompt. */
  readonly onParts?: (state: SessionState, parts: KnownParts) => void;
  /** Receives by how many tokens the prompt exceeds the reservation of the commit, if it does. */
  readonly onTooSmall?: (missing: number) => void;
}

/** Returns the prompt of the open turn's role, or the configured one. */
const systemPromptOf = async (
  { roles, logger }: PrepareDeps,
  { workspace, agent, state, signal }: CallToPrepare,
): Promise<string | null> => {
  const role = state.open?.role;
  if (!role) return agent?.systemPrompt ?? null;
  return retryTransient(() => roles.read(workspace, role), signal, logger);
};

/** Returns the parts of the prompt that files are. */
const prepareFiles = async (
  { sizes, files }: PrepareDeps,
  { workspace, state, agent, call: choice }: CallToPrepare,
): Promise<PreparedFiles> => {
  const { contextTokens } = await sizes.of(workspace, choice);
  const canRead = agent?.tools.includes('read') ?? false;
  return files.prepare({ workspace, state, choice, contextTokens, canRead });
};

const promptFor = async (deps: PrepareDeps, prepared: CallToPrepare): Promise<ModelPrompt> => {
  const { config, logger } = deps;
  const { state, call, context, signal } = prepared;
  const [{ remembered, tools }, systemPrompt, { attached, attachedMedia, fileTexts }] = await Promise.all([
    retryTransient(context, signal, logger),
    systemPromptOf(deps, prepared),
    retryTransient(() => prepareFiles(deps, prepared), signal, logger),
  ]);
  if (!state.open) throw new Stopped('lost');
  const { contextTokens } = await deps.sizes.of(prepared.workspace, call);
  const parts: KnownParts = {
    systemPrompt,
    remembered,
    ...{ attached, attachedMedia, fileTexts },
    tools: toModelTools(shownTools(tools, state)),
    toolsOf: (later) => toModelTools(shownTools(tools, later)),
    window: config.memory.episodicWindow,
    contextTokens,
  };
  prepared.onParts?.(state, parts);
  const { toolsOf: _, ...known } = parts;
  return buildPrompt(state, state.open, { ...known, choice: call });
};

/** Prepares model calls: the context of their turn, their prompt and their budget. */
export class CallPreparer {
  constructor(private readonly deps: PrepareDeps) {}

  /** Requests the context of a turn: memory and the list of tools, concurrently. */
  async requestContext(
    source: ContextSource,
    agent: DirectoryAgent,
    turn: UpcomingTurn,
  ): Promise<TurnContext> {
    const { deps } = this;
    const askedAt = performance.now();
    const [reply, tools] = await Promise.all([
      requestMemory(deps, source, agent, turn),
      deps.tools.toolsOf(source.workspace, agent.tools),
    ]);
    recordTurnStage('context_received', askedAt);
    return { remembered: toRemembered(reply), tools };
  }

  /** Builds the prompt of a model call and reserves its budget. `onPrompt` runs between the two. */
  async prepare(call: CallToPrepare, onPrompt: () => Promise<void>): Promise<PreparedCall> {
    await this.deps.budget.openProvider(call.workspace, call.call.provider);
    const prompt = await promptFor(this.deps, call);
    await onPrompt();
    const askedAt = performance.now();
    const reservation = await this.reserve(call, prompt);
    recordTurnStage('budget_reserved', askedAt);
    // The bytes of files are read last: a refused call does not need them.
    const { logger, files, sizes } = this.deps;
    const { mediaTokens } = await sizes.of(call.workspace, call.call);
    const fill = (): Promise<ModelPrompt> => files.fill(call.workspace, prompt, mediaTokens);
    return { prompt: await retryTransient(fill, call.signal, logger), reservation };
  }

  /** Returns the reservation of the commit if the prompt is within it; else requests one. */
  private async reserve(call: CallToPrepare, prompt: ModelPrompt): Promise<Reservation> {
    const { budget } = this.deps;
    const reserved = await call.reserved;
    if (!reserved) return budget.reserve(call, prompt);
    const bound = budget.inputBound(prompt, call.workspace);
    if (bound > reserved.inputBound) call.onTooSmall?.(bound - reserved.inputBound);
    return toReservation(reserved, bound) ?? budget.reserve(call, prompt);
  }
}
