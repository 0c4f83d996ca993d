import {
  MAX_RESULT_BYTES,
  MAX_TOOL_TIMEOUT_MS,
  REMOTE_CANCEL_SUBJECT,
  runRemoteCall,
} from '@antiphon/contracts/sandbox';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import { failpoint, isAppError, sleep } from '@antiphon/kernel';
import type { Ids } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { withSpan } from '@antiphon/observability';
import type { Logger, SpanStart } from '@antiphon/observability';
import { MCP_PREFIX, completedOutcome, toolFailed } from '@antiphon/sandbox-domain';
import type { RemoteTool, ToolOutcome } from '@antiphon/sandbox-domain';
import type { HostedCall, HostedEnd, HostedTool, ToolSource } from '../calls/tool-source.js';
import type { EndpointTools } from './endpoint-tool.js';
import { takeRemoteResult } from './take-remote-result.js';
import type { EndedCall } from './take-remote-result.js';
import type { RemoteToolRegistry } from './remote-tool-registry.js';
import type { ToolVersion, ToolWorkerTable } from './tool-worker-table.js';

export interface RemoteToolSourceDeps {
  readonly registry: RemoteToolRegistry;
  readonly workers: ToolWorkerTable;
  readonly requests: RequestClient;
  readonly nats: NatsLink;
  readonly ids: Ids;
  readonly endpoints: EndpointTools;
  readonly logger: Logger;
}

/** Time from the request of a call after which no attempt begins, ms. */
const MAX_TOTAL_MS = MAX_TOOL_TIMEOUT_MS + 2_000;
/** Time for a gateway to confirm a cancel, ms. */
const CANCEL_MS = 1_000;
/** Interval of looks whether the caller of a call that waits still wants it, ms. */
const OBSTACLE_MS = 100;
const NOT_SENT = 'no program took the call; the tool was not run';
const NOT_PERMITTED = 'the caller gave the call up before it was sent to a program';

const remoteSpan = (name: string): SpanStart => ({
  name: 'run at worker',
  attributes: { 'gen_ai.tool.name': name },
});

const describe = ({ declaration, digest }: RemoteTool, workers: number): ToolDescription => {
  const { name, description, inputSchema, idempotent, timeoutMs, retry } = declaration;
  return {
    ...{ name, description, inputSchema, idempotent, timeoutMs, moduleDigest: digest, grants: [] },
    ...(retry ? { retry } : {}),
    source: 'remote' as const,
    ...(declaration.endpoint ? {} : { workers }),
  };
};

const ended = (outcome: ToolOutcome): HostedEnd => ({ end: 'outcome', outcome });

const CANCELLED = ended(toolFailed('TOOL.CANCELLED', { kind: 'tool_call_cancelled' }));

/** Source of each remote tool, which a program outside serves over the socket of a gateway. */
export class RemoteToolSource implements ToolSource {
  readonly kind = 'remote';

  constructor(private readonly deps: RemoteToolSourceDeps) {}

  async list(workspace: string): Promise<readonly ToolDescription[]> {
    const { registry, workers } = this.deps;
    const { tools } = await registry.read(workspace);
    return [...tools.values()].map((tool) =>
      describe(tool, workers.count({ workspace, name: tool.declaration.name, digest: tool.digest })),
    );
  }

  async find(workspace: string, name: string): Promise<HostedTool | undefined> {
    if (name.startsWith(MCP_PREFIX)) return undefined;
    const { registry, workers } = this.deps;
    const known = registry.kept(workspace)?.tools.get(name);
    // A version that programs serve is the newest one that this process heard of.
    const isServed = known !== undefined && workers.count({ workspace, name, digest: known.digest }) > 0;
    const tool = isServed ? known : (await registry.read(workspace)).tools.get(name);
    if (!tool) return undefined;
    const version = { workspace, name, digest: tool.digest };
    const { endpoint } = tool.declaration;
    if (endpoint)
      return {
        description: describe(tool, 0),
        run: (call) => withSpan(remoteSpan(name), () => this.deps.endpoints.run(endpoint, name, call)),
      };
    return {
      description: describe(tool, workers.count(version)),
      run: (call) => withSpan(remoteSpan(name), () => this.run(tool, version, call)),
    };
  }

  private async run(tool: RemoteTool, version: ToolVersion, call: HostedCall): Promise<HostedEnd> {
    const startedAt = performance.now();
    const first = await this.waitForGateway(tool, version, call);
    if (typeof first !== 'string') return first;
    const tried = new Set<string>();
    for (let gateway: string | undefined = first; gateway; gateway = this.choose(version, tried)) {
      const leftMs = Math.floor(MAX_TOTAL_MS - (performance.now() - startedAt));
      const timeoutMs = Math.min(call.timeoutMs, leftMs);
      if (timeoutMs <= 0) break;
      const refusal = await this.begin(call);
      if (refusal) return refusal;
      await failpoint('remote.call.permitted', () => version.name);
      const end = await this.attempt(gateway, version, call, timeoutMs);
      await failpoint('remote.call.ended', () => version.name);
      if (end.end !== 'not_sent') return this.toHostedEnd(end, version, call);
      tried.add(gateway);
    }
    return { end: 'unavailable', message: NOT_SENT };
  }

