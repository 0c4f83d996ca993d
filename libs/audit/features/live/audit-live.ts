import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import type { Finding } from '@antiphon/audit-domain';
import type { TemporalLink } from '@antiphon/temporal';
import { createTally, firstOf } from '../audit-report.js';
import type { About, AuditReport, CheckReport } from '../audit-report.js';
import { consumersKeepUp, findLaggards } from './consumers-keep-up.js';
import { compareRelay, relayEqualsTheLog } from './relay-equals-log.js';
import { settleWithin } from './settle.js';
import { compareWorkflows, workflowsEqualTheLog } from './workflows-equal-log.js';

export interface LiveAuditOptions {
  /** Connects as the superuser, or as `antiphon_reader`. */
  readonly pool: pg.Pool;
  /** With the rights of the operator. */
  readonly nats: NatsConnection;
  readonly temporal: TemporalLink;
  /** Nothing is at work: what is open counts as broken. */
  readonly strictQuiesced?: boolean;
  /** Compares messages after this position alone; default all that JetStream keeps. */
  readonly after?: number | null;
  /** Of the workflows to look at; default all of the namespace. */
  readonly taskQueue?: string;
  /** How long Temporal may lack what the log opens, or hold what it has ended, before that is broken; default 180,000 ms. */
  readonly reconcileMs?: number;
  /** How long what differs may take to come right, default 10,000 ms. */
  readonly patienceMs?: number;
  readonly onProgress?: (step: string) => void;
}

interface Found {
  readonly findings: readonly Finding[];
  readonly checked: number;
}

const reportOf = (about: About, strict: boolean, { findings, checked }: Found): CheckReport => {
  const tally = createTally(about, strict);
  tally.add(findings);
  tally.count(checked);
  return tally.report();
};

/**
 * What only the running engines can show: that JetStream tells what the log holds and nothing else, that its consumers
 * keep up, and that Temporal waits for what is open in the log. Rejects when an engine cannot be reached.
 */
export const auditLive = async (options: LiveAuditOptions): Promise<CheckReport[]> => {
  const {
    pool,
    nats,
    temporal,
    taskQueue,
    reconcileMs,
    after = null,
    strictQuiesced: strict = false,
  } = options;
  const { onProgress = () => undefined, patienceMs = 10_000 } = options;
  const settled = settleWithin(patienceMs);
  onProgress('comparing JetStream with the log');
  const relay = await compareRelay(pool, nats, settled, after);
  const laggards = await findLaggards(nats, settled);
  onProgress('comparing Temporal with the log');
  const workflows = await compareWorkflows({ pool, temporal, taskQueue, reconcileMs }, settled);
  return [
    reportOf(relayEqualsTheLog, strict, relay),
    reportOf(consumersKeepUp, strict, laggards),
    reportOf(workflowsEqualTheLog, strict, workflows),
  ];
};

/** One report of what the log and what the engines showed. */
export const withLive = (report: AuditReport, live: readonly CheckReport[]): AuditReport => {
  const checks = [...report.checks, ...live];
  return {
    ...report,
    checks,
    ok: checks.every(({ violations }) => violations === 0),
    first: firstOf(checks),
  };
};
