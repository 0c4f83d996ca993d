import type { ProviderConfig } from '@antiphon/config';
import type { EventStore, PastReads } from '@antiphon/event-store';
import { createToken } from '@antiphon/service-host';

/** The log. Appends announce messages to inboxes, and create the folders of agents that start. */
export const AGENT_STORE = createToken<EventStore>('AGENT_STORE');

/** Reads of the past of the service's projections. */
export const PAST_READS = createToken<PastReads>('PAST_READS');

/** Owner of this process's leases, unique for its incarnation. */
export const LEASE_OWNER = createToken<string>('LEASE_OWNER');

/** Providers that a workspace connected at run time. */
export interface KnownProviders {
  /** Reads them from the log. */
  read(workspace: string): Promise<void>;
  /** Returns one that was read, null if there is none with this name. */
  find(workspace: string, name: string): Pick<ProviderConfig, 'name' | 'kind'> | null;
}
export const KNOWN_PROVIDERS = createToken<KnownProviders>('KNOWN_PROVIDERS');
