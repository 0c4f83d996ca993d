import type { ProviderEvent } from '@antiphon/contracts/agent';
import { rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';

/** Maximum number of secrets of a workspace. */
export const MAX_SECRETS = 200;

/** Ids of the stored values of the secrets of a workspace, by name. */
export type Secrets = ReadonlyMap<string, string>;

interface Change {
  readonly name: string;
  readonly actor: string;
  /** ISO 8601, UTC. */
  readonly now: string;
}
export type SecretCommand =
  | (Change & { readonly type: 'Store'; readonly credentialId: string })
  | (Change & { readonly type: 'Remove' });

const schemaVersion = 1;

/**
 * Decides changes of the secrets of a workspace. The removal of one that does not exist adds no
 * fact. Throws `SECRET.LIMIT`.
 */
export const secretsDecider: Decider<Secrets, SecretCommand, ProviderEvent> = {
  initialState: () => new Map(),
  decide: (command, secrets) => {
    const { name, actor, now: at } = command;
    if (command.type === 'Remove')
      return secrets.has(name) ? [{ type: 'SecretRemoved', schemaVersion, data: { name, actor, at } }] : [];
    if (!secrets.has(name) && secrets.size >= MAX_SECRETS)
      throw rejected('SECRET.LIMIT', `the workspace has ${MAX_SECRETS} secrets. What to do: remove one`);
    const { credentialId } = command;
    return [{ type: 'SecretStored', schemaVersion, data: { name, actor, at, credentialId } }];
  },
  evolve: (secrets, { type, data }) => {
    const next = new Map(secrets);
    if (type === 'SecretStored') next.set(data.name, data.credentialId);
    if (type === 'SecretRemoved') next.delete(data.name);
    return next;
  },
};
