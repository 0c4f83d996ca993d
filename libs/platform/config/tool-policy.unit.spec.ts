import { describe, expect, it } from '@jest/globals';
import type { PolicyRule } from './antiphon-config.js';
import { parseConfig } from './parse-config.js';
import { decideCall } from './tool-policy.js';

const agent = (...policy: (Partial<PolicyRule> & Pick<PolicyRule, 'decision'>)[]) => ({
  approvals: [],
  policy: policy.map((rule) => ({ tool: '*', ...rule })),
});
const call = (tool: string, input: object = {}, grants: string[] = []) => ({
  ...{ tool, input: input as never, description: { idempotent: true, grants } },
});

describe('A policy of an agent', () => {
  it('decides by the first rule that matches, and allows a call without one', () => {
    const main = agent(
      { tool: 'get_*', decision: 'allow' },
      { tool: 'get_secret', decision: 'deny' },
      { tool: 'rm', decision: 'deny' },
    );
    expect(decideCall(main, call('get_secret'))).toEqual({ decision: 'allow' });
    expect(decideCall(main, call('rm'))).toEqual({ decision: 'deny', rule: 3 });
    expect(decideCall(main, call('other'))).toEqual({ decision: 'allow' });
  });

  it('compares an argument at a JSON pointer with a text', () => {
    const main = agent(
      { argument: '/to/0/a~1b', matches: 'docs/*', decision: 'allow' },
      { argument: '/to', decision: 'deny' },
    );
    expect(decideCall(main, call('x', { to: [{ 'a/b': 'docs/a.md' }] }))).toEqual({ decision: 'allow' });
    expect(decideCall(main, call('x', { to: [{ 'a/b': 'src/a.md' }] }))).toEqual({
      decision: 'deny',
      rule: 2,
    });
    expect(decideCall(main, call('x', {}))).toEqual({ decision: 'allow' });
    const number = agent({ argument: '/n', matches: '7', decision: 'deny' });
    expect(decideCall(number, call('x', { n: 7 })).decision).toBe('deny');
    expect(decideCall(agent({ argument: '/constructor', decision: 'deny' }), call('x')).decision).toBe(
      'allow',
    );
  });

  it('matches a capability of the tool', () => {
    const main = agent({ capability: 'http:*', decision: 'ask' });
    expect(decideCall(main, call('fetch', {}, ['http:example.com']))).toMatchObject({
      decision: 'ask',
      approval: { answerBy: 'operator', expiresAfterMs: 86_400_000 },
    });
    expect(decideCall(main, call('echo', {}, []))).toEqual({ decision: 'allow' });
  });

  it('wins over approval rules, whose terms apply where it asks', () => {
    const terms = {
      ...{ tool: '*', ask: 'always', expiresAfterMs: 1_000, answerBy: 'admin' },
      escalateAfterMs: null,
    };
    const approvals = [{ ...terms, escalateTo: 'admin' } as never];
    const main = {
      ...agent({ tool: 'echo', decision: 'allow' }, { tool: 'rm', decision: 'ask' }),
      approvals,
    };
    expect(decideCall(main, call('echo'))).toEqual({ decision: 'allow' });
    expect(decideCall(main, call('rm'))).toMatchObject({ decision: 'ask', approval: { answerBy: 'admin' } });
    expect(decideCall(main, call('other'))).toMatchObject({ decision: 'ask' });
  });

  it('is refused where a text has no argument, and where a pointer is none', () => {
    const parse = (rule: string): string => {
      const text = `[[agents]]\nid = "main"\n[[agents.policy]]\n${rule}\ndecision = "deny"\n`;
      try {
        parseConfig(text, { env: {}, source: '/antiphon.toml' } as never);
        return '';
      } catch (error) {
        return JSON.stringify(error) + String(error);
      }
    };
    expect(parse('argument = "/path"\nmatches = "a*"')).toBe('');
    expect(parse('matches = "a*"')).toContain('every call');
    expect(parse('argument = "path"')).toContain('JSON pointer');
  });
});
