import { describe, expect, it } from '@jest/globals';
import { parse } from 'yaml';
import { readRoleFile, roleOfPath, writeRoleFile, type RoleSettings } from './role-file.js';

const FILE = `---
name: Critic
description: Finds what is wrong, and says so
model: gpt-4o
tools: [read, "search"]
---

Be strict.
`;

describe('the file of a role', () => {
  it('is one Markdown file of the folder of roles', () => {
    expect(roleOfPath('system/agents/critic.md')).toBe('critic');
    for (const path of ['system/agents/a/critic.md', 'agents/critic.md', 'system/agents/critic.txt'])
      expect(roleOfPath(path)).toBeNull();
  });

  it('has settings and a prompt', () => {
    expect(readRoleFile(FILE)).toEqual({
      settings: {
        ...{ name: 'Critic', description: 'Finds what is wrong, and says so', model: 'gpt-4o' },
        tools: ['read', 'search'],
      },
      ...{ prompt: 'Be strict.\n', unknown: null },
    });
    expect(readRoleFile('Be strict.')).toEqual({ settings: {}, prompt: 'Be strict.', unknown: null });
    expect(readRoleFile('---\nnot closed').prompt).toBe('---\nnot closed');
  });

  it.each([
    ['thinking: high', 'thinking: high'],
    ['name: |', 'name: |'],
    ['tools:\n  - read', 'tools:'],
    ['# a comment', '# a comment'],
    ['name: One\nname: Two', 'name: Two'],
    ['model: 4', 'model: 4'],
    ["name: 'One'", "name: 'One'"],
  ])('names a line that a form cannot show: %j', (lines, unknown) => {
    expect(readRoleFile(`---\n${lines}\n---\nx`).unknown).toBe(unknown);
  });

  it.each<RoleSettings>([
    { name: 'Critic', tools: ['read', 'search'] },
    { name: 'a: b # c', description: ' "quoted" \\ and\nlines', model: '4o' },
    { name: 'true', description: '- item', provider: '[x]', base: '*alias' },
    { description: '@at `tick` %percent', tools: [] },
    { model: 'llama3:8b', name: '---' },
  ])('is read by YAML as the form wrote it: %j', (settings) => {
    const text = writeRoleFile({ settings, prompt: 'Be strict.\n' });
    expect(readRoleFile(text)).toEqual({ settings, prompt: 'Be strict.\n', unknown: null });
    expect(parse(text.split('---\n')[1] ?? '')).toEqual(settings);
  });
});
