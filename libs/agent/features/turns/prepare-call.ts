import { buildPrompt } from '@antiphon/agent-domain';
import type { ModelPrompt, OpenCall, SessionState } from '@antiphon/agent-domain';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import type { JsonObject } from '@antiphon/kernel';
import { reserveCall } from './reserve-budget.js';
import type { Reservation, ReserveDeps } from './reserve-budget.js';
import { Stopped, untilAnswered } from './stop.js';
import type { TurnContext } from './turn-context.js';

/** What a model call goes out with: what is asked, and what it may spend. */
export interface PreparedCall {
  readonly prompt: ModelPrompt;
  readonly reservation: Reservation;
}

export interface PrepareDeps extends ReserveDeps {
  readonly config: AntiphonConfig;
}

/** A started model call, in the session as it is with it. */
export interface CallToPrepare {
  readonly services: PrepareDeps;
  readonly workspace: string;
  readonly agent: AgentConfig | null;
  readonly state: SessionState;
  readonly call: OpenCall;
  readonly context: () => Promise<TurnContext>;
  /** Of the lease that the session is driven under just now; null when this process has none. */
  readonly epoch: () => number | null;
  /** Aborted, with a `StopReason`, when nobody waits for it any more. */
  readonly signal: AbortSignal;
}

const promptFor = async ({
  services,
  agent,
  state,
  call,
  context,
  signal,
}: CallToPrepare): Promise<ModelPrompt> => {
  const { remembered, tools } = await untilAnswered(context, signal, services.logger);
  if (!state.open) throw new Stopped('lost');
  return buildPrompt(state, state.open, {
    choice: call,
    systemPrompt: agent?.systemPrompt ?? null,
    remembered,
    tools: tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      inputSchema: inputSchema as JsonObject,
    })),
    window: services.config.memory.episodicWindow,
    contextTokens: services.config.memory.contextTokens,
  });
};

/** Assembles the prompt of a model call and reserves its bound; `onPrompt` runs in between. */
export const prepareModelCall = async (
  to: CallToPrepare,
  onPrompt: () => Promise<void>,
): Promise<PreparedCall> => {
  const prompt = await promptFor(to);
  await onPrompt();
  return { prompt, reservation: await reserveCall(to, prompt) };
};
