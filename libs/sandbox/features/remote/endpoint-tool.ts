import { readSecret } from '@antiphon/contracts/agent';
import { MAX_TOOL_OUTPUT_BYTES } from '@antiphon/contracts/sandbox';
import type { ToolEndpoint } from '@antiphon/contracts/sandbox';
import { failpoint, isAppError } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import type { RequestClient } from '@antiphon/messaging';
import { completedOutcome, toolFailed } from '@antiphon/sandbox-domain';
import type { ToolOutcome } from '@antiphon/sandbox-domain';
import type { HostedCall, HostedEnd } from '../calls/tool-source.js';
import { systemEgress } from '../http/fetch-page.js';
import { callEndpoint } from './call-endpoint.js';
import type { EndpointEnd } from './call-endpoint.js';

export interface EndpointToolsDeps {
  readonly requests: Pick<RequestClient, 'request'>;
  readonly ids: Ids;
  readonly clock: Clock;
  readonly config: { readonly tools: { readonly privateHosts: readonly string[] } };
}

/** States of gateways and proxies before an endpoint: it may have acted all the same. */
const LOST: ReadonlySet<number> = new Set([502, 504]);

const ended = (outcome: ToolOutcome): HostedEnd => ({ end: 'outcome', outcome });
const CANCELLED = ended(toolFailed('TOOL.CANCELLED', { kind: 'tool_call_cancelled' }));
const WORKER_LOST = ended(toolFailed('TOOL.WORKER_LOST', { kind: 'tool_worker_lost' }));

/** Reads `{ "content": …, "isError": … }`. Any other answer is the result itself. */
const resultIn = (body: string, isJson: boolean): { readonly content: string; readonly isError: boolean } => {
  const plain = { content: body, isError: false };
  if (!isJson) return plain;
  try {
    const { content, isError = false } = JSON.parse(body) as { content?: unknown; isError?: unknown };
    if (content === undefined) return plain;
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    return { content: text, isError: isError === true };
  } catch {
    return plain;
  }
};

const toHostedEnd = (end: EndpointEnd, timeoutMs: number): HostedEnd => {
  switch (end.end) {
    case 'answered': {
      const { status, isJson, body } = end;
      if (LOST.has(status)) return WORKER_LOST;
      const { content, isError } = resultIn(body, isJson);
      if (status >= 200 && status < 300)
        return ended(completedOutcome(content, isError, MAX_TOOL_OUTPUT_BYTES));
      return ended(completedOutcome(`HTTP ${status}: ${content}`.trim(), true, MAX_TOOL_OUTPUT_BYTES + 100));
    }
    case 'too_large':
      return ended(
        toolFailed('TOOL.OUTPUT', {
          ...{ kind: 'tool_output_too_large', bytes: end.bytes, max: MAX_TOOL_OUTPUT_BYTES },
        }),
      );
    case 'unreached':
      return ended(toolFailed('TOOL.NO_WORKER', { kind: 'tool_endpoint_unreached', reason: end.reason }));
    case 'timeout':
      return ended(toolFailed('TOOL.TIMEOUT', { kind: 'tool_timeout', timeoutMs }));
    case 'cancelled':
      return CANCELLED;
    case 'lost':
      return WORKER_LOST;
  }
};

/** Remote tools that are called over HTTP. */
export class EndpointTools {
  constructor(private readonly deps: EndpointToolsDeps) {}

  /**
   * Runs one call at an endpoint, with one request. The secret is read right before it. A redirect
   * is an answer with its status.
   */
  async run(
    { url, secret: secretName }: ToolEndpoint,
    name: string,
    { request, input, timeoutMs, signal, begin }: HostedCall,
  ): Promise<HostedEnd> {
    const { ids, clock, config } = this.deps;
    const { workspace, sessionId, callId, epoch, idempotencyKey, agentId } = request;
    const secret = await this.readSecret(workspace, secretName);
    if (secret === undefined)
      return { end: 'unavailable', message: 'the secret of the tool cannot be read now; it was not run' };
    if (secret === null)
      return ended(toolFailed('TOOL.NO_WORKER', { kind: 'tool_secret_missing', secret: secretName }));
    const attemptId = ids.next();
    const now = clock.now();
    const body = JSON.stringify({
      ...{
        type: 'tools.call',
        callId,
        attemptId,
        epoch,
        tool: name,
        input: JSON.parse(input.toString('utf8')),
      },
      ...{ idempotencyKey, timeoutMs, deadline: new Date(now + timeoutMs).toISOString(), sessionId },
      ...(agentId === undefined ? {} : { agentId }),
    });
    try {
      await begin(signal);
    } catch (error) {
      if (signal.aborted) return CANCELLED;
      if (!isAppError(error)) throw error;
      return { end: 'unavailable', message: 'the caller gave the call up before it was sent' };
    }
    await failpoint('remote.call.permitted', () => name);
    const timestamp = Math.floor(now / 1_000);
    const call = { url: new URL(url), secret, attemptId, idempotencyKey, body, timeoutMs, signal, timestamp };
    const end = await callEndpoint(call, {
      ...{ egress: systemEgress, privateHosts: config.tools.privateHosts, maxBytes: MAX_TOOL_OUTPUT_BYTES },
    });
    await failpoint('remote.call.ended', () => name);
    return toHostedEnd(end, timeoutMs);
  }

  /** Returns the secret, null if there is none, and undefined if it cannot be read now. */
  private async readSecret(workspace: string, name: string): Promise<string | null | undefined> {
    try {
      return (await this.deps.requests.request(readSecret, { workspace, name })).secret;
    } catch (error) {
      if (isAppError(error)) return undefined;
      throw error;
    }
  }
}
