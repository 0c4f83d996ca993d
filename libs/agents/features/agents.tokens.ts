import type { EventStore, PastReads } from '@antiphon/event-store';
import { createToken } from '@antiphon/service-host';

/** The log. Appends announce messages to inboxes, and create the folders of agents that start. */
export const AGENT_STORE = createToken<EventStore>('AGENT_STORE');

/** Reads of the past of the service's projections. */
export const PAST_READS = createToken<PastReads>('PAST_READS');

/** Owner of this process's leases, unique for its incarnation. */
export const LEASE_OWNER = createToken<string>('LEASE_OWNER');
