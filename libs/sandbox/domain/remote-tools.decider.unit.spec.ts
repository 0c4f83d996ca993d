import { describe, expect, it } from '@jest/globals';
import { RemoteToolDeclaration } from '@antiphon/contracts/sandbox';
import type { RemoteToolEvent } from '@antiphon/contracts/sandbox';
import { findRefusal, MAX_REMOTE_TOOLS, remoteToolsDecider } from './remote-tools.decider.js';
import type { RemoteTools } from './remote-tools.decider.js';

const origin = { by: 'key/k', now: '2026-11-28T00:00:00.000Z' } as const;
const declare = (more: object = {}): RemoteToolDeclaration =>
  RemoteToolDeclaration.parse({ name: 'weather', description: 'Returns the weather.', ...more });
const register = (declaration: RemoteToolDeclaration, digest: string) =>
  ({ type: 'RegisterRemoteTool', declaration, digest, ...origin }) as const;
const remove = (name: string) => ({ type: 'RemoveRemoteTool', name, ...origin }) as const;

const { decide, evolve, initialState } = remoteToolsDecider;
const run = (
  ...commands: Parameters<typeof decide>[0][]
): { state: RemoteTools; events: RemoteToolEvent[] } => {
  let state = initialState();
  const events = commands.flatMap((command) => {
    const decided = decide(command, state);
    state = decided.reduce(evolve, state);
    return decided;
  });
  return { state, events };
};
const isFree = () => false;

describe('the registration of remote tools', () => {
  it('adds a fact for a new declaration, and none for the same one again', () => {
    const { events, state } = run(register(declare(), 'a'), register(declare(), 'a'));
    expect(events).toMatchObject([
      {
        type: 'RemoteToolRegistered',
        data: { name: 'weather', version: 1, digest: 'a', registeredBy: 'key/k' },
      },
    ]);
    expect(state.tools.get('weather')).toMatchObject({ version: 1, declaration: { idempotent: false } });
  });

  it('makes a changed declaration the next version, also after a removal', () => {
    const { events } = run(
      register(declare(), 'a'),
      register(declare({ description: 'Other.' }), 'b'),
      remove('weather'),
      remove('weather'),
      register(declare(), 'a'),
    );
    expect(events.map(({ type, data }) => [type, 'version' in data ? data.version : null])).toEqual([
      ['RemoteToolRegistered', 1],
      ['RemoteToolRegistered', 2],
      ['RemoteToolRemoved', null],
      ['RemoteToolRegistered', 3],
    ]);
  });

  it('refuses names of other tools and retries without idempotency', () => {
    const refuse = (more: object, isTaken = isFree) =>
      findRefusal(declare(more), initialState(), isTaken)?.code;
    expect(refuse({})).toBeUndefined();
    expect(refuse({}, () => true)).toBe('TOOL.NAME_TAKEN');
    expect(refuse({ name: 'mcp__files__read' })).toBe('TOOL.NAME_TAKEN');
    const retry = { maxAttempts: 2, backoffMs: 100, maxBackoffMs: 100, onTimeout: false };
    expect(refuse({ retry })).toBe('TOOL.DECLARATION_INVALID');
    expect(refuse({ retry, idempotent: true })).toBeUndefined();
  });

  it('refuses one tool more than a workspace may have, and takes a new version of one', () => {
    const full = run(
      ...Array.from({ length: MAX_REMOTE_TOOLS }, (_, n) => register(declare({ name: `t${n}` }), 'a')),
    ).state;
    expect(findRefusal(declare(), full, isFree)?.code).toBe('TOOL.TOO_MANY');
    expect(findRefusal(declare({ name: 't1', description: 'New.' }), full, isFree)).toBeNull();
  });

  it('takes no schema that is not of an object', () => {
    expect(() => declare({ inputSchema: { type: 'string' } })).toThrow('must be a JSON Schema of type');
  });
});
