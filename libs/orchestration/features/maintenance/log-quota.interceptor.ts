import { Inject, Injectable } from '@nestjs/common';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import {
  attachChatFile,
  changeAgent,
  changeFiles,
  changeMessage,
  checkFileWrite,
  connectChannel,
  connectProvider,
  createPairingCode,
  branchChat,
  createChat,
  createTask,
  forkSession,
  newSession,
  renameChat,
  receiveDelivery,
  rewindFiles,
  runPlan,
  saveWorkflow,
  sendAgentMessage,
  takePlanFacts,
  spawnAgent,
  startRun,
  submitTurn,
  subscribeAgent,
} from '@antiphon/contracts/agent';
import { of } from 'rxjs';
import type { Observable } from 'rxjs';
import { LogUsage } from './log-usage.js';

/** Requests that begin work or store texts. Others end, cancel, erase or read it. */
const ADDING: ReadonlySet<string> = new Set(
  [
    ...[
      submitTurn,
      newSession,
      forkSession,
      createTask,
      startRun,
      runPlan,
      takePlanFacts,
      saveWorkflow,
      spawnAgent,
    ],
    ...[sendAgentMessage, subscribeAgent, createChat, branchChat, renameChat, attachChatFile, changeMessage],
    ...[changeFiles, checkFileWrite, rewindFiles, changeAgent, connectProvider],
    ...[connectChannel, createPairingCode, receiveDelivery],
  ].map(({ subject }) => subject),
);

interface AddingRequest {
  readonly workspace?: unknown;
  /** Null deletes a message. */
  readonly content?: unknown;
  /** A list for files, an object for an agent. */
  readonly changes?: unknown;
}

const isFileDeletion = (change: { readonly op?: unknown } | null): boolean => change?.op === 'delete';

/** Returns true for a request that only deletes. */
const isDeletion = ({ content, changes }: AddingRequest): boolean =>
  content === null || (Array.isArray(changes) && changes.every(isFileDeletion));

/** Returns true for a request that a full log refuses. */
export const addsToLog = (subject: string, request: unknown): boolean =>
  ADDING.has(subject) && !isDeletion((request ?? {}) as AddingRequest);

/**
 * Refuses requests that add to the log of a workspace over its quota. The refusal is an outcome, as
 * `HandleRequest` makes one of a thrown error.
 */
@Injectable()
export class LogQuotaInterceptor implements NestInterceptor {
  constructor(@Inject(LogUsage) private readonly usage: LogUsage) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    if (context.getType() !== 'rpc') return next.handle();
    const rpc = context.switchToRpc();
    const request: unknown = rpc.getData();
    const subject = rpc.getContext<{ getSubject(): string }>().getSubject();
    const { workspace } = (request ?? {}) as AddingRequest;
    if (typeof workspace !== 'string' || !addsToLog(subject, request)) return next.handle();
    try {
      this.usage.requireRoom(workspace);
    } catch (error) {
      return of({ ok: false, error });
    }
    return next.handle();
  }
}
