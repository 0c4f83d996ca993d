import { describe, expect, it } from '@jest/globals';
import { configProblems } from './config-problem.js';
import { parseConfig } from './parse-config.js';
import { budgetLimitsOf, workspaceConfig } from './workspace-config.js';

const parse = (text: string) =>
  parseConfig(text, { source: '/a.toml', folder: '/', homeDir: '/root', env: {}, requireKeys: false });

const TWO = `
[[providers]]
name = "scripted"
kind = "scripted"
[[agents]]
id = "main"
[[agents]]
id = "sales"
workspace = "acme"
tools = ["calculator", "crm"]
[[agents]]
id = "help"
workspace = "*"
[[plugins]]
name = "crm"
path = "crm.wasm"
workspace = "acme"
[[bindings]]
agent = "sales"
channel = "web"
`;

const namesIn = (text: string, workspace: string) => {
  const { agents, bindings, plugins } = workspaceConfig(parse(text), workspace);
  return [agents.map(({ id }) => id), bindings.map(({ agent }) => agent), plugins.map(({ name }) => name)];
};

describe('workspaceConfig', () => {
  it('returns the entries of a workspace and of all workspaces, in the order of the file', () => {
    expect(namesIn(TWO, 'default')).toEqual([['main', 'help'], [], []]);
    expect(namesIn(TWO, 'acme')).toEqual([['sales', 'help'], ['sales'], ['crm']]);
    expect(namesIn(TWO, 'globex')).toEqual([['help'], [], []]);
  });

  it('returns the same object for the same workspace, and one for all that no entry names', () => {
    const config = parse(TWO);
    expect(workspaceConfig(config, 'acme')).toBe(workspaceConfig(config, 'acme'));
    expect(workspaceConfig(config, 'globex')).toBe(workspaceConfig(config, 'initech'));
  });

  it('shows the built-in agent to all workspaces', () =>
    expect(workspaceConfig(parse(''), 'globex').agents.map(({ id }) => id)).toEqual(['main']));
});

describe('budgetLimitsOf', () => {
  const BUDGETS = `[budgets]
session = 1000
monthly_usd = 5
[[budgets.workspaces]]
workspace = "acme"
session = 200
daily_usd = 0.5
`;

  it('returns the limits of the workspace, and the general ones where it sets none', () => {
    const config = parse(BUDGETS);
    const general = { session: 1_000, daily: null, dailyMicroUsd: null, monthlyMicroUsd: 5_000_000 };
    expect(budgetLimitsOf(config, 'acme')).toMatchObject({
      ...general,
      session: 200,
      dailyMicroUsd: 500_000,
    });
    // `constructor` is a property of every object and the name of no table here.
    for (const other of ['default', 'globex', 'constructor'])
      expect(budgetLimitsOf(config, other)).toMatchObject(general);
  });

  it.each([
    ['a second table of a workspace', '[[budgets.workspaces]]\nworkspace = "acme"\n', 'a second budget'],
    ['a table without a workspace', '[[budgets.workspaces]]\nsession = 1\n', 'missing'],
    ['a table of all workspaces', '[[budgets.workspaces]]\nworkspace = "*"\n', '*'],
  ])('refuses %s', (_title, more, message) => {
    let messages: string[] = [];
    try {
      parse(BUDGETS + more);
    } catch (error) {
      messages = configProblems(error).map((problem) => problem.message);
    }
    expect(messages).toEqual([expect.stringContaining(message)]);
  });
});

describe('an entry of another workspace', () => {
  const problemOf = (text: string) => {
    try {
      parse(text);
    } catch (error) {
      return configProblems(error).map(({ message }) => message);
    }
    return [];
  };

  it.each([
    [
      'a plug-in',
      TWO.replace('id = "main"', 'id = "main"\ntools = ["crm"]'),
      'the tool crm belongs to the workspace acme',
    ],
    ['an agent', `${TWO}workspace = "globex"\n`, 'the agent sales belongs to the workspace acme'],
  ])('cannot be used: %s', (_name, text, message) => expect(problemOf(text)).toEqual([message]));

  it('has a workspace id as its name', () =>
    expect(problemOf(TWO.replace('"acme"', '"Acme Inc"')).length).toBeGreaterThan(0));
});