  private choose(version: ToolVersion, tried: ReadonlySet<string>): string | undefined {
    return this.deps.workers.choose(version, tried);
  }

  /** Waits for a program as the tool declares. Returns its gateway, or the end of the call. */
  private async waitForGateway(
    { declaration: { whenAbsent } }: RemoteTool,
    version: ToolVersion,
    { signal, findObstacle }: HostedCall,
  ): Promise<string | HostedEnd> {
    const none = new Set<string>();
    const waitMs = whenAbsent === 'unavailable' ? 0 : whenAbsent.waitMs;
    const until = performance.now() + waitMs;
    for (;;) {
      const gateway = this.choose(version, none);
      if (gateway !== undefined) return gateway;
      if (signal.aborted) return CANCELLED;
      const obstacle = findObstacle();
      if (obstacle !== null) return { end: 'unavailable', message: obstacle };
      const leftMs = until - performance.now();
      if (leftMs <= 0) break;
      await this.waitForChange(Math.min(leftMs, OBSTACLE_MS), signal);
    }
    return ended(toolFailed('TOOL.NO_WORKER', { kind: 'tool_without_worker', waitedMs: waitMs }));
  }

  private async waitForChange(ms: number, signal: AbortSignal): Promise<void> {
    let stop = (): void => undefined;
    const changed = new Promise<void>((resolve) => (stop = this.deps.workers.onChange(resolve)));
    await Promise.race([changed, sleep(ms, signal).catch(() => undefined)]);
    stop();
  }

  /** Asks the caller for permission. Returns the end of the call without it. */
  private async begin(call: HostedCall): Promise<HostedEnd | null> {
    try {
      await call.begin(call.signal);
      return null;
    } catch (error) {
      if (call.signal.aborted) return CANCELLED;
      if (!isAppError(error)) throw error;
      return { end: 'unavailable', message: NOT_PERMITTED };
    }
  }

  /** Makes one attempt at a gateway. A gateway that goes away loses it. */
  private async attempt(
    gateway: string,
    version: ToolVersion,
    { request, input, signal }: HostedCall,
    timeoutMs: number,
  ): Promise<EndedCall> {
    // A gateway knows no attempt yet that is cancelled before it is sent.
    if (signal.aborted) return { end: 'cancelled' };
    const attemptId = this.deps.ids.next();
    const { workspace, sessionId, callId, epoch, idempotencyKey, agentId } = request;
    const payload = {
      ...{ workspace, sessionId, callId, attemptId, epoch, idempotencyKey, timeoutMs },
      ...{ name: version.name, digest: version.digest, input: input.toString('utf8') },
      ...(agentId === undefined ? {} : { agentId }),
    };
    let endAs: (end: EndedCall) => void = () => undefined;
    const endedHere = new Promise<EndedCall>((resolve) => (endAs = resolve));
    const release = this.deps.workers.begin(gateway, () => endAs({ end: 'lost' }));
    const cancel = (): void => {
      this.cancel(attemptId);
      setTimeout(() => endAs({ end: 'cancelled' }), CANCEL_MS).unref();
    };
    signal.addEventListener('abort', cancel, { once: true });
    try {
      const options = { processId: gateway, timeoutMs: timeoutMs + 1_000 };
      const { requests } = this.deps;
      const end = requests.request(runRemoteCall, payload, options);
      const taken = end.then((one) => takeRemoteResult(requests, { gateway, attemptId }, one, signal));
      return await Promise.race([taken, endedHere]);
    } catch (error) {
      return this.afterError(error);
    } finally {
      signal.removeEventListener('abort', cancel);
      release();
    }
  }

  /** Without a responder nothing was sent. After another lost response the program may have acted. */
  private afterError(error: unknown): EndedCall {
    if (!isAppError(error)) throw error;
    if (error.code === 'MESSAGING.NO_RESPONDERS') return { end: 'not_sent', reason: 'absent' };
    if (error.kind === 'transient') return { end: 'lost' };
    throw error;
  }

  private cancel(attemptId: string): void {
    const { nats } = this.deps;
    if (nats.isConnected()) nats.connection.publish(REMOTE_CANCEL_SUBJECT, JSON.stringify({ attemptId }));
  }

  private toHostedEnd(
    end: Exclude<EndedCall, { end: 'not_sent' }>,
    { name }: ToolVersion,
    { request: { callId }, timeoutMs }: HostedCall,
  ): HostedEnd {
    switch (end.end) {
      case 'result':
        return ended(completedOutcome(end.content, end.isError, MAX_RESULT_BYTES));
      case 'too_large':
        return ended(
          toolFailed('TOOL.OUTPUT', {
            ...{ kind: 'tool_output_too_large', bytes: end.bytes, max: MAX_RESULT_BYTES },
          }),
        );
      case 'timeout':
        return ended(toolFailed('TOOL.TIMEOUT', { kind: 'tool_timeout', timeoutMs }));
      case 'cancelled':
        return CANCELLED;
      case 'lost':
        this.deps.logger.warn({ tool: name, callId }, 'worker lost during call');
        return ended(toolFailed('TOOL.WORKER_LOST', { kind: 'tool_worker_lost' }));
    }
  }
}
