import { createHash } from 'node:crypto';
import type { z } from 'zod';
import { MAX_TOOL_OUTPUT_BYTES } from '@antiphon/contracts/sandbox';
import type { ToolCancel, callTool, findCall } from '@antiphon/contracts/sandbox';
import { failpoint, transient } from '@antiphon/kernel';
import { failed, grantedHosts, outcomeOf } from '@antiphon/sandbox-domain';
import type { ToolOutcome } from '@antiphon/sandbox-domain';
import { withSpan } from '@antiphon/observability';
import type { Logger, SpanStart } from '@antiphon/observability';
import type { ServeHttp } from '../cell/exchange.js';
import type { VettedClient } from '../http/vetted-client.js';
import { grantsOf } from '../plugins/load-plugins.js';
import type { LoadedPlugin, PluginEntry } from '../plugins/load-plugins.js';
import type { PluginSource } from '../plugins/plugin-source.js';
import { inCallersContext } from '../plugins/plugin-log.js';
import type { CellPool } from '../pool/cell-pool.js';
import { createRememberedCalls } from './remembered-calls.js';
import { createSessionFence } from './session-fence.js';

export type CallToolRequest = z.output<typeof callTool.request>;
export type CallToolReply = z.input<typeof callTool.reply>;
export type FindCallRequest = z.output<typeof findCall.request>;
export type FoundCall = z.input<typeof findCall.reply>;

export interface CallTool {
  /**
   * Throws `SANDBOX.FENCED` and `TOOL.CALL_ID_REUSED` (conflict), and `SANDBOX.LOST` (transient) when this process
   * stops meanwhile; how a tool fails is a reply.
   */
  readonly call: (request: CallToolRequest) => Promise<CallToolReply>;
  /** Where a call is; null: not here. */
  readonly find: (request: FindCallRequest) => Promise<FoundCall | null>;
  /** Ends a call that is waiting or running here, as `TOOL.CANCELLED`; anything else is left alone. */
  readonly cancel: (cancel: ToolCancel) => void;
}

export interface CallToolOptions {
  readonly entries: readonly PluginEntry[];
  readonly pool: Pick<CellPool, 'run'>;
  readonly http: VettedClient;
  readonly logger: Logger;
}

/** The most that a tool may be given, as JSON in UTF-8. */
export const MAX_TOOL_INPUT_BYTES = 1024 * 1024;
const MAX_REMEMBERED_CALLS = 2_000;
const MAX_REMEMBERED_BYTES = 32 * 1024 * 1024;
const ENTRY = 'handle_tool_call';
const CHANGED = 'the tool has changed since this call was approved; it was not run';

const callKey = ({ workspace, callId }: Pick<CallToolRequest, 'workspace' | 'callId'>): string =>
  `${workspace}/${callId}`;

const fingerprintOf = (name: string, input: Buffer): string =>
  createHash('sha256').update(name).update('\0').update(input).digest('base64');

const findTool = (entries: readonly PluginEntry[], name: string) =>
  entries.find(({ plugin }) => plugin?.source.kind === 'tool' && plugin.source.name === name)?.plugin;

const unknownTool = (entries: readonly PluginEntry[], name: string): ToolOutcome => {
  const refused = entries.find(({ view }) => view.name === name)?.view;
  return failed(
    'TOOL.UNKNOWN',
    refused?.reason ? `the tool ${name} is ${refused.status}: ${refused.reason}` : `there is no tool ${name}`,
  );
};

/** `name`: of a plug-in that is registered. */
const cellSpan = (name: string): SpanStart => ({
  name: 'run in cell',
  attributes: { 'gen_ai.tool.name': name },
});

const httpFor = (
  client: VettedClient,
  { http, name, capabilities }: PluginSource,
  { timeoutMs, idempotencyKey }: { readonly timeoutMs: number; readonly idempotencyKey: string },
): ServeHttp | null =>
  http
    ? client.forCall({ plugin: name, hosts: grantedHosts(capabilities), timeoutMs, idempotencyKey })
    : null;

/** Whether this is what somebody agreed to, where somebody had to. */
const isApproved = (tool: LoadedPlugin, approved: CallToolRequest['approved']): boolean =>
  approved === undefined ||
  (approved.moduleDigest === tool.image.digest &&
    approved.grants.length === grantsOf(tool).length &&
    grantsOf(tool).every((grant, index) => grant === approved.grants[index]));

const tooLarge = ({ length }: Buffer): ToolOutcome =>
  failed('TOOL.DENIED', `an input of ${length} bytes, at most ${MAX_TOOL_INPUT_BYTES}`);

