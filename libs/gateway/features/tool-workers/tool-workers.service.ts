import { Controller, Inject, Injectable } from '@nestjs/common';
import type { OnApplicationBootstrap } from '@nestjs/common';
import type { Subscription } from '@nats-io/transport-node';
import { TOOL_PROGRESS_SUBJECT } from '@antiphon/contracts/agent';
import type { ToolProgress } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import {
  REMOTE_CANCEL_SUBJECT,
  RemoteCancel,
  TOOL_WORKERS_ASK_SUBJECT,
  TOOL_WORKERS_BEAT_MS,
  TOOL_WORKERS_SUBJECT,
  readRemoteResult,
  registerRemoteTools,
  releaseRemoteResult,
  runRemoteCall,
} from '@antiphon/contracts/sandbox';
import type { RemoteCallEnd, ToolWorkersHint } from '@antiphon/contracts/sandbox';
import { notFound, sleep } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { contextFrom, runWithContext } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { LOGGER, NATS, REQUESTS, SERVICE_IDENTITY } from '@antiphon/service-host';
import type { ServiceIdentity } from '@antiphon/service-host';
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import { authorize } from '../access/access-guard.js';
import type { RateLimits } from '../access/rate-limits.js';
import { ToolWorkers } from './tool-workers.js';
import type { RemoteCallRequest } from './tool-workers.js';
import type { WorkerConnection } from './worker-connection.port.js';
import { WorkerSession } from './worker-session.js';

/** Close code for a client without the permission. */
const CLOSE_FORBIDDEN = 4403;
/** Time for running calls at the end of this process, ms. */
const DRAIN_MS = 5_000;
const DRAIN_POLL_MS = 50;

/** Sockets of programs that serve tools, and what the sandbox processes know of them. */
@Injectable()
export class ToolWorkerSockets implements OnApplicationBootstrap {
  readonly workers = new ToolWorkers((workspace) => this.publishChange(workspace));
  private revision = 0;
  private isStopping = false;
  private timer: NodeJS.Timeout | null = null;
  private subscriptions: readonly Subscription[] = [];

  constructor(
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(REQUESTS) private readonly requests: RequestClient,
    @Inject(SERVICE_IDENTITY) private readonly identity: Pick<ServiceIdentity, 'id'>,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    this.subscriptions = [
      this.subscribe(TOOL_WORKERS_ASK_SUBJECT, () => this.publishAll()),
      this.subscribe(REMOTE_CANCEL_SUBJECT, (text) =>
        this.workers.cancel(RemoteCancel.parse(JSON.parse(text)).attemptId),
      ),
    ];
    this.timer = setInterval(() => {
      if (this.revision > 0) this.publish({});
    }, TOOL_WORKERS_BEAT_MS).unref();
  }

  /** Begins the session of a program. Returns the receiver of its frames; null without the right. */
  begin(
    socket: WebSocket,
    connection: WorkerConnection,
    principal: Principal,
    limits: Pick<RateLimits, 'chargeFrame'>,
  ): ((text: string, bytes: number) => void) | null {
    try {
      authorize(principal, 'tools:serve');
    } catch (error) {
      connection.fail(null, error, connection.connectionId);
      connection.close(CLOSE_FORBIDDEN, 'the key lacks the scope tools:serve');
      return null;
    }
    const { workspace, caller } = principal;
    const session = new WorkerSession({
      ...{ socket, connection, principal, workers: this.workers, logger: this.logger },
      register: (tools) => {
        const context = contextFrom('gateway', { correlationId: connection.connectionId });
        return runWithContext({ ...context, workspace }, () =>
          this.requests.request(registerRemoteTools, { workspace, caller, tools }),
        );
      },
      onProgress: (progress) => this.publishProgress(progress),
      charge: (bytes) => limits.chargeFrame(principal, bytes),
    });
    return (text, bytes) => session.receive(text, bytes);
  }

  /** Takes no further call, and waits for those that run. Called before the sockets close. */
  async stop(): Promise<void> {
    this.isStopping = true;
    if (this.timer !== null) clearInterval(this.timer);
    if (this.revision > 0) this.publish({});
    const until = performance.now() + DRAIN_MS;
    while (this.workers.stop() > 0 && performance.now() < until) await sleep(DRAIN_POLL_MS);
    if (this.nats.isConnected()) for (const subscription of this.subscriptions) subscription.unsubscribe();
  }

  private publishChange(workspace: string): void {
    this.revision++;
    this.publish({ change: { workspace, tools: this.workers.counts(workspace) } });
  }

  private publishAll(): void {
    const all = this.workers.workspaces().map((workspace) => ({
      workspace,
      tools: this.workers.counts(workspace),
    }));
    if (this.revision > 0) this.publish({ all });
  }

  private publish(more: Pick<ToolWorkersHint, 'change' | 'all'>): void {
    if (!this.nats.isConnected()) return;
    const { revision, isStopping } = this;
    const hint: ToolWorkersHint = { gateway: this.identity.id, revision, ...more };
    const text = JSON.stringify(isStopping ? { ...hint, isStopping } : hint);
    this.nats.connection.publish(TOOL_WORKERS_SUBJECT, text);
  }

  private publishProgress(progress: ToolProgress): void {
    if (this.nats.isConnected())
      this.nats.connection.publish(TOOL_PROGRESS_SUBJECT, JSON.stringify(progress));
  }

  private subscribe(subject: string, handle: (text: string) => void): Subscription {
    return this.nats.connection.subscribe(subject, {
      callback: (error, message) => {
        try {
          if (error) throw error;
          handle(message.string());
        } catch (err) {
          this.logger.warn({ err, subject }, 'worker message refused');
        }
      },
    });
  }
}

/** Handles `cmd.gateway.tool.*`: runs calls on programs that are connected to this process. */
@Controller()
export class RunRemoteCall {
  constructor(@Inject(ToolWorkerSockets) private readonly sockets: ToolWorkerSockets) {}

  @HandleRequest(runRemoteCall)
  handle(request: RemoteCallRequest): Promise<RemoteCallEnd> {
    return this.sockets.workers.run(request);
  }

  /** Throws `GATEWAY.RESULT_GONE`. */
  @HandleRequest(readRemoteResult)
  read({ attemptId, offset }: z.output<typeof readRemoteResult.request>): { data: string } {
    const part = this.sockets.workers.results.read(attemptId, offset);
    if (!part) throw notFound('GATEWAY.RESULT_GONE', `the result of the attempt ${attemptId} is gone`);
    return { data: part.toString('base64') };
  }

  @HandleRequest(releaseRemoteResult)
  release({ attemptId }: z.output<typeof releaseRemoteResult.request>): Record<string, never> {
    this.sockets.workers.results.release(attemptId);
    return {};
  }
}
