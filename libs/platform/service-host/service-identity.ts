import type { ServiceName } from '@antiphon/contracts/messaging';

/** Which process this is. */
export interface ServiceIdentity {
  readonly service: ServiceName;
  /** Unique for this incarnation; what leases are held by begins with it. */
  readonly id: string;
  readonly pid: number;
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** ANTIPHON_HOME: where the service may keep files. */
  readonly home: string;
}
