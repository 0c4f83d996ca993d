import { client } from './gateway.js';
import { createStore, useStore } from './store.js';

/** Caller of this tab, as the gateway knows it. */
export interface Identity {
  readonly workspace: string;
  readonly role: string;
  readonly caller: string;
  /** `cookie` for a session of the dashboard; null while unknown. */
  readonly signedInBy: string | null;
  /** Null until the gateway has told it: then every control is offered, and the gateway decides. */
  readonly permissions: readonly string[] | null;
}

const UNKNOWN: Identity = { workspace: '…', role: '', caller: '', signedInBy: null, permissions: null };
export const identity = createStore<Identity>(UNKNOWN);

export const useIdentity = (): Identity => useStore(identity);

/** Asks the gateway who this caller is and what it may do. */
export const readIdentity = async (): Promise<void> => {
  const me = await client.http.readIdentity();
  identity.set(me);
};
