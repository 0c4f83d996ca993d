import { describe, it } from '@jest/globals';
import type { ProviderEvent } from '@antiphon/contracts/agent';
import { specFor } from '@antiphon/testing';
import { MAX_SECRETS, secretsDecider } from './secrets.decider.js';

const given = specFor(secretsDecider);
const at = '2026-11-28T10:00:00.000Z';
const ID = '0197b0a0-0000-7000-8000-000000000001';
const OTHER = '0197b0a0-0000-7000-8000-000000000002';
const stored = (name = 'github', credentialId = ID): ProviderEvent => ({
  ...{ type: 'SecretStored', schemaVersion: 1 },
  data: { name, actor: 'key/a', at, credentialId },
});
const removed: ProviderEvent = {
  ...{ type: 'SecretRemoved', schemaVersion: 1 },
  data: { name: 'github', actor: 'key/a', at },
};
const change = { name: 'github', actor: 'key/a', now: at };
const store = (credentialId = ID) => ({ type: 'Store', ...change, credentialId }) as const;
const remove = { type: 'Remove', ...change } as const;

describe('the secrets of a workspace', () => {
  it('have a fact without the value', () => given([]).when(store()).then([stored()]));
  it('are replaced', () =>
    given([stored()])
      .when(store(OTHER))
      .then([stored('github', OTHER)]));
  it('are removed once', () => {
    given([stored()]).when(remove).then([removed]);
    given([stored(), removed]).when(remove).thenNothing();
  });
  it('are limited in number, and one of them can still be replaced', () => {
    const full = Array.from({ length: MAX_SECRETS }, (_, n) => stored(`s${n}`));
    given(full).when(store()).thenRejects('SECRET.LIMIT');
    given([...full.slice(1), stored()])
      .when(store(OTHER))
      .then([stored('github', OTHER)]);
  });
});
