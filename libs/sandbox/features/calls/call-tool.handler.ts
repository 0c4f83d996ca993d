import { createHash } from 'node:crypto';
import { Controller, Inject } from '@nestjs/common';
import { MAX_TOOL_OUTPUT_BYTES, callTool } from '@antiphon/contracts/sandbox';
import { failpoint, transient } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { withSpan } from '@antiphon/observability';
import type { Logger, SpanStart } from '@antiphon/observability';
import { grantedHosts, toToolOutcome, toolFailed } from '@antiphon/sandbox-domain';
import type { ToolOutcome } from '@antiphon/sandbox-domain';
import type { VettedClient } from '../http/vetted-client.js';
import { sortedGrants } from '../plugins/load-plugins.js';
import type { LoadedPlugin, PluginEntry } from '../plugins/load-plugins.js';
import { bindToCallerContext } from '../plugins/plugin-log.js';
import type { CellPool, PoolEnd } from '../pool/cell-pool.js';
import { SANDBOX } from '../sandbox.js';
import type { CallRegistry, CallToolReply, CallToolRequest } from './call-registry.js';

export interface CallToolDeps {
  readonly entries: readonly PluginEntry[];
  readonly calls: CallRegistry;
  readonly pool: Pick<CellPool, 'run'>;
  readonly http: VettedClient;
  readonly logger: Logger;
}

/** Maximum size of a tool's input, as JSON in UTF-8. */
export const MAX_TOOL_INPUT_BYTES = 1024 * 1024;
const ENTRY = 'handle_tool_call';
const CHANGED = 'the tool has changed since this call was approved; it was not run';

const fingerprintOf = (name: string, input: Buffer): string =>
  createHash('sha256').update(name).update('\0').update(input).digest('base64');

const findTool = (entries: readonly PluginEntry[], name: string): LoadedPlugin | undefined =>
  entries.find(({ plugin }) => plugin?.source.kind === 'tool' && plugin.source.name === name)?.plugin ??
  undefined;

const unknownTool = (entries: readonly PluginEntry[], name: string): ToolOutcome => {
  const refused = entries.find(({ view }) => view.name === name)?.view;
  return toolFailed(
    'TOOL.UNKNOWN',
    refused?.reason ? `the tool ${name} is ${refused.status}: ${refused.reason}` : `there is no tool ${name}`,
  );
};

/** Returns the span of a call; `name` is the name of a registered plug-in. */
const cellSpan = (name: string): SpanStart => ({
  name: 'run in cell',
  attributes: { 'gen_ai.tool.name': name },
});

/** Returns whether the tool is the one that was approved, where the call needed an approval. */
const isApproved = (tool: LoadedPlugin, approved: CallToolRequest['approved']): boolean => {
  if (approved === undefined) return true;
  const grants = sortedGrants(tool);
  return (
    approved.moduleDigest === tool.image.digest &&
    approved.grants.length === grants.length &&
    grants.every((grant, index) => grant === approved.grants[index])
  );
};

/** Returns why a tool is not run, or null. */
const findRefusal = (
  tool: LoadedPlugin,
  { approved }: CallToolRequest,
  { length }: Buffer,
): ToolOutcome | null => {
  if (!isApproved(tool, approved)) return toolFailed('TOOL.CHANGED', CHANGED);
  if (length > MAX_TOOL_INPUT_BYTES)
    return toolFailed('TOOL.DENIED', `an input of ${length} bytes, at most ${MAX_TOOL_INPUT_BYTES}`);
  return null;
};

/**
 * Returns false when the same call may run again: it did not run, or its tool is safe to repeat.
 */
const isFinal = (reply: CallToolReply, isIdempotent: boolean): boolean =>
  reply.outcome === 'completed' ||
  (reply.code !== 'TOOL.UNAVAILABLE' && !(isIdempotent && reply.code === 'TOOL.TIMEOUT'));

/**
 * Handles `cmd.sandbox.tool.call`: checks the fence, then runs each call id at most once. A failure
 * of the tool is a reply.
 */
@Controller()
export class CallTool {
  constructor(@Inject(SANDBOX) private readonly deps: CallToolDeps) {}

  /**
   * Throws `SANDBOX.FENCED` and `TOOL.CALL_ID_REUSED` (conflict), and `SANDBOX.LOST` (transient)
   * when this process stops during the call.
   */
  @HandleRequest(callTool)
  async handle(request: CallToolRequest): Promise<CallToolReply> {
    const { entries, calls } = this.deps;
    calls.checkFence(request);
    const input = Buffer.from(JSON.stringify(request.input));
    return calls.runOnce(request, fingerprintOf(request.name, input), async (signal) => {
      await failpoint('sandbox.call.taken');
      const reply = await this.run(request, input, signal);
      await failpoint('sandbox.call.returned');
      this.logReply(request, reply);
      const isIdempotent = findTool(entries, request.name)?.description.idempotent ?? false;
      return { reply, isFinal: isFinal(reply, isIdempotent) };
    });
  }

  private async run(request: CallToolRequest, input: Buffer, signal: AbortSignal): Promise<CallToolReply> {
    const { entries } = this.deps;
    const startedAt = performance.now();
    const reply = (outcome: ToolOutcome, moduleDigest = ''): CallToolReply => {
      const durationMs = performance.now() - startedAt;
      return outcome.outcome === 'completed'
        ? { ...outcome, moduleDigest, durationMs }
        : { ...outcome, durationMs };
    };
    const tool = findTool(entries, request.name);
    if (!tool) return reply(unknownTool(entries, request.name));
    const refusal = findRefusal(tool, request, input);
    if (refusal !== null) return reply(refusal);
    const end = await this.runInPool(tool, request, input, signal);
    if (end.end === 'stopped') throw transient('SANDBOX.LOST', 'the sandbox stopped during the call');
    if (end.end === 'unavailable') return reply(toolFailed('TOOL.UNAVAILABLE', end.message));
    return reply(toToolOutcome(end, MAX_TOOL_OUTPUT_BYTES), tool.image.digest);
  }

  private runInPool(
    { image, source, policy, listener }: LoadedPlugin,
    {
      workspace,
      sessionId,
      name,
      callId,
      idempotencyKey,
      timeoutMs: requestedMs = Infinity,
    }: CallToolRequest,
    input: Buffer,
    signal: AbortSignal,
  ): Promise<PoolEnd> {
    const { pool, http } = this.deps;
    const timeoutMs = Math.min(policy.timeoutMs, requestedMs);
    const grant = { plugin: name, hosts: grantedHosts(source.capabilities), timeoutMs, idempotencyKey };
    const job = {
      plugin: name,
      session: `${workspace}/${sessionId}`,
      image,
      entry: ENTRY,
      input,
      settings: { call_id: callId, idempotency_key: idempotencyKey },
      timeoutMs,
      listener: bindToCallerContext(listener),
      signal,
      http: source.http ? http.serveCall(grant) : undefined,
    };
    return withSpan(cellSpan(name), async (span) => {
      const end = await pool.run(job);
      if (end.end !== 'returned') span.fail(end.end);
      return end;
    });
  }

  private logReply({ name, callId, sessionId }: CallToolRequest, reply: CallToolReply): void {
    const { durationMs, outcome } = reply;
    const { logger } = this.deps;
    const fields = { tool: name, callId, sessionId, outcome, durationMs };
    if (outcome === 'completed') logger.debug({ ...fields, isError: reply.isError }, 'tool call completed');
    else logger.warn({ ...fields, code: reply.code, reason: reply.message }, 'tool call failed');
  }
}
