import { Inject, Injectable, type OnModuleDestroy } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import type { Clock } from '@antiphon/kernel';
import { CLOCK } from '@antiphon/service-host';
import { IDENTITIES } from '../gateway.ports.js';
import type { Identities } from './identities.port.js';

/** Interval between two checks for expired credentials, ms. */
const SWEEP_MS = 500;

interface Watched {
  readonly expiresAt: number | null;
  readonly onEnd: (reason: string) => void;
}

/** Notifies the holders of API keys when the key is revoked or expires. */
@Injectable()
export class CredentialWatch implements OnModuleDestroy {
  readonly #clock: Clock;
  readonly #byKey = new Map<string, Set<Watched>>();
  readonly #removeListener: () => void;
  readonly #timer: NodeJS.Timeout;

  constructor(@Inject(IDENTITIES) identities: Identities, @Inject(CLOCK) clock: Clock) {
    this.#clock = clock;
    this.#removeListener = identities.onRevoked((keyId) => this.#end(keyId, 'the key was revoked'));
    this.#timer = setInterval(() => this.#endExpired(), SWEEP_MS).unref();
  }

  /** Calls `onEnd` once the principal's key ends. Returns the removal. */
  watch({ keyId, expiresAt }: Principal, onEnd: (reason: string) => void): () => void {
    if (keyId === null) return () => undefined;
    const watched: Watched = { expiresAt, onEnd };
    const holders = this.#byKey.get(keyId) ?? new Set();
    this.#byKey.set(keyId, holders.add(watched));
    return () => {
      holders.delete(watched);
      if (holders.size === 0 && this.#byKey.get(keyId) === holders) this.#byKey.delete(keyId);
    };
  }

  onModuleDestroy(): void {
    clearInterval(this.#timer);
    this.#removeListener();
    this.#byKey.clear();
  }

  #end(keyId: string, reason: string): void {
    const holders = this.#byKey.get(keyId);
    this.#byKey.delete(keyId);
    for (const { onEnd } of holders ?? []) onEnd(reason);
  }

  #endExpired(): void {
    const now = this.#clock.now();
    for (const [keyId, holders] of this.#byKey)
      // All holders of a key have its expiry.
      for (const { expiresAt } of holders) {
        if (expiresAt !== null && expiresAt <= now) this.#end(keyId, 'the key expired');
        break;
      }
  }
}
