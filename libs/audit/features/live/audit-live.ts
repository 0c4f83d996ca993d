import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import type { Finding } from '@antiphon/audit-domain';
import type { TemporalLink } from '@antiphon/temporal';
import { type About, type AuditReport, type CheckReport, findFirst, Tally } from '../audit-report.js';
import {
  compareRelay,
  consumersKeepUp,
  findLaggingConsumers,
  relayEqualsTheLog,
} from './jetstream-checks.js';
import { compareFolders, foldersEqualTheFiles } from './compare-folder.js';
import { pollWithin } from './poll-within.js';
import { compareWorkflows, workflowsEqualTheLog } from './workflows-equal-log.js';

export interface LiveAuditOptions {
  /** Connects as the superuser, or as `antiphon_reader`. */
  readonly pool: pg.Pool;
  /** Connects with the rights of the operator. */
  readonly nats: NatsConnection;
  readonly temporal: TemporalLink;
  /** Counts open findings as violations. Use it when no work is in progress. */
  readonly strictQuiesced?: boolean;
  /** Compares only messages after this position; default all in JetStream. */
  readonly after?: number | null;
  /** Task queue of the compared workflows; default all of the namespace. */
  readonly taskQueue?: string;
  /**
   * Time after which a difference between Temporal and the log is a violation, ms; default 180,000.
   */
  readonly reconcileMs?: number;
  /** Time within which differences may disappear, ms; default 10,000. */
  readonly patienceMs?: number;
  /** Folder of the workspaces' files on this machine; null if there is none. */
  readonly filesFolder?: string | null;
  readonly onProgress?: (step: string) => void;
}

interface Found {
  readonly findings: readonly Finding[];
  readonly checked: number;
}

const createCheckReport = (about: About, strict: boolean, { findings, checked }: Found): CheckReport => {
  const tally = new Tally(about, strict);
  tally.add(findings);
  tally.count(checked);
  return tally.report();
};

/**
 * Compares the running engines with the log. JetStream must hold the log's events and no others,
 * its consumers must keep up, and Temporal must wait for the open items of the log. Rejects when an
 * engine cannot be reached.
 */
export const auditLive = async (options: LiveAuditOptions): Promise<CheckReport[]> => {
  const { pool, nats, temporal, taskQueue, reconcileMs, after = null, filesFolder = null } = options;
  const { strictQuiesced: strict = false, patienceMs = 10_000, onProgress = () => undefined } = options;
  const poll = pollWithin(patienceMs);
  onProgress('comparing JetStream with the log');
  const relay = await compareRelay(pool, nats, poll, after);
  const consumers = await findLaggingConsumers(nats, poll);
  onProgress('comparing Temporal with the log');
  const workflows = await compareWorkflows({ pool, temporal, taskQueue, reconcileMs }, poll);
  if (filesFolder !== null) onProgress('comparing folders with the files');
  const folders = filesFolder === null ? null : await compareFolders(pool, filesFolder, poll);
  return [
    createCheckReport(relayEqualsTheLog, strict, relay),
    createCheckReport(consumersKeepUp, strict, consumers),
    createCheckReport(workflowsEqualTheLog, strict, workflows),
    ...(folders ? [createCheckReport(foldersEqualTheFiles, strict, folders)] : []),
  ];
};

/** Combines the report of the log with those of the engines. */
export const withLive = (report: AuditReport, live: readonly CheckReport[]): AuditReport => {
  const checks = [...report.checks, ...live];
  return {
    ...report,
    checks,
    ok: checks.every(({ violations }) => violations === 0),
    first: findFirst(checks),
  };
};
