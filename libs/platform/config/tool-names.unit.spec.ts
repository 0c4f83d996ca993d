import { describe, expect, it } from '@jest/globals';
import { ruleOfTool } from './approval-rule.js';
import { coversTool, expandTools, hasTool } from './tool-names.js';

const KNOWN = ['weather_now', 'spawn_agent', 'weather_later', 'mcp__files__read', 'read'];

describe('Names of tools with *', () => {
  it('stand for the tools that begin so, in the order of their names, each once', () => {
    expect(expandTools(['read', 'weather_*', 'weather_now'], KNOWN)).toEqual([
      ...['read', 'weather_later', 'weather_now'],
    ]);
    expect(expandTools(['weather_*'], [...KNOWN].reverse())).toEqual(expandTools(['weather_*'], KNOWN));
  });

  it('keep a name that no tool has, and stand for no native tool', () => {
    expect(expandTools(['gone', 's*', '*'], KNOWN)).toEqual([
      ...['gone', 'mcp__files__read', 'weather_later', 'weather_now'],
    ]);
    expect(hasTool(['*'], 'spawn_agent')).toBe(false);
    expect(hasTool(['spawn_*', 'mcp__files__*'], 'mcp__files__read')).toBe(true);
  });

  it('are covered by wider ones only', () => {
    expect(coversTool(['weather_*'], 'weather_now')).toBe(true);
    expect(coversTool(['weather_*'], 'weather_now*')).toBe(true);
    expect(coversTool(['weather_now'], 'weather_*')).toBe(false);
    expect(coversTool(['*'], 'read')).toBe(false);
  });

  it('give a rule after that of the name, and before that of all tools', () => {
    const rules = ['*', 'weather_*', 'weather_n*', 'weather_now'].map((tool) => ({ tool }));
    const ruleOf = (tool: string): string | undefined => ruleOfTool(rules, tool)?.tool;
    expect([ruleOf('weather_now'), ruleOf('weather_new'), ruleOf('weather_x'), ruleOf('x')]).toEqual([
      ...['weather_now', 'weather_n*', 'weather_*', '*'],
    ]);
  });
});
