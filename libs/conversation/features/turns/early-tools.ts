import { canActOutside } from '@antiphon/contracts/sandbox';
import type { SessionState, TurnToolCall } from '@antiphon/conversation-domain';
import { isNativeTool, mayCall } from '../tools/tool-schemas.js';
import { decisionOn } from '../approvals/approval-rules.js';
import type { SessionActor } from '../sessions/session-actor.js';
import type { ToolResult } from './run-tools.js';
import type { TurnPolicy } from './turn-policy.js';

/** Maximum number of calls that run early: as many as one step runs concurrently. */
const MAX_EARLY = 8;

interface EarlyCall {
  readonly controller: AbortController;
  readonly result: Promise<ToolResult>;
}

/** Native tools that only read. */
const READING: ReadonlySet<string> = new Set([
  'ls',
  'read',
  'search',
  'find_tools',
  'read_result',
  'search_result',
]);

/** Makes one attempt of a call whose request is being committed. */
type RunCall = (turnId: string, call: TurnToolCall, signal: AbortSignal) => Promise<ToolResult>;

const requestedCalls = (state: SessionState): ReadonlyMap<string, TurnToolCall> =>
  new Map(
    state.open?.steps
      .at(-1)
      ?.calls.flatMap((call) => (call.status === 'requested' ? [[call.callId, call] as const] : [])),
  );

/**
 * Runs tool calls while their requests are being committed, so that a step does not wait for the
 * commit and the tool in turn. Only tools without a capability and those that read files run
 * early: a call whose request is never committed has no effect then.
 */
export class EarlyTools {
  readonly #calls = new Map<string, EarlyCall>();

  constructor(
    private readonly policy: Pick<TurnPolicy, 'findAgent' | 'knownTool'>,
    private readonly actor: Pick<SessionActor, 'workspace'>,
    private readonly run: RunCall,
  ) {}

  /**
   * Starts the calls that an append will request. `next` is null after an append that failed, and
   * `current` is the state in the log. A call is kept for the next append, which may request it
   * again. Otherwise it is forgotten, not cancelled: the sandbox keeps the end of a call.
   */
  onAppending(next: SessionState | null, current: SessionState): void {
    if (!next) return;
    const [known, requested] = [requestedCalls(current), requestedCalls(next)];
    for (const callId of this.#calls.keys())
      if (!known.has(callId) && !requested.has(callId)) this.#calls.delete(callId);
    if (!next.open || next.open.cancelRequested || next.fork?.purpose === 'whatif') return;
    // A read next to a change of the same step waits, as both begin after the commit then.
    const onlyReads = [...requested.values()].every(({ name }) => !isNativeTool(name) || READING.has(name));
    for (const [callId, call] of requested)
      if (!known.has(callId) && !this.#calls.has(callId) && this.#mayRun(next, call, onlyReads))
        this.#start(next.open.turnId, call);
  }

  /** Returns the result of a call that ran early; null if none did, or it failed. */
  async take(callId: string, signal: AbortSignal): Promise<ToolResult | null> {
    const early = this.#calls.get(callId);
    if (!early) return null;
    this.#calls.delete(callId);
    const abort = (): void => early.controller.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const result = await early.result.catch(() => null);
    signal.removeEventListener('abort', abort);
    return result;
  }

  #mayRun(
    state: SessionState,
    { name, input, idempotent, approval, deferred }: TurnToolCall,
    onlyReads: boolean,
  ): boolean {
    const { policy, actor } = this;
    const agent = policy.findAgent(actor.workspace, state.started?.agentId);
    const description = policy.knownTool(actor.workspace, name);
    const known = policy.knownTool(actor.workspace, name);
    const hasNoEffect = isNativeTool(name)
      ? onlyReads && READING.has(name)
      : known !== undefined && !canActOutside(known);
    return (
      this.#calls.size < MAX_EARLY &&
      idempotent &&
      approval === null &&
      deferred === null &&
      hasNoEffect &&
      agent !== null &&
      mayCall(agent, name) &&
      decisionOn(agent, { tool: name, input, description }).decision === 'allow'
    );
  }

  #start(turnId: string, call: TurnToolCall): void {
    const controller = new AbortController();
    const result = this.run(turnId, call, controller.signal);
    result.catch(() => undefined); // reported to the caller of `take` only
    this.#calls.set(call.callId, { controller, result });
  }
}
