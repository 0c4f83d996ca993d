import type { ToolProgress } from '@antiphon/contracts/agent';
import { WORKER_LEASE_MS, WorkerFrame } from '@antiphon/contracts/gateway';
import type { CallFrame, GatewayToolFrame, ProgressFrame, ServeFrame } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { MAX_DECLARATIONS_BYTES } from '@antiphon/contracts/sandbox';
import type { RemoteCallEnd, registerRemoteTools } from '@antiphon/contracts/sandbox';
import { failpoint, findJsonExcess, isAppError, toAppError } from '@antiphon/kernel';
import type { JsonValue } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import type { WorkerConnection } from './worker-connection.port.js';
import { toolsByName } from './tool-workers.js';
import type { RemoteCallRequest, ToolWorkers, Worker } from './tool-workers.js';
import { WorkerAttempts } from './worker-attempts.js';

/** Number of pings of a lease. A program that answers none of them is lost. */
const PINGS = 3;
/** Bytes that wait to be sent to a program, above which it gets no further call. */
const MAX_UNSENT_BYTES = 1024 * 1024;

type Declared = z.output<typeof ServeFrame>['tools'];

export interface WorkerSessionDeps {
  readonly socket: WebSocket;
  readonly connection: WorkerConnection;
  readonly principal: Principal;
  readonly workers: ToolWorkers;
  readonly logger: Logger;
  /** Registers the tools of the program in its workspace. */
  readonly register: (tools: Declared) => Promise<z.output<typeof registerRemoteTools.reply>>;
  readonly onProgress: (progress: ToolProgress) => void;
  /** Charges a frame that ends no call. Throws over the rate limit. */
  readonly charge: (bytes: number) => void;
}

const parseFrame = (text: string): WorkerFrame | string => {
  const excess = findJsonExcess(text);
  if (excess !== null) return `the frame ${excess}`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return 'the frame is not JSON';
  }
  const parsed = WorkerFrame.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  return `${issue?.path.join('.') || 'the frame'}: ${issue?.message ?? 'malformed'}`;
};

/** Socket of one program that serves tools. */
export class WorkerSession implements Worker {
  readonly #deps: WorkerSessionDeps;
  readonly #attempts: WorkerAttempts;
  readonly #heartbeat: NodeJS.Timeout;
  #tools: ReadonlyMap<string, string> = new Map();
  #concurrency = 1;
  #isDraining = false;
  #silentPings = 0;

  constructor(deps: WorkerSessionDeps) {
    this.#deps = deps;
    this.#attempts = new WorkerAttempts(deps.workers.results);
    const { socket, connection } = deps;
    socket.on('pong', () => (this.#silentPings = 0));
    this.#heartbeat = setInterval(() => this.#ping(), WORKER_LEASE_MS / PINGS).unref();
    connection.addCleanup(() => this.#end());
  }

  get id(): string {
    return this.#deps.connection.connectionId;
  }
  get workspace(): string {
    return this.#deps.principal.workspace;
  }
  get tools(): ReadonlyMap<string, string> {
    return this.#isDraining ? new Map() : this.#tools;
  }
  get concurrency(): number {
    return this.#concurrency;
  }
  get inFlight(): number {
    return this.#attempts.size;
  }
  get mayTakeMore(): boolean {
    const { socket } = this.#deps;
    return (
      this.#attempts.size < this.#concurrency &&
      socket.readyState === socket.OPEN &&
      socket.bufferedAmount < MAX_UNSENT_BYTES
    );
  }

  async run(request: RemoteCallRequest): Promise<RemoteCallEnd> {
    const { callId, attemptId, sessionId, name, timeoutMs, epoch, idempotencyKey, agentId = null } = request;
    const ended = this.#attempts.add(attemptId, { callId, sessionId, name }, timeoutMs, () =>
      this.#send({ type: 'tools.cancel', callId, attemptId, reason: 'timeout' }),
    );
    this.#send({
      ...{ type: 'tools.call', callId, attemptId, epoch, tool: name, idempotencyKey, timeoutMs, sessionId },
      ...{ input: JSON.parse(request.input) as z.output<typeof CallFrame>['input'], agentId },
      deadline: new Date(Date.now() + timeoutMs).toISOString(),
    });
    await failpoint('remote.call.sent', () => name);
    const end = await ended;
    await failpoint('remote.call.answered', () => name);
    return end;
  }

