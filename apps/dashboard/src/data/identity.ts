import { client, confirmSession, isSignedOut, sessionDoubts } from './gateway.js';
import { createStore, useStore } from './store.js';

/** Caller of this tab, as the gateway knows it. */
export interface Identity {
  readonly workspace: string;
  readonly role: string;
  readonly caller: string;
  /** Agent whose credential this is; null for a person's. */
  readonly agentId: string | null;
  /** `session` for a session of the dashboard; null while unknown. */
  readonly signedInBy: string | null;
  /** Time at which the credential ends; null for never, and while unknown. */
  readonly expiresAt: string | null;
  /** Null until the gateway has told it: then every control is offered, and the gateway decides. */
  readonly permissions: readonly string[] | null;
}

const UNKNOWN: Identity = {
  ...{ workspace: '…', role: '', caller: '', agentId: null, signedInBy: null, expiresAt: null },
  permissions: null,
};
export const identity = createStore<Identity>(UNKNOWN);

export const useIdentity = (): Identity => useStore(identity);

/** Asks the gateway who this caller is and what it may do. */
export const readIdentity = async (): Promise<void> => {
  const me = await client.http.readIdentity();
  identity.set(me);
};

/** Delay of the question whether the session has ended: the cookie of another tab may arrive now. */
const DOUBT_MS = 700;
let asks: ReturnType<typeof setTimeout> | undefined;

const ask = async (): Promise<void> => {
  asks = undefined;
  if (isSignedOut.get()) return;
  await readIdentity().catch(() => undefined);
  if (!isSignedOut.get()) confirmSession();
};

/** Asks again who this caller is when the session may have ended. */
export const watchSession = (): void => {
  sessionDoubts.subscribe(() => void (asks ??= setTimeout(() => void ask(), DOUBT_MS)));
  isSignedOut.subscribe(() => {
    if (!isSignedOut.get()) confirmSession();
  });
};