const createRun =
  ({ entries, pool, http: client }: CallToolOptions) =>
  async (
    {
      workspace,
      sessionId,
      name,
      callId,
      idempotencyKey,
      approved,
      timeoutMs: wanted = Infinity,
    }: CallToolRequest,
    input: Buffer,
    signal: AbortSignal,
  ): Promise<CallToolReply> => {
    const started = performance.now();
    const answer = (outcome: ToolOutcome, moduleDigest = ''): CallToolReply => {
      const durationMs = performance.now() - started;
      return outcome.outcome === 'completed'
        ? { ...outcome, moduleDigest, durationMs }
        : { ...outcome, durationMs };
    };
    const tool = findTool(entries, name);
    if (!tool) return answer(unknownTool(entries, name));
    if (!isApproved(tool, approved)) return answer(failed('TOOL.CHANGED', CHANGED));
    if (input.length > MAX_TOOL_INPUT_BYTES) return answer(tooLarge(input));
    const { image, source } = tool;
    const timeoutMs = Math.min(tool.policy.timeoutMs, wanted);
    const listener = inCallersContext(tool.listener);
    const http = httpFor(client, source, { timeoutMs, idempotencyKey });
    const settings = { call_id: callId, idempotency_key: idempotencyKey };
    const session = `${workspace}/${sessionId}`;
    const job = { plugin: name, session, image, entry: ENTRY, input, settings, timeoutMs, listener, signal };
    const end = await withSpan(cellSpan(name), async (span) => {
      const ended = await pool.run(http ? { ...job, http } : job);
      if (ended.end !== 'returned') span.fail(ended.end);
      return ended;
    });
    if (end.end === 'stopped') throw transient('SANDBOX.LOST', 'the sandbox stopped during the call');
    if (end.end === 'unavailable') return answer(failed('TOOL.UNAVAILABLE', end.message));
    return answer(outcomeOf(end, MAX_TOOL_OUTPUT_BYTES), image.digest);
  };

const logReply = (
  logger: Logger,
  { name, callId, sessionId }: CallToolRequest,
  reply: CallToolReply,
): void => {
  const { durationMs, outcome } = reply;
  const fields = { tool: name, callId, sessionId, outcome, durationMs };
  if (outcome === 'completed') logger.debug({ ...fields, isError: reply.isError }, 'a tool call completed');
  else logger.warn({ ...fields, code: reply.code, reason: reply.message }, 'a tool call failed');
};

/** A reply, and whether the same call again is answered with it, or is run: where nothing was, or where that does no harm. */
interface Answer {
  readonly reply: CallToolReply;
  readonly keep: boolean;
}

const isFinal = (reply: CallToolReply, mayRepeat: boolean): boolean =>
  reply.outcome === 'completed' ||
  (reply.code !== 'TOOL.UNAVAILABLE' && !(mayRepeat && reply.code === 'TOOL.TIMEOUT'));

/** Makes the use case behind `cmd.sandbox.tool.call`: fence first, then at most one run for each call id. */
export const createCallTool = (options: CallToolOptions): CallTool => {
  const run = createRun(options);
  const fence = createSessionFence();
  const running = new Map<string, AbortController>();
  const calls = createRememberedCalls<Answer>({
    maxCalls: MAX_REMEMBERED_CALLS,
    maxBytes: MAX_REMEMBERED_BYTES,
    sizeOf: ({ reply }) => (reply.outcome === 'completed' ? reply.content : reply.message).length,
    keep: ({ keep }) => keep,
  });
  const runCancellable = async (key: string, request: CallToolRequest, input: Buffer): Promise<Answer> => {
    const controller = new AbortController();
    running.set(key, controller);
    await failpoint('sandbox.call.taken');
    const reply = await run(request, input, controller.signal).finally(() => running.delete(key));
    await failpoint('sandbox.call.returned');
    logReply(options.logger, request, reply);
    const mayRepeat = findTool(options.entries, request.name)?.description.idempotent ?? false;
    return { reply, keep: isFinal(reply, mayRepeat) };
  };
  return {
    call: async (request) => {
      const { workspace, sessionId, epoch, name } = request;
      fence.check(workspace, sessionId, epoch);
      const input = Buffer.from(JSON.stringify(request.input));
      const key = callKey(request);
      const run = () => runCancellable(key, request, input);
      return (await calls.once(key, fingerprintOf(name, input), run)).reply;
    },
    find: async (request) => {
      const known = calls.find(callKey(request));
      if (!known?.ended) return known && { state: 'running' };
      return { state: 'ended', reply: (await known.answer).reply };
    },
    cancel: ({ workspace, sessionId, callId, epoch }) => {
      fence.check(workspace, sessionId, epoch);
      running.get(callKey({ workspace, callId }))?.abort();
    },
  };
};
