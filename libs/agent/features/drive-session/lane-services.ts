import type { AntiphonConfig } from '@antiphon/config';
import type { ModelPort } from '@antiphon/agent-domain';
import type { EventStore, LeaseStore } from '@antiphon/event-store';
import type { Clock, Ids, TurnFailpoint } from '@antiphon/kernel';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type { ProviderBreakers } from '../pause-providers/provider-breakers.js';
import type { SessionLog } from '../session-log/session-log.js';
import type { ReadVersions } from '../session-log/stream-versions.js';
import type { ApprovalNews } from '../tend-approval/approval-waits.js';
import type { PublishFrames } from './live-frames.js';
import type { SandboxWatch } from './sandbox-watch.js';
import type { ToolCatalog } from './tool-catalog.js';
import type { ToolRetries } from './tool-retries.js';

/** Does nothing outside of tests; what it throws, or never answers, is what a death at that point looks like. */
export type Failpoint = (name: TurnFailpoint, sessionId: string) => Promise<void>;

/** How a driver behaves in time, ms. */
export interface DriveTimes {
  /** Life of a lease that is not renewed. */
  readonly leaseMs: number;
  /** How long an idle session stays with this process. */
  readonly idleMs: number;
  /** Between two looks at whether others have appended to our sessions: a lost hint costs this much. */
  readonly lookMs: number;
  /** Hard deadline of one model attempt. */
  readonly attemptMs: number;
  /** Between two looks for turns that nobody drives. */
  readonly sweepMs: number;
  /** What running turns get to come to their end when the process stops; a supervisor gives it fifteen seconds in all. */
  readonly drainMs: number;
}
export const DRIVE_TIMES: DriveTimes = {
  leaseMs: 5_000,
  idleMs: 60_000,
  lookMs: 500,
  attemptMs: 600_000,
  sweepMs: 1_000,
  drainMs: 8_000,
};

/** What lanes and drivers work with; made once for each process. */
export interface LaneServices {
  readonly config: AntiphonConfig;
  readonly store: EventStore;
  readonly leases: LeaseStore;
  readonly log: SessionLog;
  readonly models: ModelPort;
  readonly nats: NatsLink;
  readonly requests: RequestClient;
  readonly tools: ToolCatalog;
  readonly sandbox: SandboxWatch;
  readonly retries: ToolRetries;
  readonly breakers: ProviderBreakers;
  readonly publish: PublishFrames;
  readonly readVersions: ReadVersions;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Who holds this process's leases: unique for its incarnation. */
  readonly owner: string;
  readonly times: DriveTimes;
  /** In [0, 1): jitter. */
  readonly random: () => number;
  readonly failpoint: Failpoint;
  /** Told of each approval that is asked for or closed here, after the commit. */
  readonly approvalNews: (news: ApprovalNews) => void;
  /** False once the process takes no more turns. */
  readonly takesTurns: () => boolean;
}
