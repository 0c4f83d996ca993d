import { createStore, useStore } from './store.js';

/** Caller of this tab, as the gateway knows it. */
export interface Identity {
  readonly workspace: string;
  readonly role: string;
  /** Null until the gateway has told it: then every control is offered, and the gateway decides. */
  readonly permissions: readonly string[] | null;
}

export const identity = createStore<Identity>({ workspace: 'default', role: '', permissions: null });

export const useIdentity = (): Identity => useStore(identity);
