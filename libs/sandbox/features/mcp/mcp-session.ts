import { textCause } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { isAppError, rejected, toStorable, transient } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { McpBreaker } from './mcp-breaker.js';
import type { ListedTool } from './client-library.port.js';
import { McpConnection } from './mcp-connection.js';
import type { McpLimits, McpListing, McpTarget } from './mcp-connection.js';

/** Time for a connection and a list of tools, ms. */
const CONNECT_MS = 10_000;
/** Age up to which a list of tools is believed before a call, ms. */
const FRESH_MS = 30_000;
/** Maximum number of calls of one server at the same time. */
const MAX_CALLS = 32;
const MAX_PROBLEM_CHARS = 500;

export interface McpSessionDeps {
  readonly server: string;
  readonly target: McpTarget;
  readonly logger: Logger;
  /** Steady clock, ms. */
  readonly now: () => number;
  /** Called with each new list of tools, before calls that wait for it. */
  readonly onListed: (listing: McpListing) => Promise<void>;
}

export interface McpSessionStatus {
  readonly status: 'connected' | 'idle' | 'failed' | 'paused';
  readonly problem: string | null;
  readonly protocol: string | null;
}

/** Returns the first text of an error that says more than that a request failed. */
const problemOf = (error: unknown): string => {
  const { message = 'unknown error', cause } = error as { message?: string; cause?: { message?: string } };
  const text = cause?.message !== undefined && /^fetch failed$/.test(message) ? cause.message : message;
  return toStorable(text.slice(0, MAX_PROBLEM_CHARS));
};

/** A failed call of a server. `isOurs`: the server had no part in it. */
export interface McpFailure {
  readonly kind: 'timeout' | 'cancelled' | 'answered' | 'failed';
  readonly cause: Cause;
}

const REQUEST_TIMEOUT = 'REQUEST_TIMEOUT';

/**
 * Classifies an error of the client library by its name and code: the library is loaded with the
 * first connection. An answer with an error is the server's word.
 */
export const classifyError = (server: string, error: unknown, signal?: AbortSignal): McpFailure => {
  if (signal?.aborted) return { kind: 'cancelled', cause: { kind: 'tool_call_cancelled' } };
  const { name, code } = error as { readonly name?: unknown; readonly code?: unknown };
  // Errors of the protocol have numbers. So have those of the platform, which have other names.
  if (typeof code === 'number' && name !== 'AbortError' && name !== 'TimeoutError') {
    return { kind: 'answered', cause: { kind: 'mcp_protocol_error', server, code, text: problemOf(error) } };
  }
  const cause: Cause = { kind: 'mcp_failed', server, problem: problemOf(error) };
  if (code === REQUEST_TIMEOUT || name === 'TimeoutError') return { kind: 'timeout', cause };
  return { kind: 'failed', cause };
};

/** The connection of this process to one server of a workspace, opened when it is used. */
export class McpSession {
  readonly #breaker: McpBreaker;
  #connection: Promise<McpConnection> | null = null;
  #open: McpConnection | null = null;
  #listing: { readonly at: number; readonly tools: ReadonlyMap<string, ListedTool> } | null = null;
  #problem: string | null = null;
  #calls = 0;
  #isClosed = false;
  /** Time of the last use, by the steady clock. */
  usedAt: number;

  constructor(private readonly deps: McpSessionDeps) {
    this.#breaker = new McpBreaker(() => Date.now());
    this.usedAt = deps.now();
  }

  get target(): McpTarget {
    return this.deps.target;
  }