  cancel(attemptId: string): boolean {
    const call = this.#attempts.find(attemptId);
    if (!call) return false;
    this.#send({ type: 'tools.cancel', callId: call.callId, attemptId, reason: 'cancelled' });
    return this.#attempts.end(attemptId, { end: 'cancelled' });
  }

  /** Handles one text frame. */
  receive(text: string, bytes: number): void {
    this.#silentPings = 0;
    try {
      this.#handle(text, bytes);
    } catch (error) {
      this.#refuse(error);
    }
  }

  #handle(text: string, bytes: number): void {
    const frame = parseFrame(text);
    if (typeof frame !== 'string' && this.#takeResult(frame)) return;
    this.#deps.charge(bytes);
    if (typeof frame === 'string') return this.#fail('GATEWAY.FRAME_INVALID', frame);
    switch (frame.type) {
      case 'tools.serve':
        return bytes > MAX_DECLARATIONS_BYTES
          ? this.#fail('GATEWAY.FRAME_INVALID', `declarations have at most ${MAX_DECLARATIONS_BYTES} bytes`)
          : void this.#serve(frame);
      case 'tools.drain':
        this.#isDraining = true;
        return this.#deps.workers.put(this);
      case 'ping':
        return this.#send({ type: 'pong' });
      case 'progress':
        return this.#progress(frame);
      case 'result.part':
        return; // its call was given up; the last part is logged
      case 'result':
      case 'error': {
        const { callId, attemptId } = frame;
        this.#deps.logger.info({ workerId: this.id, callId, attemptId }, 'late tool result dropped');
      }
    }
  }

  /** Takes a result or a part of one. Returns false for another frame, and for a given up call. */
  #takeResult(frame: WorkerFrame): boolean {
    switch (frame.type) {
      case 'result.part':
        return this.#attempts.addPart(frame.attemptId, frame.content);
      case 'result':
        return this.#attempts.complete(frame.attemptId, frame.content, frame.isError);
      case 'error':
        return this.#attempts.complete(frame.attemptId, frame.message, true);
      default:
        return false;
    }
  }

  async #serve({ tools: declared, concurrency }: z.output<typeof ServeFrame>): Promise<void> {
    const { register, workers, logger, principal, connection } = this.#deps;
    try {
      const { tools, refused } = await register(declared);
      const { socket } = this.#deps;
      if (socket.readyState !== socket.OPEN) return;
      this.#tools = toolsByName(tools);
      this.#concurrency = concurrency;
      this.#isDraining = false;
      const fields = { workerId: this.id, keyId: principal.keyId, address: connection.address };
      logger.info({ ...fields, tools: tools.length, refused: refused.length }, 'worker serves tools');
      this.#send({ type: 'tools.serving', workerId: this.id, leaseMs: WORKER_LEASE_MS, tools, refused });
      workers.put(this);
    } catch (error) {
      this.#refuse(error);
    }
  }

  #progress({ attemptId, message, fraction }: z.output<typeof ProgressFrame>): void {
    const call = this.#attempts.takeProgress(attemptId);
    if (!call) return;
    const { callId: id, sessionId, name } = call;
    this.#deps.onProgress({
      ...{ workspace: this.workspace, sessionId, id, name },
      ...(message === undefined ? {} : { message }),
      ...(fraction === undefined ? {} : { fraction }),
    });
  }

  #ping(): void {
    const { socket, logger } = this.#deps;
    if (this.#silentPings >= PINGS) {
      logger.warn({ workerId: this.id }, 'silent worker closed');
      return socket.terminate();
    }
    this.#silentPings++;
    socket.ping();
  }

  #end(): void {
    clearInterval(this.#heartbeat);
    const { workers, logger } = this.#deps;
    this.#tools = new Map();
    workers.remove(this);
    const lost = this.#attempts.loseAll();
    logger.info({ workerId: this.id, lost }, 'worker disconnected');
  }

  #refuse(error: unknown): void {
    const { code, message } = toAppError(error);
    const { logger } = this.#deps;
    if (isAppError(error)) logger.info({ workerId: this.id, code, reason: message }, 'worker refused');
    else logger.error({ workerId: this.id, err: error }, 'worker frame failed');
    this.#fail(code, message);
  }

  #fail(code: string, message: string): void {
    this.#send({ type: 'tools.error', code, message: message.slice(0, 1_000) });
  }

  #send(frame: GatewayToolFrame): void {
    this.#deps.connection.send(frame as unknown as JsonValue);
  }
}