  get status(): McpSessionStatus {
    const protocol = this.#open?.protocol ?? null;
    if (this.#breaker.openUntil !== null) return { status: 'paused', problem: this.#problem, protocol };
    if (this.#problem !== null) return { status: 'failed', problem: this.#problem, protocol };
    return { status: this.#open ? 'connected' : 'idle', problem: null, protocol };
  }

  /** Process id of a connected server of standard input; null for any other. */
  get pid(): number | null {
    return this.#open?.pid ?? null;
  }

  get isBusy(): boolean {
    return this.#calls > 0;
  }

  /** Connects, and lists the tools if the last list is old. Throws what `explain` explains. */
  async refresh(maxAgeMs = FRESH_MS, signal?: AbortSignal): Promise<void> {
    this.usedAt = this.deps.now();
    const limits = { timeoutMs: CONNECT_MS, ...(signal ? { signal } : {}) };
    const connection = await this.#connect(limits);
    if (this.#listing && this.deps.now() - this.#listing.at <= maxAgeMs) return;
    await this.#guard(() => this.#list(connection, limits));
  }

  /** Runs work with the connection. Counts its failure for the circuit breaker. */
  async use<T>(
    work: (connection: McpConnection, definition: (tool: string) => ListedTool | undefined) => Promise<T>,
  ): Promise<T> {
    this.usedAt = this.deps.now();
    if (this.#calls >= MAX_CALLS) throw rejected('MCP.BUSY', 'the server has too many calls in progress');
    const connection = await this.#connect({ timeoutMs: CONNECT_MS });
    this.#calls += 1;
    try {
      const result = await this.#guard(() => work(connection, (tool) => this.#listing?.tools.get(tool)));
      // Not after a list: a server may list its tools and fail in each call.
      this.#breaker.recordSuccess();
      return result;
    } finally {
      this.#calls -= 1;
      this.usedAt = this.deps.now();
    }
  }

  /** Returns why no call is made now; null if one may be made. Claims the trial call. */
  findObstacle(): Cause | null {
    const { server } = this.deps;
    if (this.#calls >= MAX_CALLS) return { kind: 'mcp_busy', server, calls: this.#calls };
    const admission = this.#breaker.admit();
    if (admission.isAdmitted) return null;
    return { kind: 'mcp_paused', server, until: new Date(admission.until).toISOString() };
  }

  /** Gives a trial call back that did not reach the server. */
  releaseTrial(): void {
    this.#breaker.releaseTrial();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const connection = this.#connection;
    this.#forget();
    await connection?.then(
      (open) => open.close(),
      () => undefined,
    );
  }

  #forget(): void {
    this.#connection = null;
    this.#open = null;
    this.#listing = null;
  }

  #connect(limits: McpLimits): Promise<McpConnection> {
    if (this.#isClosed) return Promise.reject(transient('MCP.CLOSED', 'the connection was closed'));
    this.#connection ??= this.#guard(() => this.#openConnection(limits)).catch((error: unknown) => {
      this.#connection = null;
      throw error;
    });
    return this.#connection;
  }

  async #openConnection({ timeoutMs }: McpLimits): Promise<McpConnection> {
    const { server, target, logger } = this.deps;
    // Without the signal of a call: others wait for the same connection.
    const connection: McpConnection = await McpConnection.open(
      target,
      {
        onToolsChanged: () => void this.#relist(),
        onClosed: () => {
          if (this.#open !== connection) return;
          logger.info({ server }, 'MCP connection closed');
          this.#forget();
        },
        onNoise: (line) => logger.debug({ server, line }, 'MCP server printed'),
      },
      { timeoutMs },
    );
    this.#open = connection;
    logger.info({ server, protocol: connection.protocol }, 'MCP server connected');
    return connection;
  }

  async #list(connection: McpConnection, limits: McpLimits): Promise<void> {
    const listing = await connection.list(limits);
    this.#listing = { at: this.deps.now(), tools: new Map(listing.tools.map((tool) => [tool.name, tool])) };
    await this.deps.onListed(listing);
  }

  async #relist(): Promise<void> {
    const connection = this.#open;
    if (connection === null) return;
    try {
      await this.#guard(() => this.#list(connection, { timeoutMs: CONNECT_MS }));
    } catch (error) {
      this.deps.logger.warn({ server: this.deps.server, err: error }, 'MCP tool list failed');
    }
  }

  /** Counts a failure. Drops a connection that is broken, so that the next use opens another. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      this.#problem = null;
      return result;
    } catch (error) {
      this.#recordFailure(error);
      throw error;
    }
  }

  #recordFailure(error: unknown): void {
    const { server, logger } = this.deps;
    const { kind } = classifyError(server, error);
    if (kind === 'answered') return this.#breaker.recordSuccess();
    if ((error as { name?: string }).name === 'AbortError') return this.#breaker.releaseTrial();
    this.#problem = problemOf(error);
    if (this.#breaker.recordFailure())
      logger.warn({ server, problem: this.#problem }, 'MCP circuit breaker opened');
    // The connection of a refused server is closed. One that is silent keeps its connection.
    if (kind === 'failed') {
      const connection = this.#open;
      this.#forget();
      void connection?.close();
    }
  }
}

/** Explains an error of `refresh` or `use` as a cause. */
export const explain = (server: string, error: unknown): Cause =>
  isAppError(error) ? textCause(error.message) : classifyError(server, error).cause;
